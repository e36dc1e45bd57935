"""The snapshot of a session's files at each position of its log: committed with the events and used by forks."""

from dataclasses import replace
from datetime import timedelta

import pytest

from footplate.domain import events
from footplate.domain.errors import Fenced, InvalidRequest, NotFound
from footplate.domain.principals import Principal
from footplate.domain.running import Claim
from footplate.domain.services import DiffAsked, ForkPoint
from footplate.domain.snapshots import SCRATCH, KeptSnapshot, Snapshot, TreeSnapshot, prefix_of
from footplate.store.diffs import DiffReads
from footplate.store.retention_deletions import Deletions

from .cell import ANSWERED, Cell, somebody


def kept(number: int, *, apart: str | None = None) -> KeptSnapshot:
    return KeptSnapshot(number, Snapshot(f"{number:040d}", apart), base="b" * 40)


def told(number: int, *, begins: bool = False) -> list[TreeSnapshot]:
    return [TreeSnapshot(SCRATCH, kept(number), begins)]


async def turn(cell: Cell, who: Principal, session_id: str, *numbers: int) -> list[str]:
    """Runs a turn with a snapshot for each tool result and one for its end. Returns the ids of the results."""
    await cell.send(who, session_id, "go on")
    claim = await cell.claim(session_id, who)
    results = [events.tool_result(f"use {n}", [], is_error=False, call_id=f"{n}") for n in numbers]
    for number, result in zip(numbers, results, strict=True):
        await cell.turns.append(claim, [result, events.model_request_start()], files=told(number))
    await cell.turns.finish(claim, ANSWERED, told(numbers[-1] + 100))
    return [result.id for result in results]


async def latest(cell: Cell, who: Principal, session_id: str) -> Claim:
    await cell.send(who, session_id, "and now?")
    return await cell.claim(session_id, who)


async def test_the_next_turn_finds_the_newest(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who)
    await turn(cell, who, session_id, 1, 2)
    claim = await latest(cell, who, session_id)
    assert claim.files.kept == {SCRATCH: kept(102)}
    with_more = replace(kept(103, apart="a" * 40), left_out=("pipe: neither",))
    await cell.turns.append(claim, (), files=[TreeSnapshot(SCRATCH, with_more)])
    assert (await cell.claim(session_id, who)).files.kept == {SCRATCH: with_more}


@pytest.mark.requirement("K11")
async def test_they_are_told_with_the_events_or_not_at_all(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "begin")
    stale = await cell.claim(session_id, who)
    claim = await cell.claim(session_id, who, "wrkr_2")
    with pytest.raises(Fenced):
        await cell.turns.append(stale, [events.message("late")], files=told(1))
    assert await cell.rows("snapshots", session_id) == []
    cell.database.forget = 1
    await cell.turns.append(claim, [events.message("once")], files=told(1))
    cell.database.forget = 1
    await cell.turns.append(claim, (), files=told(2))
    (row,) = await cell.rows("snapshots", session_id)
    assert (row["number"], row["seq"]) == (2, (await cell.head(session_id))["seq"])


async def test_a_fork_has_those_of_its_event_and_goes_on_from_there(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who)
    first, second = await turn(cell, who, session_id, 1, 2)
    fork = await cell.fork(who, session_id, first)
    claim = await latest(cell, who, fork.id)
    assert (claim.files.kept, claim.files.owners) == ({SCRATCH: kept(1)}, (session_id,))
    await cell.turns.append(claim, [events.message("x")], files=told(7))
    of_fork = await cell.fork(who, fork.id)
    claim = await latest(cell, who, of_fork.id)
    assert (claim.files.kept, claim.files.owners) == ({SCRATCH: kept(7)}, (fork.id, session_id))
    before = await cell.fork(who, fork.id, 1)
    assert (await latest(cell, who, before.id)).files.kept == {}
    assert (await latest(cell, who, session_id)).files.kept == {SCRATCH: kept(102)}
    assert second


async def test_a_diff_is_between_two_moments_of_the_log(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who)
    first, second = await turn(cell, who, session_id, 1, 2)
    await cell.send(who, session_id, "more")
    claim = await cell.claim(session_id, who)
    await cell.turns.append(claim, [events.tool_use("bash", {}, call_id="c")], files=told(3, begins=True))
    await cell.turns.append(claim, [events.message("x")], files=told(4))
    await cell.turns.append(claim, [events.message("y")], files=told(5))
    reads = DiffReads(cell.database, cell.objects)

    async def found(asked: DiffAsked) -> tuple[KeptSnapshot | None, KeptSnapshot | None]:
        (diff,) = await reads.find(who, session_id, asked)
        return diff.old, diff.new

    assert await found(DiffAsked()) == (None, kept(5))
    assert await found(DiffAsked(turn_id=claim.turn_id)) == (kept(3), kept(5))
    between = DiffAsked(old=ForkPoint(event_id=first), new=ForkPoint(event_id=second))
    assert await found(between) == (kept(1), kept(2))
    assert await found(DiffAsked(new=ForkPoint(position=0))) == (None, None)
    (diff,) = await reads.find(who, session_id, DiffAsked(old=ForkPoint(event_id=second)))
    assert diff.ids == (f"{2:040d}", f"{5:040d}")
    (diff,) = await reads.find(who, session_id, DiffAsked())
    assert diff.ids == ("b" * 40, f"{5:040d}")


async def test_what_cannot_be_found_is_said(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who)
    reads = DiffReads(cell.database, cell.objects)
    with pytest.raises(NotFound):
        await reads.find(somebody(), session_id, DiffAsked())
    with pytest.raises(NotFound):
        await reads.find(who, session_id, DiffAsked(turn_id="turn_none"))
    with pytest.raises(InvalidRequest, match="from_event_id"):
        await reads.find(who, session_id, DiffAsked(old=ForkPoint(event_id="sevt_none")))
    with pytest.raises(InvalidRequest, match="is not a project of session"):
        await reads.find(who, session_id, DiffAsked(project_id="proj_none"))


async def test_a_deleted_session_leaves_the_packs_that_its_forks_need(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who)
    first, _ = await turn(cell, who, session_id, 1, 2)
    prefix = prefix_of(f"{who.organisation}/{session_id}", SCRATCH)
    names = [f"{number:08d}-{'0' * 16}-{number:016d}.0-1.pack" for number in (0, 1, 2, 102)]
    for name in names:
        await cell.objects.create(f"{prefix}/{name}", b"pack")
    fork = await cell.fork(who, session_id, first)
    await cell.delete(who, session_id)
    deletions = Deletions(cell.database, cell.objects, _nothing, late=timedelta(0))
    await deletions.run()
    assert sorted(await cell.objects.names(prefix)) == names[:2]
    assert (await latest(cell, who, fork.id)).files.kept == {SCRATCH: kept(1)}
    await _end(cell, who, fork.id)
    await cell.delete(who, fork.id)
    await deletions.run()
    assert await cell.objects.names(prefix) == []
    assert await cell.rows("snapshots", session_id) == []


async def _end(cell: Cell, who: Principal, session_id: str) -> None:
    await cell.turns.finish(await cell.claim(session_id, who), ANSWERED)


async def _nothing(organisation: str, session_id: str) -> None: ...
