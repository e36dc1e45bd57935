"""Device authorizations in the real database: who may approve a program, and how long its key works. `dash-6` attacks
them over HTTP.
"""

import pytest

from footplate.domain.errors import Conflict, NotFound, Unauthenticated
from footplate.domain.organisations.device_authorization import (
    AuthorizationDenied,
    AuthorizationPending,
    BrowserSessionRequired,
    DeviceCodeExpired,
    IssuedLoginKey,
)
from footplate.domain.organisations.sign_in import Browser, SignInLimitExceeded, SignInMethod
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.sign_in.device_authorizations import DeviceAuthorizationStore
from footplate.store.resources.sign_in.failures import SignInFailures

from .cell import Cell
from .test_browser_sessions import Person

TERMINAL = Browser.describe("10.3.0.1", "footplate")


class Program:
    """A program that asks to sign in."""

    def __init__(self, cell: Cell, person: Person) -> None:
        self.cell, self.person = cell, person
        self.store = DeviceAuthorizationStore(
            cell.database, SignInFailures(cell.database, person.admin.organisation, limit=1000)
        )

    async def start(self) -> None:
        self.codes = await self.store.begin("laptop", TERMINAL)

    async def approve(self, secret: str) -> None:
        principal = await ApiKeys(self.cell.database).authenticate(secret)
        await self.store.decide(principal, secret, self.codes.user_code.lower().replace("-", ""), "approve")

    async def fetch_key(self) -> IssuedLoginKey:
        async with self.cell.database.connection() as connection:
            await connection.execute("update device_authorizations set polled_at = null")
        return await self.store.fetch_key(self.codes.device_code, TERMINAL)


@pytest.fixture
async def person(cell: Cell) -> Person:
    return await Person.create(cell)


@pytest.fixture
async def program(cell: Cell, person: Person) -> Program:
    started = Program(cell, person)
    await started.start()
    return started


async def test_an_approved_program_gets_one_key_with_the_roles_of_the_person(program: Program, person: Person) -> None:
    with pytest.raises(AuthorizationPending):
        await program.fetch_key()
    await program.approve(await person.start())
    issued = await program.fetch_key()
    principal = await ApiKeys(program.cell.database).authenticate(issued.secret)
    assert (principal.id, principal.roles, issued.member_name) == (person.member_id, frozenset({"operator"}), "ann")
    with pytest.raises(DeviceCodeExpired):
        await program.fetch_key()


async def test_the_key_ends_with_the_key_that_approved_it(program: Program, person: Person) -> None:
    await program.approve(await person.start())
    issued = await program.fetch_key()
    await person.change(lambda unit: unit.rotate_api_key(person.admin, person.key_id))
    with pytest.raises(Unauthenticated):
        await ApiKeys(program.cell.database).authenticate(issued.secret)


async def test_a_key_cannot_approve_and_a_program_cannot_approve_another(program: Program, person: Person) -> None:
    with pytest.raises(BrowserSessionRequired):
        await program.approve(person.api_key)
    await program.approve(await person.start())
    issued = await program.fetch_key()
    _, secret = await person.sessions.start_with_key(issued.secret, TERMINAL)
    await program.start()
    with pytest.raises(BrowserSessionRequired):
        await program.approve(secret)


async def test_a_decision_is_final(program: Program, person: Person) -> None:
    secret = await person.start()
    principal = await ApiKeys(program.cell.database).authenticate(secret)
    denied = await program.store.decide(principal, secret, program.codes.user_code, "deny")
    assert denied.status == "denied"
    with pytest.raises(Conflict):
        await program.approve(secret)
    with pytest.raises(AuthorizationDenied):
        await program.fetch_key()


async def test_wrong_codes_are_limited(program: Program, person: Person) -> None:
    secret = await person.start()
    principal = await ApiKeys(program.cell.database).authenticate(secret)
    for _ in range(10):
        with pytest.raises(NotFound):
            await program.store.find(principal, secret, "BBBB-BBBB")
    for code in ("BBBB-BBBB", program.codes.user_code):  # the right code too, or guessing could go on
        with pytest.raises(SignInLimitExceeded):
            await program.store.find(principal, secret, code)


@pytest.mark.parametrize("is_enabled_again", [True, False])
async def test_disabling_a_member_withdraws_what_it_has_approved(
    program: Program, person: Person, *, is_enabled_again: bool
) -> None:
    async with person.cell.database.transaction() as connection:
        secret = await person.sessions.insert(
            connection, SignInMethod.OIDC, TERMINAL, person.admin.organisation, person.member_id, key=None
        )
    await program.approve(secret)
    await person.change(lambda unit: unit.update_member(person.admin, person.member_id, roles=None, disabled=True))
    if is_enabled_again:
        await person.change(lambda unit: unit.update_member(person.admin, person.member_id, roles=None, disabled=False))
    with pytest.raises(AuthorizationDenied):
        await program.fetch_key()
