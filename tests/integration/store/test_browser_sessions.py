"""Browser sessions in the real database: when they end, what is recorded, and how many attempts may fail."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from footplate.domain.audit import AuditFilter
from footplate.domain.errors import NotFound, Unauthenticated
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import Browser, SignInLimitExceeded
from footplate.domain.pagination import Page
from footplate.store.database import SQL
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.members import hash_secret
from footplate.store.resources.sign_in.browser_sessions import BrowserSessionStore
from footplate.store.resources.sign_in.failures import SignInFailures

from .cell import Cell, new_principal

LAPTOP = Browser.describe("10.1.2.3", "Browser 1")


class Person:
    """A member with an API key, and the stores of a replica."""

    def __init__(self, cell: Cell, admin: Principal, member_id: str, key_id: str, api_key: str) -> None:
        self.cell, self.admin, self.member_id, self.key_id, self.api_key = cell, admin, member_id, key_id, api_key
        self.sessions = create_store(cell, admin.organisation)

    @classmethod
    async def create(cls, cell: Cell) -> "Person":
        keys = ApiKeys(cell.database)
        admin = await keys.authenticate(await keys.create_key(new_principal().organisation, "first", ["admin"]))
        async with cell.units.unit(admin, None) as unit:
            member = await unit.create_member(admin, kind=PrincipalKind.PERSON, name="ann", roles=["operator"])
            key, secret = await unit.create_api_key(
                admin, name="laptop", member_id=member.id, roles=["member"], expires_at=None
            )
        return cls(cell, admin, member.id, key.id, secret)

    async def start(self) -> str:
        _, secret = await self.sessions.start_with_key(self.api_key, LAPTOP)
        return secret

    async def is_valid(self, secret: str) -> bool:
        """Whether another replica, which has nothing cached, accepts the session."""
        try:
            principal = await ApiKeys(self.cell.database).authenticate(secret)
        except Unauthenticated:
            return False
        assert (principal.id, principal.roles) == (self.member_id, frozenset({"operator"}))
        return True

    async def change(self, work: Any) -> None:
        async with self.cell.units.unit(self.admin, None) as unit:
            await work(unit)


def create_store(cell: Cell, organisation: str, **options: Any) -> BrowserSessionStore:
    failures = SignInFailures(cell.database, organisation, limit=options.pop("limit", 20))
    return BrowserSessionStore(cell.database, ApiKeys(cell.database), failures, **options)


async def is_refused(attempt: Awaitable[object]) -> bool:
    try:
        await attempt
    except Unauthenticated:
        return True
    return False


async def test_a_session_acts_for_the_owner_of_the_key(cell: Cell) -> None:
    ann = await Person.create(cell)
    secret = await ann.start()
    assert await ann.is_valid(secret)
    principal = await ApiKeys(cell.database).authenticate(secret)
    profile = await ann.sessions.load_profile(principal, secret)
    (listed,) = await ann.sessions.list_sessions(principal)
    assert (listed.id, listed.address, listed.user_agent) == (profile.session_id, "10.1.2.3", "Browser 1")
    by_key = await ann.sessions.load_profile(principal, ann.api_key)
    assert (profile.key_id, by_key.key_id, by_key.session_id) == (ann.key_id, ann.key_id, None)
    async with cell.database.connection() as connection:
        stored = await connection.fetchval("select browser_sessions::text from browser_sessions")
    assert secret not in stored


@pytest.mark.parametrize("end", ["revoke", "rotate", "disable", "disable and enable", "end", "end by id"])
async def test_a_session_ends_with_its_key_and_its_member(cell: Cell, end: str) -> None:
    ann = await Person.create(cell)
    secret = await ann.start()
    if end == "revoke":
        await ann.change(lambda unit: unit.revoke_api_key(ann.admin, ann.key_id))
    elif end == "rotate":
        await ann.change(lambda unit: unit.rotate_api_key(ann.admin, ann.key_id))
    elif end.startswith("disable"):
        await ann.change(lambda unit: unit.update_member(ann.admin, ann.member_id, roles=None, disabled=True))
        if end.endswith("enable"):
            await ann.change(lambda unit: unit.update_member(ann.admin, ann.member_id, roles=None, disabled=False))
    elif end == "end":
        await ann.sessions.end_session_of(secret)
    else:
        principal = await ApiKeys(cell.database).authenticate(secret)
        (listed,) = await ann.sessions.list_sessions(principal)
        with pytest.raises(NotFound):
            await ann.sessions.end_session(ann.admin, listed.id)
        await ann.sessions.end_session(principal, listed.id)
    assert not await ann.is_valid(secret)


async def test_a_session_expires(cell: Cell) -> None:
    ann = await Person.create(cell)
    old = create_store(cell, ann.admin.organisation, lifetime=timedelta(0))
    _, api_key = "", ann.api_key
    with pytest.raises(Unauthenticated):
        await old.start_with_key(api_key, LAPTOP)
    secret = await ann.start()
    assert not await is_refused(ApiKeys(cell.database).authenticate(secret))
    assert await is_refused(ApiKeys(cell.database, session_idle=timedelta(0)).authenticate(secret))


async def test_a_one_time_code_works_once_while_its_key_is_valid(cell: Cell) -> None:
    ann = await Person.create(cell)
    principal = await ApiKeys(cell.database).authenticate(ann.api_key)
    code = await ann.sessions.create_code(principal, ann.api_key)
    _, secret = await ann.sessions.start_with_code(code, LAPTOP)
    assert await ann.is_valid(secret)
    assert await is_refused(ann.sessions.start_with_code(code, LAPTOP))
    late = await ann.sessions.create_code(principal, ann.api_key)
    await ann.change(lambda unit: unit.rotate_api_key(ann.admin, ann.key_id))
    assert await is_refused(ann.sessions.start_with_code(late, LAPTOP))
    assert not await ann.is_valid(secret)


async def test_an_expired_code_is_refused(cell: Cell) -> None:
    ann = await Person.create(cell)
    async with cell.database.connection() as connection:
        await connection.execute(
            SQL["insert_one_time_code"], hash_secret("old"), hash_secret(ann.api_key), timedelta(seconds=-1)
        )
    assert await is_refused(ann.sessions.start_with_code("old", LAPTOP))


async def test_failures_are_limited_and_in_the_audit_trail(cell: Cell) -> None:
    ann = await Person.create(cell)
    guesser = Browser.describe("2001:db8:7::1", "Guesser")
    store = create_store(cell, ann.admin.organisation, limit=3)
    await ann.change(lambda unit: unit.revoke_api_key(ann.admin, ann.key_id))
    for guess in ("fp_guess", ann.api_key, "fpb_guess"):
        assert await is_refused(store.start_with_key(guess, guesser))
    with pytest.raises(SignInLimitExceeded):
        await store.start_with_key("fp_guess", Browser.describe("2001:db8:7::2", "Guesser"))
    entries = await cell.reads.audit(ann.admin, Page(limit=10), AuditFilter(kind="sign_in"))
    assert [(entry.outcome, entry.principal) for entry in entries] == [
        ("deny", None),
        ("deny", ann.member_id),
        ("deny", None),
    ]
    assert all(entry.content and entry.content["id"] == "2001:db8:7::/64" for entry in entries)
    other = Browser.describe("10.9.9.9", "Browser 2")
    assert await store.start_with_key(await ApiKeys(cell.database).create_key("org-x", "k", ["viewer"]), other)
