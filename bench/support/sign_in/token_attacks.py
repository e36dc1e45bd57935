"""Attacks on signing in through the identity provider: forged tokens, replayed callbacks and foreign browsers."""

import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc.jwk import OctKey

from bench.support.sign_in.attacked_server import Browser, Server
from bench.support.sign_in.forged_provider import CLIENT_ID, CLIENT_SECRET, Forge, Token, new_key

Attack = Callable[[Server], Awaitable[bool]]
"""Returns whether the attack succeeded."""


def _claims(**changed: Any) -> Forge:
    """Changes claims. None removes one."""

    def forge(token: Token) -> str:
        token.claims.update(changed)
        for name in [name for name, value in changed.items() if value is None]:
            del token.claims[name]
        return token.sign()

    return forge


def _time_claims(**offsets: int) -> Forge:
    def forge(token: Token) -> str:
        token.claims.update({name: int(time.time()) + offset for name, offset in offsets.items()})
        return token.sign()

    return forge


def _header(**changed: Any) -> Forge:
    def forge(token: Token) -> str:
        token.header.update(changed)
        return token.sign()

    return forge


def _unsigned(algorithm: str) -> Forge:
    def forge(token: Token) -> str:
        return f"{_encode({'alg': algorithm})}.{_encode(token.claims)}."

    return forge


def _encode(value: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _sign_with_public_key(token: Token) -> str:
    signed = f"{_encode({'alg': 'HS256', 'kid': 'k1'})}.{_encode(token.claims)}"
    digest = hmac.digest(token.provider.key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _sign_with_client_secret(token: Token) -> str:
    token.header = {"alg": "HS256"}
    return token.sign(OctKey.import_key(CLIENT_SECRET.encode()))


def _embed_own_key(token: Token) -> str:
    own = new_key("k1")
    token.header["jwk"] = own.as_dict(private=False)
    return token.sign(own)


def _sign_with_extension(token: Token) -> str:
    signed = f"{_encode({**token.header, 'crit': ['own'], 'own': 1})}.{_encode(token.claims)}"
    private_key = token.provider.key.private_key
    assert private_key is not None
    signature = private_key.sign(signed.encode(), PKCS1v15(), SHA256())
    return f"{signed}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _change_payload(token: Token) -> str:
    header, payload, signature = token.sign().split(".")
    claims = json.loads(urlsafe_b64decode(payload + "=="))
    return f"{header}.{_encode({**claims, 'groups': ['admin']})}.{signature}"


def _strip_signature(token: Token) -> str:
    return token.sign().rpartition(".")[0] + "."


def _use_removed_key(token: Token) -> str:
    token.provider.published = [new_key("k2").as_dict(private=False)]
    return token.sign()


def _use_encryption_key(token: Token) -> str:
    token.provider.published = [{**token.provider.key.as_dict(private=False), "use": "enc"}]
    return token.sign()


def _publish_shared_secret(token: Token) -> str:
    shared = OctKey.generate_key(256, {"kid": "oct"})
    token.provider.published = [shared.as_dict(private=True)]
    token.header = {"alg": "HS256", "kid": "oct"}
    return token.sign(shared)


FORGERIES: Final[Mapping[str, Forge]] = {
    "issuer of another provider": _claims(iss="https://evil.example"),
    "issuer with a slash": _claims(iss="http://127.0.0.1/"),
    "no issuer": _claims(iss=None),
    "token for another client": _claims(aud="other-client"),
    "token for several others": _claims(aud=["other", "another"]),
    "no audience": _claims(aud=None),
    "audience with another authorized party": _claims(aud=[CLIENT_ID, "other"], azp="other"),
    "several audiences without authorized party": _claims(aud=[CLIENT_ID, "other"]),
    "another authorized party": _claims(azp="other"),
    "expired": _time_claims(exp=-3600, iat=-7200),
    "expired beyond the clock skew": _time_claims(exp=-90),
    "no expiry": _claims(exp=None),
    "expiry as text": _claims(exp="never"),
    "issued in the future": _time_claims(iat=3600, exp=7200),
    "no time of issue": _claims(iat=None),
    "not valid yet": _time_claims(nbf=3600),
    "nonce of another sign-in": _claims(nonce="another"),
    "no nonce": _claims(nonce=None),
    "empty nonce": _claims(nonce=""),
    "nonce as a list": _claims(nonce=["a"]),
    "no subject": _claims(sub=None),
    "empty subject": _claims(sub=""),
    "subject as a number": _claims(sub=7),
    "wrong hash of the access token": _claims(at_hash="AAAA"),
    "algorithm none": _unsigned("none"),
    "algorithm None": _unsigned("None"),
    "algorithm NONE": _unsigned("NONE"),
    "HS256 with the public key": _sign_with_public_key,
    "HS256 with the client secret": _sign_with_client_secret,
    "HS256 with a published secret": _publish_shared_secret,
    "unknown key with a known id": lambda token: token.sign(new_key("k1")),
    "unknown key id": _header(kid="k9"),
    "key id of a file": _header(kid="../../../../dev/null"),
    "key in the header": _embed_own_key,
    "key behind an address in the header": _header(jku="http://127.0.0.1:1/jwks", kid="evil"),
    "critical extension": _sign_with_extension,
    "key that was removed": _use_removed_key,
    "key for encryption": _use_encryption_key,
    "signature removed": _strip_signature,
    "payload changed": _change_payload,
    "no token": lambda _: None,
    "no JWT": lambda _: "a.b.c",
}


def forged_token(forge: Forge) -> Attack:
    async def attack(server: Server) -> bool:
        browser = server.browser()
        server.provider.forge = forge
        try:
            response = await browser.sign_in_with_oidc("member")
        finally:
            server.provider.reset()
        return await _has_entered(browser, response.headers.get("location", ""))

    return attack


async def _has_entered(browser: Browser, location: str) -> bool:
    return "error=" not in location or await browser.is_signed_in()


def _callback(change: Callable[[dict[str, str]], list[tuple[str, str]] | dict[str, str]]) -> Attack:
    """Changes the parameters of a callback that would be valid."""

    async def attack(server: Server) -> bool:
        browser = server.browser()
        url = server.provider.authorize(await browser.start_oidc(), "member")
        query = change(dict(parse_qsl(urlsplit(url).query)))
        response = await browser.follow_callback(f"{url.partition('?')[0]}?{urlencode(query)}")
        return await _has_entered(browser, response.headers.get("location", ""))

    return attack


async def _replay_callback(server: Server) -> bool:
    browser, thief = server.browser(), server.browser()
    url = server.provider.authorize(await browser.start_oidc(), "member")
    thief.cookies = {**browser.cookies}
    await browser.follow_callback(url)
    response = await thief.follow_callback(url)
    return await _has_entered(thief, response.headers["location"])


async def _replay_code(server: Server) -> bool:
    """The code of a finished sign-in with a new state of the same browser."""
    browser = server.browser()
    first = server.provider.authorize(await browser.start_oidc(), "member")
    await browser.follow_callback(first)
    browser.cookies.clear()
    fresh = dict(parse_qsl(urlsplit(await browser.start_oidc()).query))
    used = dict(parse_qsl(urlsplit(first).query))
    response = await browser.follow_callback(
        f"{first.partition('?')[0]}?{urlencode({**used, 'state': fresh['state']})}"
    )
    return await _has_entered(browser, response.headers["location"])


async def _inject_code(server: Server) -> bool:
    """The code of the victim in the attacker's browser, with the attacker's own state."""
    victim, attacker = server.browser(), server.browser()
    stolen = dict(parse_qsl(urlsplit(server.provider.authorize(await victim.start_oidc(), "member")).query))
    own = dict(parse_qsl(urlsplit(await attacker.start_oidc()).query))
    query = urlencode({**stolen, "state": own["state"]})
    response = await attacker.follow_callback(f"/v1/sign_in/oidc/callback?{query}")
    return await _has_entered(attacker, response.headers["location"])


async def _force_sign_in(server: Server) -> bool:
    """A hostile page opens the attacker's callback in the victim's browser, to sign it in as the attacker."""
    attacker, victim = server.browser(), server.browser()
    url = server.provider.authorize(await attacker.start_oidc(), "attacker")
    response = await victim.follow_callback(url)
    return await _has_entered(victim, response.headers["location"])


async def _swap_cookie(server: Server) -> bool:
    """The victim has begun its own sign-in, whose cookie must not fit the attacker's state."""
    attacker, victim = server.browser(), server.browser()
    url = server.provider.authorize(await attacker.start_oidc(), "attacker")
    await victim.start_oidc()
    (value,) = victim.cookies.values()
    victim.cookies = dict.fromkeys(attacker.cookies, value)
    response = await victim.follow_callback(url)
    return await _has_entered(victim, response.headers["location"])


async def _late_callback(server: Server) -> bool:
    browser = server.browser()
    url = server.provider.authorize(await browser.start_oidc(), "member")
    await server.database.execute("update oidc_sign_ins set expires_at = now() - interval '1 second'")
    response = await browser.follow_callback(url)
    return await _has_entered(browser, response.headers["location"])


async def _userinfo_of_another(server: Server) -> bool:
    browser = server.browser()
    server.provider.has_groups_in_token, server.provider.userinfo = False, {"sub": "other", "groups": ["admin"]}
    try:
        response = await browser.sign_in_with_oidc("member")
    finally:
        server.provider.reset()
    return await _has_entered(browser, response.headers["location"])


def _become_first_admin(email: Any, verified: Any) -> Attack:
    async def attack(server: Server) -> bool:
        browser = server.browser()
        server.provider.forge = _claims(sub=f"climber {email} {verified}", email=email, email_verified=verified)
        try:
            await browser.sign_in_with_oidc("member")
        finally:
            server.provider.reset()
        return "admin" in (await browser.send("GET", "/v1/me")).json().get("roles", [])

    return attack


async def _sign_in_without_group(server: Server) -> bool:
    browser = server.browser()
    response = await browser.sign_in_with_oidc("stranger")
    return await _has_entered(browser, response.headers["location"])


async def _sign_in_as_disabled(server: Server) -> bool:
    browser, again = server.browser(), server.browser()
    server.provider.forge = _claims(sub="leaver")
    try:
        await browser.sign_in_with_oidc("member")
        member = (await browser.send("GET", "/v1/me")).json()["id"]
        await server.call("POST", f"/v1/members/{member}", {"disabled": True})
        response = await again.sign_in_with_oidc("member")
    finally:
        server.provider.reset()
    return await _has_entered(again, response.headers["location"])


def _return_to(path: str) -> Attack:
    async def attack(server: Server) -> bool:
        browser = server.browser()
        response = await browser.send("GET", f"/v1/sign_in/oidc?return_to={quote(path, safe='')}")
        return response.status_code != 400

    return attack


RETURN_PATHS: Final = (
    *("https://evil.example/", "//evil.example/", "///evil.example", "/\\evil.example", "\\\\evil.example"),
    *("/\t/evil.example", "/\n/evil.example", "javascript:alert(1)", "@evil.example", "/v1/browser_sessions"),
    *(" /", "/\u2028/evil.example", "evil.example"),
)


def list_attacks() -> dict[str, Attack]:
    return {
        **{f"token: {name}": forged_token(forge) for name, forge in FORGERIES.items()},
        "callback: unknown state": _callback(lambda query: {**query, "state": "unknown"}),
        "callback: no state": _callback(lambda query: {"code": query["code"], "iss": query["iss"]}),
        "callback: two states": _callback(lambda query: [*query.items(), ("state", "other")]),
        "callback: two codes": _callback(lambda query: [*query.items(), ("code", "other")]),
        "callback: no code": _callback(lambda query: {**query, "code": ""}),
        "callback: another issuer": _callback(lambda query: {**query, "iss": "https://evil.example"}),
        "callback: no issuer": _callback(lambda query: {"code": query["code"], "state": query["state"]}),
        "callback: error with a code": _callback(lambda query: {**query, "error": "access_denied"}),
        "callback: replayed": _replay_callback,
        "callback: code replayed with a new state": _replay_code,
        "callback: code of another browser": _inject_code,
        "callback: sign-in forced on another browser": _force_sign_in,
        "callback: cookie of another sign-in": _swap_cookie,
        "callback: too late": _late_callback,
        "userinfo of another person": _userinfo_of_another,
        "first administrator: email not verified": _become_first_admin("boss@example.com", False),
        "first administrator: verified as text": _become_first_admin("boss@example.com", "true"),
        "first administrator: longer email": _become_first_admin("boss@example.com.evil.example", True),
        "first administrator: email as a list": _become_first_admin(["boss@example.com"], True),
        "person without a group": _sign_in_without_group,
        "disabled member": _sign_in_as_disabled,
        **{f"return_to: {path!r}": _return_to(path) for path in RETURN_PATHS},
    }
