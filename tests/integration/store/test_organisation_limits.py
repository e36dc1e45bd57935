"""Limits of organisations and members in the real database: they hold however many processes use them at once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from footplate.api.requests.organisation_limit_guard import OrganisationLimitGuard
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.organisations.limits import (
    EACH_MEMBER,
    ORGANISATION,
    LimitName,
    OrganisationLimitExceeded,
)
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions.turns import Activity, ActivityState, SessionToWake, StallReason
from footplate.stack import Stack
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.deferred_turns import DeferredTurns
from footplate.store.resources import limits
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.limits import LimitStore
from footplate.stream import redis_connections
from footplate.stream.organisation_counters import RequestRates, StreamCounts

from .cell import COMPLETED, Cell, awaiting, custom_tool_call, new_principal, tool_result_for
from .test_feed import read_feed
from .test_files import upload

TURNS = LimitName.CONCURRENT_TURNS


async def limit(
    cell: Cell, principal: Principal, name: LimitName, value: int | None, scope: str = ORGANISATION
) -> None:
    await LimitStore(cell.database).set_operator_limit(principal.organisation, name, scope, value)


async def count_accepted(*attempts: Awaitable[object]) -> int:
    """Runs the attempts at the same time. All that fail must be refused because of a limit."""
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert all(isinstance(error, OrganisationLimitExceeded) for error in refused), refused
    return len(outcomes) - len(refused)


async def test_sessions_are_limited_also_forks(cell: Cell, principal: Principal) -> None:
    await limit(cell, principal, LimitName.SESSIONS, 3)
    colleague = new_principal(principal.organisation)
    first = await cell.session(principal)
    # Each call has its own unit of work factory, as each API process has.
    attempts = [*(cell.session(who) for who in (principal, colleague) * 3), cell.fork(principal, first)]
    assert await count_accepted(*attempts) == 2
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_session(principal, first)
    await cell.session(colleague)
    await cell.session(new_principal())  # another organisation


async def test_queued_steps_are_limited_until_their_turns_begin(cell: Cell, principal: Principal) -> None:
    sessions = [await cell.session(principal) for _ in range(2)]
    await limit(cell, principal, LimitName.QUEUED_STEPS, 3)
    assert await count_accepted(*(cell.send(principal, each, "one") for each in sessions * 4)) == 3
    claims = [await cell.claims.claim(principal.organisation, each, "wrkr_1") for each in sessions]
    begun = sum(isinstance(claim, Claim) for claim in claims)
    assert await count_accepted(*(cell.send(principal, each, "two") for each in sessions * 4)) == begun
    with pytest.raises(OrganisationLimitExceeded, match="queued_steps"):
        await cell.session(principal, "a session with its task")


async def test_each_member_has_a_limit_of_its_own(cell: Cell, principal: Principal) -> None:
    colleague = new_principal(principal.organisation)
    await limit(cell, principal, LimitName.QUEUED_STEPS, 1, EACH_MEMBER)
    session_id = await cell.session(principal, "one")
    await cell.send(colleague, session_id, "two")
    for who in (principal, colleague):
        with pytest.raises(OrganisationLimitExceeded, match=r"queued_steps of the member 'test' is reached: 1"):
            await cell.send(who, session_id, "three")


async def test_stored_bytes_are_limited_until_a_file_is_deleted(cell: Cell, principal: Principal) -> None:
    await limit(cell, principal, LimitName.STORED_BYTES, 10)
    first = await upload(cell, principal, b"1234")
    assert await count_accepted(*(upload(cell, principal, b"123") for _ in range(5))) == 2
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_file(principal, first.id)
    await upload(cell, principal, b"1234")


async def test_administrators_cannot_exceed_the_operator(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CACHE_SECONDS", 0.0)
    keys, store = ApiKeys(cell.database), LimitStore(cell.database, {(LimitName.STREAMS, ORGANISATION): 9})
    admin = await keys.authenticate(await keys.create_key(new_principal().organisation, "first", ["admin"]))
    await limit(cell, admin, LimitName.SESSIONS, 5)
    for scope, value in ((ORGANISATION, 4), (admin.id, 7)):
        async with cell.units.unit(admin, None) as unit:
            await unit.set_limit(admin, LimitName.SESSIONS, scope, value)
    found = await store.load(admin.organisation)
    assert (found.value(LimitName.SESSIONS, ORGANISATION), found.value(LimitName.SESSIONS, admin.id)) == (4, 7)
    assert found.value(LimitName.STREAMS, ORGANISATION) == 9  # the server's default
    described = [
        found.describe_use(*each) for each in ((LimitName.SESSIONS, ORGANISATION), (LimitName.STREAMS, ORGANISATION))
    ]
    assert [(use.value, use.own_value, use.operator_value) for use in described] == [(4, 4, 5), (9, None, 9)]
    for scope, value, error in ((ORGANISATION, 6, InvalidRequest), ("memb_none", 1, NotFound)):
        with pytest.raises(error):
            async with cell.units.unit(admin, None) as unit:
                await unit.set_limit(admin, LimitName.SESSIONS, scope, value)
    async with cell.units.unit(admin, None) as unit:
        await unit.set_limit(admin, LimitName.SESSIONS, ORGANISATION, None)
    assert (await store.load(admin.organisation)).value(LimitName.SESSIONS, ORGANISATION) == 5
    assert admin.organisation in await store.find_limited_organisations()
    async with cell.database.connection() as connection:
        recorded = await connection.fetchval("select count(*) from audit where organisation = $1", admin.organisation)
    assert recorded == 3


async def _release(cell: Cell, principal: Principal) -> list[str]:
    """Returns the sessions of the organisation whose deferred turns may start now."""
    released = await DeferredTurns(cell.database, LimitStore(cell.database)).release_turns()
    return [session_id for organisation, session_id, *_ in released if organisation == principal.organisation]


async def test_a_turn_beyond_the_limit_waits_for_a_slot(cell: Cell, principal: Principal) -> None:
    await limit(cell, principal, TURNS, 1)
    sessions = [await cell.session(principal, "go") for _ in range(3)]
    running = await cell.claim(sessions[0], principal)
    leases = WorkerLeases(cell.database)
    await leases.renew_lease("wrkr_1", "host", 60, [])
    before = await cell.all_rows(sessions[1])
    await cell.expect_nothing_to_claim(sessions[1], principal)
    after = await cell.all_rows(sessions[1])
    assert (before["session_heads"][0].pop("deferred"), after["session_heads"][0].pop("deferred")) == (
        None,
        ORGANISATION,
    )
    assert after == before
    reported = [each for each in await read_feed(cell, principal) if each.session_id == sessions[1]]
    assert [each.event.event.type for each in reported if each.event] == ["session.created", "limit.reached"]
    activity = (await cell.reads.session(principal, sessions[1])).activity
    assert activity == Activity(ActivityState.QUEUED, StallReason.TURN_LIMIT)
    found = await leases.find_sessions_to_wake(older_than=0, lost_for=60, limit=1000)
    assert SessionToWake(principal.organisation, sessions[1]) not in found
    assert await _release(cell, principal) == []
    await cell.turns.finish(running, COMPLETED)
    await cell.expect_nothing_to_claim(sessions[2], principal)  # an older turn waits for the free slot
    assert await _release(cell, principal) == [sessions[1]]
    claim = await cell.claim(sessions[1], principal)
    assert claim.frees_turn_slot
    assert await _release(cell, principal) == []
    await limit(cell, principal, TURNS, None)
    assert await _release(cell, principal) == [sessions[2]]
    await leases.end_lease("wrkr_1")


async def test_a_released_turn_whose_wake_is_lost_is_found_by_the_sweep(cell: Cell, principal: Principal) -> None:
    await limit(cell, principal, TURNS, 0)
    session_id = await cell.session(principal, "go")
    await cell.expect_nothing_to_claim(session_id, principal)
    await limit(cell, principal, TURNS, 1)
    assert await _release(cell, principal) == [session_id]
    found = await WorkerLeases(cell.database).find_sessions_to_wake(older_than=0, lost_for=60, limit=1000)
    assert SessionToWake(principal.organisation, session_id) in found
    await cell.claim(session_id, principal)


async def test_claims_at_the_same_time_do_not_exceed_the_limit(cell: Cell, principal: Principal) -> None:
    sessions = [await cell.session(principal, "go") for _ in range(6)]
    await limit(cell, principal, TURNS, 2)
    found = await asyncio.gather(*(cell.claims.claim(principal.organisation, each, "wrkr_1") for each in sessions))
    assert sum(isinstance(each, Claim) for each in found) == 2


async def _wait_for_result(cell: Cell, principal: Principal, session_id: str) -> Callable[[], Awaitable[object]]:
    """Parks the session's turn. The returned function sends what it waits for."""
    claim = await cell.claim(session_id, principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    return lambda: cell.send(principal, session_id, tool_result_for(call.id))


async def test_a_parked_turn_has_no_slot_and_needs_one_to_resume(cell: Cell, principal: Principal) -> None:
    await limit(cell, principal, TURNS, 1)
    parked, other = await cell.session(principal, "ask"), await cell.session(principal, "go")
    send_result = await _wait_for_result(cell, principal, parked)
    running = await cell.claim(other, principal)
    await send_result()
    await cell.expect_nothing_to_claim(parked, principal)
    resumed = await cell.claim(other, principal, "wrkr_2")  # its worker was lost: the turn still has its slot
    assert (resumed.turn_id, resumed.attempt) == (running.turn_id, 2)
    await cell.turns.finish(resumed, COMPLETED)
    assert await _release(cell, principal) == [parked]
    assert (await cell.claim(parked, principal)).attempt == 2


async def test_a_member_at_its_limit_does_not_hold_up_the_others(cell: Cell, principal: Principal) -> None:
    colleague = new_principal(principal.organisation)
    await limit(cell, principal, TURNS, 1, EACH_MEMBER)
    await limit(cell, principal, TURNS, 2)
    mine = [await cell.session(principal, "go") for _ in range(2)]
    theirs = await cell.session(colleague, "go")
    running = await cell.claim(mine[0], principal)
    await cell.expect_nothing_to_claim(mine[1], principal)
    assert (await cell.head(mine[1]))["deferred"] == principal.id
    await cell.claim(theirs, colleague)
    await cell.turns.finish(running, COMPLETED)
    assert await _release(cell, principal) == [mine[1]]


async def test_a_deleted_session_waits_for_nothing(cell: Cell, principal: Principal) -> None:
    await limit(cell, principal, TURNS, 0)
    session_id = await cell.session(principal, "go")
    await cell.expect_nothing_to_claim(session_id, principal)
    await cell.delete(principal, session_id)
    await limit(cell, principal, TURNS, None)
    assert await _release(cell, principal) == []


def test_the_names_of_queries_match_the_limits() -> None:
    from footplate.store.database import SQL

    counted = {LimitName.CONCURRENT_TURNS, LimitName.QUEUED_STEPS, LimitName.SESSIONS, LimitName.STORED_BYTES}
    assert {name for name in SQL if name.startswith("used_")} == {f"used_{name}" for name in counted}


async def test_counts_follow_what_happens(cell: Cell, principal: Principal) -> None:
    store = LimitStore(cell.database)

    async def count(name: LimitName) -> int:
        return sum((await store.count_used(principal.organisation, name)).values())

    session_id = await cell.session(principal, "one", "two")
    await upload(cell, principal, b"1234")
    names = (LimitName.SESSIONS, LimitName.QUEUED_STEPS, TURNS, LimitName.STORED_BYTES)
    assert [await count(name) for name in names] == [1, 2, 0, 4]
    claim = await cell.claim(session_id, principal)
    assert [await count(name) for name in names] == [1, 1, 1, 4]
    await cell.turns.reschedule(claim, "unknown_error", "again")
    assert await count(TURNS) == 1  # it waits for its next attempt
    claim = await cell.claim(session_id, principal)
    await cell.turns.finish(claim, COMPLETED)
    assert [await count(name) for name in names] == [1, 1, 0, 4]


async def test_a_guard_checks_and_reports_all_limits(cell: Cell, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CACHE_SECONDS", 0.0)
    keys = ApiKeys(cell.database)
    member = await keys.authenticate(await keys.create_key(new_principal().organisation, "ann", ["admin"]))
    redis = redis_connections.create_command_client(stack.settings.redis_url)
    replicas = [
        OrganisationLimitGuard(LimitStore(cell.database), RequestRates(redis), StreamCounts(redis)) for _ in range(2)
    ]
    await upload(cell, member, b"1234")
    unlimited = await replicas[0].read_limits(member)
    assert [(use.name, use.scope, use.value) for use in unlimited] == [(name, ORGANISATION, None) for name in LimitName]
    values = {LimitName.STREAMS: 1, LimitName.REQUESTS_PER_SECOND: 1, LimitName.STORED_BYTES: 10}
    for name, value in values.items():
        await limit(cell, member, name, value)
    await limit(cell, member, LimitName.STREAMS, 1, EACH_MEMBER)
    await replicas[0].open_stream(member)
    with pytest.raises(OrganisationLimitExceeded, match="streams of the member 'ann'"):
        await replicas[1].open_stream(member)
    assert await count_accepted(*(replicas[number % 2].check_request(member) for number in range(30))) == 10
    await replicas[1].check_stored_bytes(member, 6)
    with pytest.raises(OrganisationLimitExceeded, match="stored_bytes"):
        await replicas[1].check_stored_bytes(member, 7)
    shown = {
        (use.name, use.scope): (use.value, use.used, use.member_name) for use in await replicas[1].read_limits(member)
    }
    assert shown[LimitName.STREAMS, EACH_MEMBER] == (1, None, None)
    assert shown[LimitName.STREAMS, member.id] == (1, 1, "ann")
    assert shown[LimitName.SESSIONS, ORGANISATION] == (None, 0, None)
    reported = await replicas[1].read_all()
    assert {name: reported[member.organisation, name].used for name in values} == {
        LimitName.STREAMS: 1,
        LimitName.REQUESTS_PER_SECOND: 1,
        LimitName.STORED_BYTES: 4,
    }
    await redis.aclose()


async def test_members_see_their_own_use_and_not_that_of_others(
    cell: Cell, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CACHE_SECONDS", 0.0)
    keys, organisation = ApiKeys(cell.database), new_principal().organisation
    admin, ann, bob = [
        await keys.authenticate(await keys.create_key(organisation, name, [role]))
        for name, role in (("root", "admin"), ("ann", "member"), ("bob", "member"))
    ]
    for _ in range(2):
        await cell.session(bob)
    await cell.session(ann)
    for scope in (ORGANISATION, EACH_MEMBER):
        await limit(cell, admin, LimitName.SESSIONS, 10, scope)
    redis = redis_connections.create_command_client(stack.settings.redis_url)
    guard = OrganisationLimitGuard(LimitStore(cell.database), RequestRates(redis), StreamCounts(redis))

    async def shown_to(member: Principal) -> dict[str, float | None]:
        uses = await guard.read_limits(member)
        return {use.scope: use.used for use in uses if use.name is LimitName.SESSIONS}

    assert await shown_to(ann) == {ORGANISATION: None, EACH_MEMBER: None, ann.id: 1}
    assert await shown_to(admin) == {ORGANISATION: 3, EACH_MEMBER: None, admin.id: 0}
    await redis.aclose()
