"""Attacks on browser sessions: hostile pages, DNS rebinding, stolen and planted cookies, and one-time codes."""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from bench.support.sign_in.attacked_server import COOKIE, NAVIGATION, PUBLIC_URL, Browser, Server
from bench.support.sign_in.token_attacks import Attack

_TEAM: Final = {"name": "made by an attack"}


async def _signed_in(server: Server) -> Browser:
    browser = server.browser()
    await browser.sign_in_with_key(server.cluster.key)
    return browser


def hostile_change(**headers: str | None) -> Attack:
    """A change with the cookie of a person who is signed in, as a hostile page can send it."""

    async def attack(server: Server) -> bool:
        browser = await _signed_in(server)
        return (await browser.change("POST", "/v1/teams", _TEAM, **headers)).is_success

    return attack


def hostile_read(**headers: str | None) -> Attack:
    async def attack(server: Server) -> bool:
        browser = await _signed_in(server)
        return (await browser.send("GET", "/v1/sessions", headers=headers)).is_success

    return attack


def hostile_socket(**headers: str | None) -> Attack:
    async def attack(server: Server) -> bool:
        return await (await _signed_in(server)).opens_socket(**headers)

    return attack


def rebound(host: str) -> Attack:
    """A page whose host name points to the server, also with a cookie for this name."""

    async def attack(server: Server) -> bool:
        browser = await _signed_in(server)
        port = server.port
        headers = {"host": host.format(port=port), "origin": f"http://{host.format(port=port)}"}
        read = await browser.send("GET", "/v1/me", headers=headers)
        local = await server.local_browser().send(
            "POST", "/v1/browser_sessions", headers=headers, json={"api_key": "x"}
        )
        return read.is_success or local.status_code != 403

    return attack


def hostile_form(path: str, body: bytes, media_type: str) -> Attack:
    """A form of another site, which the browser sends without asking the server."""

    async def attack(server: Server) -> bool:
        browser = await _signed_in(server)
        headers = {"content-type": media_type, "origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        return (await browser.send("POST", path, headers=headers, content=body)).is_success

    return attack


async def _form_without_origin(server: Server) -> bool:
    browser = await _signed_in(server)
    headers = {"content-type": "text/plain"}
    return (await browser.send("POST", "/v1/teams", headers=headers, content=b'{"name": "x"}')).is_success


async def _local_page_posts(server: Server) -> bool:
    """A page of another program on the same machine posts to the server that `footplate dev` has started."""
    browser = server.local_browser()
    await browser.sign_in_with_key(server.cluster.key)
    other = {"origin": "http://127.0.0.1:9", "sec-fetch-site": "same-site"}
    return (await browser.change("POST", "/v1/teams", _TEAM, **other)).is_success


async def _token_of_own_session(server: Server) -> bool:
    """The attacker is a member too, and its page sends the token of its own session."""
    browser, attacker = await _signed_in(server), await _signed_in(server)
    return (await browser.change("POST", "/v1/teams", _TEAM, **{"x-footplate-csrf": attacker.csrf})).is_success


async def _token_in_query(server: Server) -> bool:
    browser = await _signed_in(server)
    path = f"/v1/teams?x-footplate-csrf={browser.csrf}"
    return (await browser.change("POST", path, _TEAM, **{"x-footplate-csrf": None})).is_success


async def _method_override(server: Server) -> bool:
    browser = await _signed_in(server)
    headers = {"x-http-method-override": "DELETE", "sec-fetch-site": "cross-site", **NAVIGATION}
    await browser.send("GET", "/v1/browser_sessions/current?_method=DELETE", headers=headers)
    return not await browser.is_signed_in()


async def _force_sign_in_by_key(server: Server) -> bool:
    """A hostile page signs the victim's browser in with the attacker's key."""
    browser = server.browser()
    for headers in ({"origin": "https://evil.example"}, {"origin": None}, {"origin": "null"}):
        await browser.change("POST", "/v1/browser_sessions", {"api_key": server.cluster.key}, **headers)
    return bool(browser.cookies)


async def _fixed_cookie(server: Server) -> bool:
    """The attacker plants a cookie before the victim signs in, and uses it afterwards."""
    victim, attacker = server.browser(), server.browser()
    planted = {COOKIE: "fpb_planted"}
    victim.cookies, attacker.cookies = {**planted}, {**planted}
    await victim.sign_in_with_key(server.cluster.key)
    return victim.cookies == planted or await attacker.is_signed_in()


async def _fixed_session(server: Server) -> bool:
    """The attacker plants its own session, and expects the victim to stay in it after signing in."""
    victim, attacker = server.browser(), await _signed_in(server)
    victim.cookies = {**attacker.cookies}
    _, _, key = await server.create_person("victim of fixation")
    await victim.sign_in_with_key(key)
    return victim.cookies == attacker.cookies or await attacker.is_signed_in()


def stolen_secret(use: str) -> Attack:
    """The secret of a session where only an API key, or nothing, is accepted."""

    async def attack(server: Server) -> bool:
        browser = await _signed_in(server)
        secret = browser.cookies[COOKIE]
        headers: Mapping[str, dict[str, str]] = {
            "bearer": {"authorization": f"Bearer {secret}"},
            "x-api-key": {"x-api-key": secret},
            "hash": {"cookie": f"{COOKIE}={hashlib.sha256(secret.encode()).hexdigest()}"},
            "prefix": {"cookie": f"{COOKIE}={secret[:-1]}"},
            "other cookie": {"cookie": f"session={secret}"},
            "other port": {"cookie": f"footplate_1={secret}"},
            "two cookies": {"cookie": f"{COOKIE}={secret}; {COOKIE}=fpb_other"},
            "api key as cookie": {"cookie": f"{COOKIE}={server.cluster.key}"},
            "query": {},
        }
        path = f"/v1/me?session={secret}&api_key={secret}" if use == "query" else "/v1/me"
        return (await server.browser().send("GET", path, headers=headers[use])).is_success

    return attack


async def _secret_as_subprotocol(server: Server) -> bool:
    browser = await _signed_in(server)
    secret = browser.cookies.pop(COOKIE)
    return await browser.opens_socket(**{"sec-websocket-protocol": f"footplate.v1, footplate.key.{secret}"})


def ended(how: str) -> Attack:
    """The cookie after its session has ended."""

    async def attack(server: Server) -> bool:
        member, key_id, key = await server.create_person(f"person whose session ends: {how}")
        browser, thief = server.browser(), server.browser()
        await browser.sign_in_with_key(key)
        thief.cookies = {**browser.cookies}
        digest = hashlib.sha256(browser.cookies[COOKIE].encode()).digest()
        if how == "sign out":
            await browser.change("DELETE", "/v1/browser_sessions/current")
        elif how == "revoke":
            await server.call("POST", f"/v1/api_keys/{key_id}/revoke")
        elif how == "rotate":
            await server.call("POST", f"/v1/api_keys/{key_id}/rotate")
        elif how == "disable":
            await server.call("POST", f"/v1/members/{member}", {"disabled": True})
        elif how == "disable and enable":
            for disabled in (True, False):
                await server.call("POST", f"/v1/members/{member}", {"disabled": disabled})
        else:
            change = {
                "expire": "expires_at = now()",
                "idle": "last_used_at = now() - interval '13 hours'",
            }[how]
            await server.database.execute(f"update browser_sessions set {change} where secret_hash = $1", digest)
        await asyncio.sleep(2.1)  # the server caches a credential for 2 seconds
        return await thief.is_signed_in()

    return attack


async def _end_session_of_another(server: Server) -> bool:
    _, _, key = await server.create_person("owner of a session")
    owner, attacker = server.browser(), await _signed_in(server)
    await owner.sign_in_with_key(key)
    session_id = (await owner.send("GET", "/v1/me")).json()["session_id"]
    listed = (await attacker.send("GET", "/v1/browser_sessions")).text
    return (
        bool(session_id in listed) or (await attacker.change("DELETE", f"/v1/browser_sessions/{session_id}")).is_success
    )


async def _guess_keys(server: Server) -> bool:
    """More guesses than the limit permits, from one address."""
    browser = server.browser()
    statuses = [(await browser.sign_in_with_key(f"fp_guess_{number}")).status_code for number in range(25)]
    return statuses.count(429) == 0


async def _new_code(server: Server) -> str:
    headers = {"x-api-key": server.cluster.key, "host": f"127.0.0.1:{server.port}"}
    response = await server.http.post("/v1/browser_sessions/one_time_codes", headers=headers)
    return str(response.json()["code"])


def _redeem(browser: Browser, code: str, **headers: str) -> Any:
    return browser.change("POST", "/v1/browser_sessions", {"one_time_code": code}, **headers)


async def _reuse_code(server: Server) -> bool:
    code = await _new_code(server)
    await _redeem(server.local_browser(), code)
    return bool((await _redeem(server.local_browser(), code)).is_success)


async def _race_code(server: Server) -> bool:
    code = await _new_code(server)
    responses = await asyncio.gather(*(_redeem(server.local_browser(), code) for _ in range(8)))
    return bool(sum(response.is_success for response in responses) != 1)


async def _late_code(server: Server) -> bool:
    code = await _new_code(server)
    await server.database.execute("update one_time_codes set expires_at = now() - interval '1 second'")
    return bool((await _redeem(server.local_browser(), code)).is_success)


async def _code_through_proxy(server: Server) -> bool:
    code = await _new_code(server)
    local = server.local_browser()
    attempts = [
        await _redeem(server.browser(), code),
        await _redeem(local, code, **{"x-forwarded-for": "203.0.113.7"}),
        await _redeem(local, code, forwarded="for=203.0.113.7"),
        await _redeem(local, code, host="footplate.example.com", origin=PUBLIC_URL),
    ]
    return any(response.is_success for response in attempts)


async def _code_by_cookie(server: Server) -> bool:
    local = server.local_browser()
    await local.sign_in_with_key(server.cluster.key)
    return (await local.change("POST", "/v1/browser_sessions/one_time_codes")).is_success


async def _code_by_hostile_page(server: Server) -> bool:
    code = await _new_code(server)
    local = server.local_browser()
    return bool((await _redeem(local, code, origin="https://evil.example")).is_success)


async def _code_of_revoked_key(server: Server) -> bool:
    _, key_id, key = await server.create_person("owner of a code")
    headers = {"x-api-key": key, "host": f"127.0.0.1:{server.port}"}
    code = (await server.http.post("/v1/browser_sessions/one_time_codes", headers=headers)).json()["code"]
    await server.call("POST", f"/v1/api_keys/{key_id}/revoke")
    return bool((await _redeem(server.local_browser(), code)).is_success)


async def _code_as_key(server: Server) -> bool:
    code = await _new_code(server)
    return (await server.http.get("/v1/me", headers={"x-api-key": code})).is_success


def list_attacks() -> dict[str, Attack]:
    return {
        "change without token": hostile_change(**{"x-footplate-csrf": None}),
        "change with an empty token": hostile_change(**{"x-footplate-csrf": ""}),
        "change with a wrong token": hostile_change(**{"x-footplate-csrf": "A" * 43}),
        "change with the token of another session": _token_of_own_session,
        "change with the token in the address": _token_in_query,
        "change without origin": hostile_change(origin=None),
        "change from a page without origin": hostile_change(origin="null"),
        "change from another site": hostile_change(origin="https://evil.example"),
        "change from a subdomain": hostile_change(origin="https://x.footplate.example.com"),
        "change from another port": hostile_change(origin="https://footplate.example.com:8443"),
        "change from the same name without HTTPS": hostile_change(origin="http://footplate.example.com"),
        "change from a name that ends alike": hostile_change(origin="https://evil-footplate.example.com"),
        "change that the browser reports as cross-site": hostile_change(**{"sec-fetch-site": "cross-site"}),
        "change that the browser reports as same-site": hostile_change(**{"sec-fetch-site": "same-site"}),
        "change by a page of another local program": _local_page_posts,
        "change by method override": _method_override,
        "form with text": hostile_form("/v1/teams", b'{"name": "x"}', "text/plain"),
        "form that starts a session": hostile_form("/v1/browser_sessions", b'{"api_key": "x"}', "text/plain"),
        "form with fields": hostile_form("/v1/teams", b"name=x", "application/x-www-form-urlencoded"),
        "form that uploads": hostile_form("/v1/files", b"--x--", "multipart/form-data; boundary=x"),
        "form without origin": _form_without_origin,
        "image of another site": hostile_read(**{"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}),
        "script of another site": hostile_read(origin="https://evil.example"),
        "link of another site to the API": hostile_read(**NAVIGATION),
        "frame of another site": hostile_read(**{**NAVIGATION, "sec-fetch-dest": "iframe"}),
        "script of a sibling site": hostile_read(**{"sec-fetch-site": "same-site"}),
        "WebSocket of another site": hostile_socket(origin="https://evil.example"),
        "WebSocket without origin": hostile_socket(origin=None),
        "WebSocket of a page without origin": hostile_socket(origin="null"),
        "WebSocket of another local port": hostile_socket(origin="http://127.0.0.1:9"),
        "WebSocket that is cross-site": hostile_socket(**{"sec-fetch-site": "cross-site"}),
        "WebSocket with the secret as key": _secret_as_subprotocol,
        **{
            f"DNS rebinding: {host}": rebound(host)
            for host in (
                *("evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example"),
                *("footplate.example.com.evil.example", "evil.example:80", "footplate.example.com@evil.example"),
            )
        },
        "sign-in forced by a page": _force_sign_in_by_key,
        "planted cookie": _fixed_cookie,
        "planted session": _fixed_session,
        **{
            f"secret: {use}": stolen_secret(use)
            for use in (
                *("bearer", "x-api-key", "hash", "prefix", "other cookie", "other port", "two cookies"),
                *("api key as cookie", "query"),
            )
        },
        **{
            f"cookie after: {how}": ended(how)
            for how in ("sign out", "revoke", "rotate", "disable", "disable and enable", "expire", "idle")
        },
        "session of another member": _end_session_of_another,
        "guessed API keys": _guess_keys,
        "one-time code: used again": _reuse_code,
        "one-time code: used at the same time": _race_code,
        "one-time code: too late": _late_code,
        "one-time code: from another machine": _code_through_proxy,
        "one-time code: created by a browser": _code_by_cookie,
        "one-time code: hostile page": _code_by_hostile_page,
        "one-time code: of a revoked key": _code_of_revoked_key,
        "one-time code: as API key": _code_as_key,
    }
