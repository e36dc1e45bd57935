"""Inputs that the API accepts, the wakes that they cause, and the effect of a message on a busy session."""

import asyncio

import pytest

from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import Input
from footplate.domain.ports.engine import Claim, FinishedTurn
from footplate.domain.sessions import events, threads
from footplate.domain.sessions.turns import SessionStatus, SessionToWake, TurnStatus, WhenBusy

from .cell import (
    COMPLETED,
    Cell,
    awaiting,
    custom_tool_call,
    interrupt,
    message,
    new_principal,
    text_of,
    tool_result_for,
    types,
)


async def test_many_messages_cause_one_wake(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    accepted = await asyncio.gather(*(cell.send(principal, session_id, f"{n}") for n in range(20)))
    assert sum(item.wake for item in accepted) == 1


async def test_a_claim_clears_the_wake_and_the_next_message_sets_it_again(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    assert (await cell.send(principal, session_id, "one")).wake
    claim = await cell.claim(session_id, principal)
    assert not (await cell.head(session_id))["wake"]
    assert (await cell.send(principal, session_id, "two")).wake
    assert not (await cell.send(principal, session_id, "three")).wake
    assert (await cell.turns.finish(claim, COMPLETED)).has_more


async def test_the_end_of_a_turn_without_queued_messages_continues_nothing(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    claim = await cell.claim(session_id, principal)
    assert not (await cell.turns.finish(claim, COMPLETED)).has_more
    await cell.expect_nothing_to_claim(session_id, principal)
    assert (await cell.head(session_id))["holder"] is None


async def test_a_message_between_the_end_and_the_next_claim_is_not_lost(cell: Cell, principal: Principal) -> None:
    """Sends twenty messages against twenty ends of turns: each is either seen by the end or causes a wake."""
    session_id = await cell.session(principal, "0")
    for number in range(1, 21):
        claim = await cell.claim(session_id, principal)
        accepted, finished = await asyncio.gather(
            cell.send(principal, session_id, f"{number}"), cell.turns.finish(claim, COMPLETED)
        )
        assert accepted.wake or finished.has_more


async def test_sessions_with_a_lost_wake_are_found(cell: Cell, principal: Principal) -> None:
    from footplate.store.leases.worker_lease_store import WorkerLeases

    asleep = await cell.session(principal, "hello")
    running = await cell.session(principal, "hello")
    await cell.claim(running, principal)
    found = await WorkerLeases(cell.database).find_sessions_to_wake(older_than=0, lost_for=60, limit=10_000)
    assert SessionToWake(principal.organisation, asleep) in found
    assert SessionToWake(principal.organisation, running) not in found


async def test_a_message_to_an_idle_session_may_ask_to_be_rejected(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await cell.send(principal, session_id, message("one", WhenBusy.REJECT))
    before = await cell.all_rows(session_id)
    with pytest.raises(Conflict):
        await cell.send(principal, session_id, message("two", WhenBusy.REJECT))
    assert await cell.all_rows(session_id) == before


async def test_one_rejected_input_rejects_the_whole_request(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    before = await cell.all_rows(session_id)
    with pytest.raises(InvalidRequest):
        await cell.send(principal, session_id, "two", tool_result_for("sevt_unknown"))
    assert await cell.all_rows(session_id) == before


async def test_steering_joins_the_turn_but_not_before_queued_messages(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    accepted = await cell.send(principal, session_id, message("a", WhenBusy.STEER), message("b", WhenBusy.STEER))
    assert accepted.nudge
    await cell.send(principal, session_id, "queued")
    await cell.send(principal, session_id, message("behind", WhenBusy.STEER))

    messages, positions = await cell.turns.claim_steering(claim)

    assert [item.content[0]["text"] for item in messages] == ["a", "b"]
    assert [(text_of(item), item.processed_at is not None) for item in positions] == [("a", True), ("b", True)]
    assert await cell.turns.claim_steering(claim) == ([], ())
    await cell.turns.finish(claim, COMPLETED)
    following = await cell.claim(session_id, principal)
    assert following.content[0]["text"] == "queued"
    assert [item.content[0]["text"] for item in (await cell.turns.claim_steering(following))[0]] == ["behind"]


async def test_an_interrupt_reaches_the_running_turn_and_only_that(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    assert await cell.turns.claim_interrupts(claim) == (False, ())
    accepted = await cell.send(principal, session_id, interrupt())
    assert (accepted.nudge, accepted.wake, accepted.positions[0].processed_at) == (True, False, None)

    wanted, positions = await cell.turns.claim_interrupts(claim)
    assert (wanted, types(positions)) == (True, [events.USER_INTERRUPT])
    await cell.turns.finish(claim, COMPLETED)

    await cell.send(principal, session_id, "next")
    assert await cell.turns.claim_interrupts(await cell.claim(session_id, principal)) == (False, ())


async def test_an_interrupt_survives_the_worker_that_claimed_it(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    first = await cell.claim(session_id, principal)
    await cell.send(principal, session_id, interrupt())
    await cell.turns.claim_interrupts(first)
    assert await cell.turns.claim_interrupts(await cell.claim(session_id, principal)) == (True, ())


async def test_a_late_interrupt_is_marked_as_processed(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    await cell.send(principal, session_id, interrupt())
    positions = (await cell.turns.finish(claim, COMPLETED)).positions
    assert types(positions) == [events.USER_INTERRUPT, events.STATUS_IDLE]


async def test_an_interrupt_of_an_idle_session_does_nothing(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    accepted = await cell.send(principal, session_id, interrupt())
    assert (accepted.wake, accepted.nudge) == (False, False)
    assert accepted.positions[0].processed_at is not None
    await cell.expect_nothing_to_claim(session_id, principal)


async def test_a_message_that_interrupts_stops_the_turn_and_starts_the_next(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    assert (await cell.send(principal, session_id, message("instead", WhenBusy.INTERRUPT))).nudge
    assert await cell.turns.claim_interrupts(claim) == (True, ())
    assert (await cell.turns.finish(claim, COMPLETED)).has_more
    following = await cell.claim(session_id, principal)
    assert following.content[0]["text"] == "instead"
    assert await cell.turns.claim_interrupts(following) == (False, ())


async def _park(cell: Cell, principal: Principal, count: int) -> tuple[str, list[str], str]:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    asked = [custom_tool_call() for _ in range(count)]
    await cell.turns.append(claim, asked)
    finished = await cell.turns.finish(claim, awaiting(*asked))
    positions, more = finished.positions, finished.has_more
    assert (types(positions), more) == ([events.STATUS_IDLE], False)
    return session_id, [event.id for event in asked], claim.turn_id


async def test_partial_results_report_the_remaining_calls(cell: Cell, principal: Principal) -> None:
    session_id, asked, turn_id = await _park(cell, principal, 3)
    for number, resolved in enumerate((asked[1], asked[0])):
        assert (await cell.send(principal, session_id, tool_result_for(resolved))).wake
        nothing = await cell.expect_nothing_to_claim(session_id, principal)
        remaining = [asked[0], asked[2]] if number == 0 else [asked[2]]
        assert nothing.positions[0].event.body["stop_reason"] == {"type": "requires_action", "event_ids": remaining}
    assert (await cell.reads.session(principal, session_id)).status is SessionStatus.IDLE

    await cell.send(principal, session_id, tool_result_for(asked[2]))
    claim = await cell.claim(session_id, principal)

    assert (claim.turn_id, claim.attempt) == (turn_id, 2)
    assert claim.handovers == 1, "a turn may wait as often as it has questions: no worker was lost"
    results = [event for event in await cell.turns.turn_events(claim) if event.type == events.USER_CUSTOM_TOOL_RESULT]
    assert [event.body["custom_tool_use_id"] for event in results] == [asked[1], asked[0], asked[2]]


async def test_a_result_is_accepted_once(cell: Cell, principal: Principal) -> None:
    session_id, asked, _ = await _park(cell, principal, 2)
    with pytest.raises(InvalidRequest):
        await cell.send(principal, session_id, tool_result_for(asked[0]), tool_result_for(asked[0]))
    await cell.send(principal, session_id, tool_result_for(asked[0]))
    with pytest.raises(InvalidRequest):
        await cell.send(principal, session_id, tool_result_for(asked[0]))


async def test_a_result_may_arrive_before_the_turn_is_parked(cell: Cell, principal: Principal) -> None:
    """A client sees the call before the turn is parked, while other calls of the same response may still run."""
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    asked = [custom_tool_call(), custom_tool_call()]
    await cell.turns.append(claim, asked)
    await cell.send(principal, session_id, tool_result_for(asked[0].id))
    with pytest.raises(InvalidRequest):
        await cell.send(principal, session_id, tool_result_for(asked[0].id))

    finished = await cell.turns.finish(claim, awaiting(*asked))
    positions, more = finished.positions, finished.has_more

    assert more
    assert positions[-1].event.body["stop_reason"] == {"type": "requires_action", "event_ids": [asked[1].id]}
    await cell.send(principal, session_id, tool_result_for(asked[1].id))
    assert (await cell.claim(session_id, principal)).turn_id == claim.turn_id


async def test_a_turn_with_all_results_never_becomes_idle(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    asked = custom_tool_call()
    await cell.turns.append(claim, [asked])
    await cell.send(principal, session_id, tool_result_for(asked.id))

    assert await cell.turns.finish(claim, awaiting(asked)) == FinishedTurn([], has_more=True)

    assert (await cell.reads.session(principal, session_id)).status is SessionStatus.RUNNING
    resumed = await cell.claim(session_id, principal)
    assert (resumed.turn_id, resumed.positions) == (claim.turn_id, ())
    statuses = [
        kind for kind in types(await cell.positions(session_id, principal)) if kind.startswith("session.status")
    ]
    assert statuses == [events.STATUS_RUNNING]


async def test_an_interrupt_after_the_last_result_stops_the_resumed_turn(cell: Cell, principal: Principal) -> None:
    session_id, asked, _ = await _park(cell, principal, 1)
    await cell.send(principal, session_id, interrupt())  # the session is idle, so the interrupt has no effect
    await cell.send(principal, session_id, tool_result_for(asked[0]))
    assert (await cell.send(principal, session_id, interrupt())).nudge
    claim = await cell.claim(session_id, principal)
    wanted, positions = await cell.turns.claim_interrupts(claim)
    assert (wanted, types(positions)) == (True, [events.USER_INTERRUPT])


@pytest.mark.requirement("K9")
async def test_a_new_message_ends_a_parked_turn(cell: Cell, principal: Principal) -> None:
    session_id, asked, turn_id = await _park(cell, principal, 1)
    await cell.send(principal, session_id, "never mind")

    claim = await cell.claim(session_id, principal)

    assert claim.turn_id != turn_id
    assert claim.content[0]["text"] == "never mind"
    superseded = await cell.reads.turn(principal, session_id, turn_id)
    assert (superseded.status, superseded.result["superseded"]) == (TurnStatus.COMPLETED, True)
    assert superseded.ended_at is not None
    with pytest.raises(InvalidRequest):
        await cell.send(principal, session_id, tool_result_for(asked[0]))


async def test_an_archived_session_accepts_no_input(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_session(principal, session_id)
    with pytest.raises(InvalidRequest):
        await cell.send(principal, session_id, "hello")


async def test_a_session_of_another_organisation_accepts_no_input(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    with pytest.raises(NotFound):
        await cell.send(new_principal(), session_id, "hello")
    assert await cell.positions(session_id, principal) == []


async def _start_thread(cell: Cell, principal: Principal) -> tuple[str, Claim]:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    await cell.turns.append(claim, [threads.created("sthr_a", "scout", "c1"), threads.running("sthr_a", "scout")])
    return session_id, claim


def _interrupt_thread(thread_id: str) -> Input:
    return Input(type=events.USER_INTERRUPT, body={threads.THREAD_ID: thread_id})


@pytest.mark.requirement("K10")
async def test_an_interrupt_of_one_thread_does_not_stop_the_turn(cell: Cell, principal: Principal) -> None:
    session_id, claim = await _start_thread(cell, principal)
    assert (await cell.send(principal, session_id, _interrupt_thread("sthr_a"))).nudge
    wanted, positions = await cell.turns.claim_interrupts(claim)
    assert (wanted, types(positions)) == (False, [events.USER_INTERRUPT])
    assert await cell.turns.interrupted_threads(claim) == ["sthr_a"]
    following = await cell.claim(session_id, principal)  # the worker was lost
    assert await cell.turns.claim_interrupts(following) == (False, ())
    assert await cell.turns.interrupted_threads(following) == ["sthr_a"]
    await cell.send(principal, session_id, _interrupt_thread(threads.primary_id(session_id)))
    assert (await cell.turns.claim_interrupts(following))[0]
    with pytest.raises(InvalidRequest, match="no thread with the ID"):
        await cell.send(principal, session_id, _interrupt_thread("sthr_b"))


@pytest.mark.requirement("K10")
async def test_an_interrupt_of_a_waiting_thread_closes_its_calls(cell: Cell, principal: Principal) -> None:
    session_id, claim = await _start_thread(cell, principal)
    inside, outside = threads.in_thread(custom_tool_call(), "sthr_a"), custom_tool_call()
    await cell.turns.append(claim, [inside, outside])
    await cell.turns.finish(claim, awaiting(inside, outside))
    accepted = await cell.send(principal, session_id, _interrupt_thread("sthr_a"))
    assert types(accepted.positions) == [events.USER_INTERRUPT, events.USER_CUSTOM_TOOL_RESULT]
    closed = accepted.positions[1].event.body
    assert (closed["custom_tool_use_id"], closed["is_error"], closed[threads.THREAD_ID]) == (inside.id, True, "sthr_a")
    nothing = await cell.expect_nothing_to_claim(session_id, principal)
    assert nothing.positions[-1].event.body["stop_reason"] == {"type": "requires_action", "event_ids": [outside.id]}
    again = await cell.send(principal, session_id, _interrupt_thread("sthr_a"))
    assert types(again.positions) == [events.USER_INTERRUPT]
    await cell.send(principal, session_id, tool_result_for(outside.id))
    resumed = await cell.claim(session_id, principal)
    assert resumed.turn_id == claim.turn_id
    assert await cell.turns.claim_interrupts(resumed) == (False, ())
    assert await cell.turns.interrupted_threads(resumed) == ["sthr_a"]
