"""Attacks on signing in a program: guessed codes, approvals that no person gave, and keys that outlive their source."""

import asyncio
from typing import Any

import httpx2

from bench.support.sign_in.attacked_server import Browser, Server
from bench.support.sign_in.token_attacks import Attack

_DEVICES = "/v1/device_authorizations"


async def start(server: Server) -> dict[str, Any]:
    browser = server.browser()
    response = await browser.send("POST", _DEVICES, json={"client_name": "attack"})
    return dict(response.json())


async def fetch_key(server: Server, device_code: str) -> httpx2.Response:
    await server.database.execute("update device_authorizations set polled_at = null")
    return await server.browser().send("POST", f"{_DEVICES}/token", json={"device_code": device_code})


async def decide(browser: Browser, user_code: str, decision: str = "approve", **headers: Any) -> httpx2.Response:
    return await browser.change("POST", f"{_DEVICES}/{user_code}", {"decision": decision}, **headers)


async def sign_in_device(server: Server, key: str) -> dict[str, Any]:
    """Signs a program in as the owner of the key, as it is meant to be."""
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(key)
    await decide(browser, started["user_code"])
    return dict((await fetch_key(server, started["device_code"])).json())


async def _works(server: Server, key: str) -> bool:
    return (await server.http.get("/v1/me", headers={"x-api-key": key})).is_success


async def _without_approval(server: Server) -> bool:
    return (await fetch_key(server, (await start(server))["device_code"])).is_success


async def _user_code_as_device_code(server: Server) -> bool:
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    await decide(browser, started["user_code"])
    return (await fetch_key(server, started["user_code"])).is_success


async def _guess_user_codes(server: Server) -> bool:
    browser = server.browser()
    _, _, key = await server.create_person("guesser of codes")
    await browser.sign_in_with_key(key)
    statuses = [
        (await browser.send("GET", f"{_DEVICES}/BCDF-GH{letter}{letter}")).status_code for letter in "JKLMNPQRSTVWX"
    ]
    return statuses.count(429) == 0


async def _guess_device_codes(server: Server) -> bool:
    browser = server.browser()
    statuses = []
    for number in range(25):
        response = await browser.send("POST", f"{_DEVICES}/token", json={"device_code": f"guess {number}"})
        statuses.append(response.status_code)
    return statuses.count(429) == 0


async def _poll_fast(server: Server) -> bool:
    started, browser = await start(server), server.browser()
    codes = []
    for _ in range(3):
        response = await browser.send("POST", f"{_DEVICES}/token", json={"device_code": started["device_code"]})
        codes.append(response.json()["error"]["code"])
    return codes.count("slow_down") == 0


async def _approve_by_key(server: Server) -> bool:
    """A stolen key must not create another key, which would survive it."""
    started = await start(server)
    headers = {"x-api-key": server.cluster.key}
    path = f"{_DEVICES}/{started['user_code']}"
    return (await server.http.post(path, json={"decision": "approve"}, headers=headers)).is_success


async def _approve_without_sign_in(server: Server) -> bool:
    return (await decide(server.browser(), (await start(server))["user_code"])).is_success


def _approve_by_hostile_page(**headers: Any) -> Attack:
    async def attack(server: Server) -> bool:
        browser, started = server.browser(), await start(server)
        await browser.sign_in_with_key(server.cluster.key)
        approved = await decide(browser, started["user_code"], **headers)
        return approved.is_success or (await fetch_key(server, started["device_code"])).is_success

    return attack


async def _approve_by_link(server: Server) -> bool:
    """Phishing: opening the link that the attacker sends must not approve anything."""
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    await browser.send("GET", f"{_DEVICES}/{started['user_code']}?decision=approve")
    return (await fetch_key(server, started["device_code"])).is_success


async def _phish(server: Server) -> bool:
    """The page must say that the program is at another address than the browser."""
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    shown = (await browser.send("GET", f"{_DEVICES}/{started['user_code']}")).json()
    return shown["is_same_address"] is not False or shown["client_name"] != "attack"


async def _fetch_twice(server: Server) -> bool:
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    await decide(browser, started["user_code"])
    await fetch_key(server, started["device_code"])
    return (await fetch_key(server, started["device_code"])).is_success


async def _fetch_at_once(server: Server) -> bool:
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    await decide(browser, started["user_code"])
    body = {"device_code": started["device_code"]}
    responses = await asyncio.gather(*(server.browser().send("POST", f"{_DEVICES}/token", json=body) for _ in range(6)))
    return sum(response.is_success for response in responses) > 1


async def _fetch_denied(server: Server) -> bool:
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    await decide(browser, started["user_code"], "deny")
    changed = await decide(browser, started["user_code"])
    return changed.is_success or (await fetch_key(server, started["device_code"])).is_success


async def _fetch_expired(server: Server) -> bool:
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    await decide(browser, started["user_code"])
    await server.database.execute("update device_authorizations set expires_at = now() - interval '1 second'")
    return (await fetch_key(server, started["device_code"])).is_success


async def _approve_expired(server: Server) -> bool:
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(server.cluster.key)
    await server.database.execute("update device_authorizations set expires_at = now() - interval '1 second'")
    return (await decide(browser, started["user_code"])).is_success


def _approver_ends(how: str) -> Attack:
    """The person who approved loses access before the program fetches its key."""

    async def attack(server: Server) -> bool:
        member, key_id, key = await server.create_person(f"approver who ends: {how}")
        browser, started = server.browser(), await start(server)
        await browser.sign_in_with_key(key)
        await decide(browser, started["user_code"])
        if how == "disable":
            await server.call("POST", f"/v1/members/{member}", {"disabled": True})
        else:
            await server.call("POST", f"/v1/api_keys/{key_id}/{how}")
        return (await fetch_key(server, started["device_code"])).is_success

    return attack


def _source_ends(how: str) -> Attack:
    """The key of a program must end with the key that approved it."""

    async def attack(server: Server) -> bool:
        member, key_id, key = await server.create_person(f"person with a program: {how}")
        issued = await sign_in_device(server, key)
        if how == "disable":
            await server.call("POST", f"/v1/members/{member}", {"disabled": True})
        else:
            await server.call("POST", f"/v1/api_keys/{key_id}/{how}")
        return await _works(server, issued["api_key"])

    return attack


async def _approve_by_program_key(server: Server) -> bool:
    """The key of a program must not approve the next one, which would outlive it."""
    _, _, key = await server.create_person("person with a stolen program key")
    issued = await sign_in_device(server, key)
    browser, started = server.browser(), await start(server)
    await browser.sign_in_with_key(issued["api_key"])
    return (await decide(browser, started["user_code"])).is_success


async def _gain_roles(server: Server) -> bool:
    _, _, key = await server.create_person("viewer", roles=["viewer"])
    issued = await sign_in_device(server, key)
    headers = {"x-api-key": issued["api_key"]}
    return (await server.http.post("/v1/teams", json={"name": "gained"}, headers=headers)).is_success


async def _gain_projects(server: Server) -> bool:
    project = await server.call("POST", "/v1/projects", {"name": "p", "url": "https://git.example.com/a"})
    _, _, key = await server.create_person("person of a project", project_ids=[project["id"]])
    issued = await sign_in_device(server, key)
    me = await server.call("GET", "/v1/me", key=issued["api_key"])
    return bool(me["project_ids"] != [project["id"]])


async def _gain_time(server: Server) -> bool:
    soon = "2100-01-01T00:00:00Z"
    _, _, key = await server.create_person("person with a short key", expires_at=soon)
    await server.database.execute(
        "update api_keys set expires_at = now() + interval '1 hour' where name = 'person with a short key'"
    )
    issued = await sign_in_device(server, key)
    is_longer = await server.database.fetchval(
        "select expires_at > now() + interval '2 hours' from api_keys where id = $1", issued["api_key_id"]
    )
    return bool(is_longer)


async def _key_after_logout(server: Server) -> bool:
    _, _, key = await server.create_person("person who logs out")
    issued = await sign_in_device(server, key)
    await server.call("DELETE", "/v1/me/api_key", key=issued["api_key"])
    await asyncio.sleep(2.1)  # the server caches a credential for 2 seconds
    return await _works(server, issued["api_key"])


def list_attacks() -> dict[str, Attack]:
    return {
        "program: key without approval": _without_approval,
        "program: user code as device code": _user_code_as_device_code,
        "program: guessed user codes": _guess_user_codes,
        "program: guessed device codes": _guess_device_codes,
        "program: polls without waiting": _poll_fast,
        "program: approved by an API key": _approve_by_key,
        "program: approved without signing in": _approve_without_sign_in,
        "program: approved without token": _approve_by_hostile_page(**{"x-footplate-csrf": None}),
        "program: approved by another site": _approve_by_hostile_page(origin="https://evil.example"),
        "program: approved by opening a link": _approve_by_link,
        "program: phishing shows no address": _phish,
        "program: key fetched twice": _fetch_twice,
        "program: key fetched at the same time": _fetch_at_once,
        "program: approved after a denial": _fetch_denied,
        "program: fetched too late": _fetch_expired,
        "program: approved too late": _approve_expired,
        **{
            f"program: approver before the fetch: {how}": _approver_ends(how) for how in ("disable", "revoke", "rotate")
        },
        **{f"program: source afterwards: {how}": _source_ends(how) for how in ("disable", "revoke", "rotate")},
        "program: approved by the key of a program": _approve_by_program_key,
        "program: more roles": _gain_roles,
        "program: more projects": _gain_projects,
        "program: longer life": _gain_time,
        "program: key after logout": _key_after_logout,
    }
