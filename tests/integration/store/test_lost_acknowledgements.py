"""A commit took effect but its acknowledgement was lost: the worker retries and nothing happens twice."""

import pytest

from footplate.domain.errors import Fenced
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.shell_state import ShellState
from footplate.domain.sessions.turns import WhenBusy

from .cell import COMPLETED, Cell, interrupt, message, types

USAGE = Usage(input_tokens=10, output_tokens=2, requests=1, cost_microusd=7)


@pytest.mark.requirement("S6")
@pytest.mark.parametrize("times", [1, 2, 3])
async def test_an_append_takes_effect_once(cell: Cell, principal: Principal, times: int) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    new = [events.message("a"), events.message("b")]
    cell.database.acknowledgements_to_lose = times

    positions = await cell.turns.append(claim, new, entries=[Entry("k", {"n": 1})], usage=USAGE)

    assert cell.database.acknowledgements_to_lose == 0
    stored = await cell.positions(session_id, principal)
    assert [(item.seq, item.event.id) for item in positions] == [(4, new[0].id), (5, new[1].id)]
    assert [(item.seq, item.event.id) for item in stored[3:]] == [(4, new[0].id), (5, new[1].id)]
    assert await cell.turns.entries(claim, 0) == [Entry("k", {"n": 1})]
    session = await cell.reads.session(principal, session_id)
    turn = await cell.reads.turn(principal, session_id, claim.turn_id)
    assert (session.usage, turn.usage) == (USAGE, USAGE)


async def test_entries_without_events_are_added_once(cell: Cell, principal: Principal) -> None:
    """An interrupted turn closes its open calls this way: every model refuses a call with two results."""
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    cell.database.acknowledgements_to_lose = 1

    await cell.turns.append(claim, [], entries=[Entry("k", {"n": 1})])

    assert await cell.turns.entries(claim, 0) == [Entry("k", {"n": 1})]


async def test_a_turn_ends_once_and_queued_messages_are_not_lost(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one", "two")
    claim = await cell.claim(session_id, principal)
    cell.database.acknowledgements_to_lose = 1

    finished = await cell.turns.finish(claim, COMPLETED)
    positions, more = finished.positions, finished.has_more

    assert more
    assert types(positions) == [events.STATUS_IDLE]
    assert types(await cell.positions(session_id, principal)).count(events.STATUS_IDLE) == 1
    following = await cell.claim(session_id, principal)
    assert (following.content[0]["text"], following.attempt) == ("two", 1)


async def test_a_failure_is_counted_once(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    cell.database.acknowledgements_to_lose = 1

    await cell.turns.reschedule(claim, "model_overloaded_error", "busy")

    again = await cell.claim(session_id, principal)
    assert (again.failures, again.attempt, types(again.positions)) == (1, 2, [events.STATUS_RUNNING])
    assert types(await cell.positions(session_id, principal)).count(events.STATUS_RESCHEDULED) == 1


async def test_an_interrupt_is_claimed_once(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    await cell.send(principal, session_id, interrupt())
    cell.database.acknowledgements_to_lose = 2  # the read and the append

    assert (await cell.turns.claim_interrupts(claim))[0]
    assert types(await cell.positions(session_id, principal)).count(events.USER_INTERRUPT) == 2


async def test_steering_claimed_by_an_earlier_attempt_is_returned_again(cell: Cell, principal: Principal) -> None:
    """Claiming marks the message as processed, but the append to the conversation may never happen."""
    session_id = await cell.session(principal, "go")
    first = await cell.claim(session_id, principal)
    await cell.send(principal, session_id, message("join", WhenBusy.STEER))
    taken, positions = await cell.turns.claim_steering(first)
    assert len(positions) == len(taken) == 1

    second = await cell.claim(session_id, principal)
    again, positions = await cell.turns.claim_steering(second)

    assert (again, positions) == (taken, ())


@pytest.mark.requirement("K7")
async def test_the_shell_is_recorded_with_its_event_and_only_by_the_turns_worker(
    cell: Cell, principal: Principal
) -> None:
    session_id = await cell.session(principal, "go")
    stale = await cell.claim(session_id, principal)
    first, second = (ShellState(directory=name, variables={"A": "1"}) for name in ("first", "second"))
    cell.database.acknowledgements_to_lose = 1
    await cell.turns.append(stale, [events.message("a")], shell=first)
    claim = await cell.claim(session_id, principal, "wrkr_2")
    assert claim.shell == first
    with pytest.raises(Fenced):
        await cell.turns.append(stale, [events.message("b")], shell=second)
    await cell.turns.append(claim, [events.message("b")])
    await cell.turns.finish(claim, COMPLETED)
    await cell.send(principal, session_id, "more")
    assert (await cell.claim(session_id, principal)).shell == first
