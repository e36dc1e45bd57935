"""Signing in through the real `oidc-provider`: the whole code flow over HTTP, with the real database."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest
from bench.support.sign_in.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, run_identity_provider
from tests.unit.api.conftest import Api

from footplate.api.routes.sign_in.oidc_provider import OidcConfig, OidcProvider
from footplate.domain.audit import AuditFilter
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import Browser, SignInMethod
from footplate.domain.organisations.single_sign_on import (
    ExternalIdentity,
    GroupGrant,
    GroupMapping,
    SignInFailed,
    SingleSignOn,
)
from footplate.domain.pagination import Page
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.sign_in.browser_sessions import BrowserSessionStore
from footplate.store.resources.sign_in.failures import SignInFailures
from footplate.store.resources.sign_in.single_sign_on import SingleSignOnDatabase

from .cell import Cell, new_principal

BASE = "http://127.0.0.1:8712"
MAPPING = GroupMapping(
    {
        "engineering": GroupGrant(frozenset({"member"}), frozenset({"web"})),
        "admins": GroupGrant(frozenset({"policy_admin"}), frozenset({"ops"})),
    },
    first_admin="ben@example.com",
)


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[IdentityProvider]:
    async with run_identity_provider(BASE) as running:
        yield running


class Server:
    """An API replica with the real sign-in and fakes of everything else, and one browser."""

    def __init__(self, cell: Cell, provider: IdentityProvider, mapping: GroupMapping, organisation: str) -> None:
        self.cell, self.provider, self.organisation = cell, provider, organisation
        keys, failures = ApiKeys(cell.database), SignInFailures(cell.database, organisation, limit=1000)
        sessions = BrowserSessionStore(cell.database, keys, failures)
        config = OidcConfig(
            issuer=provider.issuer,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            name="Example",
            scopes="openid profile email groups",
            groups_claim="groups",
            clock_skew=60,
            base_url=BASE,
        )
        store = SingleSignOnDatabase(cell.database, keys, sessions, failures, mapping, organisation)
        app = Api().build(
            keys=keys,
            units=cell.units,
            browser_sessions=sessions,
            single_sign_on=SingleSignOn(OidcProvider(config), store),
            public_url=BASE,
        )
        self.browser = httpx2.AsyncClient(transport=httpx2.ASGITransport(app, client=("10.0.0.1", 1)), base_url=BASE)

    async def sign_in(self, account: str, return_to: str = "/inbox") -> httpx2.Response:
        """Signs in and returns the response of the callback."""
        started = await self.browser.get("/v1/sign_in/oidc", params={"return_to": return_to})
        assert started.status_code == 303, started.text
        callback = await self.provider.sign_in(started.headers["location"], account)
        return await self.browser.get(callback, headers={"sec-fetch-site": "cross-site", **_NAVIGATION})

    async def who(self) -> Mapping[str, Any]:
        me: dict[str, Any] = (await self.browser.get("/v1/me")).json()
        return me


_NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.fixture
def server(cell: Cell, provider: IdentityProvider) -> Server:
    return Server(cell, provider, MAPPING, new_principal().organisation)


async def test_a_person_gets_the_roles_and_teams_of_its_groups(server: Server) -> None:
    done = await server.sign_in("ann")
    assert (done.status_code, done.headers["location"]) == (303, f"{BASE}/inbox")
    me = await server.who()
    assert (me["kind"], me["name"], me["email"]) == ("member", "ann example", "ann@example.com")
    assert (me["roles"], me["api_key_id"]) == (["member", "policy_admin"], None)
    caller = Principal(server.organisation, me["id"], me["name"], frozenset())
    stored = await server.cell.reads.member(caller, me["id"])
    assert (stored.email, [*stored.sign_in_methods]) == ("ann@example.com", [SignInMethod.OIDC])
    assert [team["name"] for team in me["teams"]] == ["ops", "web"]
    changed = GroupMapping({"admins": GroupGrant(frozenset({"viewer"}), frozenset({"ops"}))}, frozenset())
    later = Server(
        server.cell, server.provider, GroupMapping({**MAPPING.groups, **changed.groups}), server.organisation
    )
    await later.sign_in("ann")
    assert (await later.who())["id"] == me["id"]
    assert (await later.who())["roles"] == ["member", "viewer"]


async def test_who_has_no_role_is_refused_and_loses_the_old_ones(server: Server) -> None:
    assert (await server.sign_in("dan")).headers["location"] == f"{BASE}/sign-in?error=no_role"
    assert (await server.browser.get("/v1/me")).status_code == 401
    await server.sign_in("ann")
    strict = Server(server.cell, server.provider, GroupMapping(), server.organisation)
    assert (await strict.sign_in("ann")).headers["location"] == f"{BASE}/sign-in?error=no_role"
    keys = ApiKeys(server.cell.database)
    (secret,) = [value for name, value in server.browser.cookies.items() if name.startswith("footplate_")]
    assert (await keys.authenticate(secret)).roles == frozenset()


async def test_the_first_administrator_is_named_by_a_verified_email(server: Server) -> None:
    await server.sign_in("ben")
    assert (await server.who())["role"] == "admin"
    await server.sign_in("ben")
    assert (await server.who())["role"] == "admin"
    other = GroupMapping(MAPPING.groups, first_admin="ann@example.com")
    late = Server(server.cell, server.provider, other, server.organisation)
    await late.sign_in("ann")
    assert (await late.who())["roles"] == ["member", "policy_admin"]
    unverified = GroupMapping({}, frozenset({"viewer"}), "cat@example.com")
    fresh = Server(server.cell, server.provider, unverified, new_principal().organisation)
    await fresh.sign_in("cat")
    assert (await fresh.who())["roles"] == ["viewer"]


async def test_new_keys_of_the_provider_count_at_once(server: Server) -> None:
    for keeps_old in (True, False):
        await server.provider.rotate_keys(keeps_old=keeps_old)
        assert (await server.sign_in("ann")).headers["location"] == f"{BASE}/inbox"


async def test_a_callback_works_once_and_in_one_browser(server: Server) -> None:
    started = await server.browser.get("/v1/sign_in/oidc")
    callback = await server.provider.sign_in(started.headers["location"], "ann")
    stranger = Server(server.cell, server.provider, MAPPING, server.organisation)
    assert (await stranger.browser.get(callback)).headers["location"] == f"{BASE}/sign-in?error=state_invalid"
    for _ in range(2):
        again = await server.browser.get(callback)
        assert again.headers["location"] == f"{BASE}/sign-in?error=state_invalid"
    assert (await server.browser.get("/v1/me")).status_code == 401
    admin = await ApiKeys(server.cell.database).authenticate(
        await ApiKeys(server.cell.database).create_key(server.organisation, "a", ["admin"])
    )
    entries = await server.cell.reads.audit(admin, Page(limit=10), AuditFilter(kind="sign_in"))
    assert [entry.content and entry.content["reason"] for entry in entries] == ["state_invalid"] * 3


async def test_a_disabled_member_cannot_sign_in(server: Server) -> None:
    await server.sign_in("ann")
    me = await server.who()
    admin = await ApiKeys(server.cell.database).authenticate(
        await ApiKeys(server.cell.database).create_key(server.organisation, "a", ["admin"])
    )
    async with server.cell.units.unit(admin, None) as unit:
        await unit.update_member(admin, me["id"], roles=None, disabled=True)
    fresh = Server(server.cell, server.provider, MAPPING, server.organisation)
    fresh.browser.cookies = server.browser.cookies
    assert (await fresh.browser.get("/v1/me")).status_code == 401
    assert (await fresh.sign_in("ann")).headers["location"] == f"{BASE}/sign-in?error=member_disabled"


@pytest.mark.timing
async def test_a_member_who_is_disabled_meanwhile_cannot_sign_in(cell: Cell) -> None:
    keys = ApiKeys(cell.database)
    admin = await keys.authenticate(await keys.create_key(new_principal().organisation, "a", ["admin"]))
    failures = SignInFailures(cell.database, admin.organisation)
    sessions = BrowserSessionStore(cell.database, keys, failures)
    mapping = GroupMapping(default_roles=frozenset({"viewer"}))
    store = SingleSignOnDatabase(cell.database, keys, sessions, failures, mapping, admin.organisation)
    identity = ExternalIdentity(
        issuer="https://login.test", subject="1", name="ann", email=None, is_email_verified=False, groups=frozenset()
    )
    browser = Browser.describe("10.0.0.1", "Browser")
    ann, _ = await store.start_session(identity, browser)
    async with cell.units.unit(admin, None) as unit:
        await unit.update_member(admin, ann.id, roles=None, disabled=True)
        signing_in = asyncio.create_task(store.start_session(identity, browser))
        await asyncio.sleep(0.5)
    with pytest.raises(SignInFailed) as failed:
        await signing_in
    assert failed.value.reason == "member_disabled"


async def test_signing_out_names_the_address_of_the_provider(server: Server) -> None:
    await server.sign_in("ann")
    headers = {"origin": BASE, "x-footplate-csrf": (await server.who())["csrf_token"]}
    ended = (await server.browser.delete("/v1/browser_sessions/current", headers=headers)).json()
    assert ended["sign_out_url"].startswith(f"{server.provider.issuer}/session/end?client_id=footplate")
    assert (await httpx2.AsyncClient(trust_env=False).get(ended["sign_out_url"])).status_code == 200


@pytest.mark.parametrize(
    "target", ["//evil.test", "/\\evil.test", "https://evil.test", "/\t/evil.test", "evil", "", "/v1/me", "/a\nb", "/é"]
)
async def test_the_way_back_is_a_local_path(server: Server, target: str) -> None:
    started = await server.browser.get("/v1/sign_in/oidc", params={"return_to": target})
    assert started.status_code == 400
