"""Sequence numbers have no gaps, follow the order of each concurrent writer, and are fenced by the epoch."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random

import pytest

from footplate.domain.errors import Fenced
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.engine import Claim
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Position, Usage
from footplate.domain.sessions.turns import WhenBusy

from .cell import COMPLETED, Cell, interrupt, message, text_of

OldHolderAction = Callable[[Cell, Claim], Awaitable[object]]


@pytest.mark.parametrize("seed", range(5))
async def test_concurrent_appends_have_no_gap_and_keep_each_writers_order(
    cell: Cell, principal: Principal, seed: int
) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    random = Random(seed)

    async def client(number: int, sizes: list[int]) -> list[Position]:
        received: list[Position] = []
        for n, size in enumerate(sizes):
            texts = [f"{number}.{n}.{item}" for item in range(size)]
            received += (await cell.send(principal, session_id, *texts)).positions
        return received

    async def worker(sizes: list[int]) -> list[Position]:
        received: list[Position] = []
        for size in sizes:
            received += await cell.turns.append(claim, [events.message("x") for _ in range(size)])
        return received

    def sizes(count: int) -> list[int]:
        return [random.randint(1, 4) for _ in range(count)]

    writers = [client(number, sizes(8)) for number in range(8)]
    reported = await asyncio.gather(*writers, worker(sizes(20)), worker(sizes(20)))

    stored = await cell.positions(session_id, principal)
    assert [position.seq for position in stored] == list(range(1, len(stored) + 1))
    assert (await cell.head(session_id))["seq"] == len(stored)
    ids_by_seq = {position.seq: position.event.id for position in stored}
    for received in reported:
        seqs = [position.seq for position in received]
        assert seqs == sorted(set(seqs))
        assert all(ids_by_seq[position.seq] == position.event.id for position in received)
    assert sum(map(len, reported)) == len(stored) - 3  # the first message, its second position and status_running


async def test_queued_messages_are_claimed_in_the_order_of_their_numbers(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await asyncio.gather(*(cell.send(principal, session_id, f"{n}") for n in range(20)))
    accepted = [text_of(position) for position in await cell.positions(session_id, principal)]

    taken = []
    for _ in accepted:
        claim = await cell.claim(session_id, principal)
        taken.append(str(claim.content[0]["text"]))
        await cell.turns.finish(claim, COMPLETED)

    assert taken == accepted
    await cell.expect_nothing_to_claim(session_id, principal)


async def _append(cell: Cell, old: Claim) -> object:
    return await cell.turns.append(old, [events.message("late")], entries=[Entry("k", {})], usage=Usage(requests=1))


async def _append_entry(cell: Cell, old: Claim) -> object:
    return await cell.turns.append(old, [], entries=[Entry("k", {})])


async def _finish(cell: Cell, old: Claim) -> object:
    return await cell.turns.finish(old, COMPLETED)


async def _reschedule(cell: Cell, old: Claim) -> object:
    return await cell.turns.reschedule(old, "unknown_error", "late")


async def _take_steering(cell: Cell, old: Claim) -> object:
    return await cell.turns.claim_steering(old)


async def _take_interrupts(cell: Cell, old: Claim) -> object:
    return await cell.turns.claim_interrupts(old)


@pytest.mark.requirement("O4")
@pytest.mark.parametrize("action", [_append, _append_entry, _finish, _reschedule, _take_steering, _take_interrupts])
async def test_a_worker_that_lost_its_turn_changes_nothing(
    cell: Cell, principal: Principal, action: OldHolderAction
) -> None:
    session_id = await cell.session(principal, "go")
    old = await cell.claim(session_id, principal, "wrkr_old")
    await cell.send(principal, session_id, message("join", WhenBusy.STEER), interrupt())
    new = await cell.claim(session_id, principal, "wrkr_new")
    before = await cell.all_rows(session_id)

    with pytest.raises(Fenced):
        await action(cell, old)

    assert await cell.all_rows(session_id) == before
    await cell.turns.append(new, [events.message("mine")])


async def test_an_ended_turn_accepts_no_events(cell: Cell, principal: Principal) -> None:
    """The workflow requests the next turn at once. The claim that follows an end fences the previous one."""
    session_id = await cell.session(principal, "one", "two")
    first = await cell.claim(session_id, principal)
    await cell.turns.finish(first, COMPLETED)
    second = await cell.claim(session_id, principal)
    assert (second.turn_id != first.turn_id, second.attempt) == (True, 1)
    with pytest.raises(Fenced):
        await cell.turns.append(first, [events.message("late")])


async def test_an_unknown_epoch_cannot_write(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    for wrong in (replace(claim, epoch=claim.epoch + 1), replace(claim, organisation="org_other")):
        with pytest.raises(Fenced):
            await cell.turns.append(wrong, [events.message("x")])


async def test_a_lost_turn_is_resumed_with_its_events_and_entries(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    first = await cell.claim(session_id, principal, "wrkr_1")
    written = events.message("so far")
    await cell.turns.append(first, [written], entries=[Entry("k", {"n": 1})])

    second = await cell.claim(session_id, principal, "wrkr_2")

    assert (second.turn_id, second.attempt, second.epoch) == (first.turn_id, 2, first.epoch + 1)
    assert (second.entries, second.old_holder) == (1, "wrkr_1")
    assert written.id in [event.id for event in await cell.turns.turn_events(second)]
    assert await cell.turns.entries(second, 0) == [Entry("k", {"n": 1})]
    assert second.positions == ()
