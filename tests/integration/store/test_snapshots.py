"""The snapshot of a session's files at each position of its log: committed with the events and used by forks."""

from dataclasses import replace
from datetime import timedelta

import pytest

from footplate.domain.errors import Fenced, InvalidRequest, NotFound
from footplate.domain.files.snapshots import SCRATCH_TREE, Snapshot, StoredSnapshot, TreeSnapshot, packs_prefix
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import DiffRequest, ForkPoint
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events
from footplate.store.log.files.diff_snapshots import DiffSnapshots
from footplate.store.log.files.file_snapshots import SnapshotHistory
from footplate.store.retention.deletion_cleanup import DeletionCleanup

from .cell import COMPLETED, Cell, new_principal


def stored(number: int, *, sidecar: str | None = None) -> StoredSnapshot:
    return StoredSnapshot(number, Snapshot(f"{number:040d}", sidecar), base="b" * 40)


def tree_snapshots(number: int, *, begins: bool = False) -> list[TreeSnapshot]:
    return [TreeSnapshot(SCRATCH_TREE, stored(number), begins)]


async def turn(cell: Cell, principal: Principal, session_id: str, *numbers: int) -> list[str]:
    """Runs a turn with a snapshot for each tool result and one for its end. Returns the ids of the results."""
    await cell.send(principal, session_id, "go on")
    claim = await cell.claim(session_id, principal)
    results = [events.tool_result(f"use {n}", [], is_error=False, call_id=f"{n}") for n in numbers]
    for number, result in zip(numbers, results, strict=True):
        await cell.turns.append(claim, [result, events.model_request_start()], files=tree_snapshots(number))
    await cell.turns.finish(claim, COMPLETED, tree_snapshots(numbers[-1] + 100))
    return [result.id for result in results]


async def latest(cell: Cell, principal: Principal, session_id: str) -> Claim:
    await cell.send(principal, session_id, "and now?")
    return await cell.claim(session_id, principal)


async def test_the_next_turn_finds_the_newest_snapshot(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    await turn(cell, principal, session_id, 1, 2)
    claim = await latest(cell, principal, session_id)
    assert claim.files.snapshots == {SCRATCH_TREE: stored(102)}
    with_more = replace(stored(103, sidecar="a" * 40), omitted=("pipe: neither",))
    await cell.turns.append(claim, (), files=[TreeSnapshot(SCRATCH_TREE, with_more)])
    assert (await cell.claim(session_id, principal)).files.snapshots == {SCRATCH_TREE: with_more}


@pytest.mark.requirement("K11")
async def test_snapshots_are_committed_with_the_events_or_not_at_all(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "begin")
    stale = await cell.claim(session_id, principal)
    claim = await cell.claim(session_id, principal, "wrkr_2")
    with pytest.raises(Fenced):
        await cell.turns.append(stale, [events.message("late")], files=tree_snapshots(1))
    assert await cell.rows("snapshots", session_id) == []
    cell.database.acknowledgements_to_lose = 1
    await cell.turns.append(claim, [events.message("once")], files=tree_snapshots(1))
    cell.database.acknowledgements_to_lose = 1
    await cell.turns.append(claim, (), files=tree_snapshots(2))
    (row,) = await cell.rows("snapshots", session_id)
    assert (row["number"], row["seq"]) == (2, (await cell.head(session_id))["seq"])


async def test_a_fork_starts_from_the_snapshot_of_its_event(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    first, second = await turn(cell, principal, session_id, 1, 2)
    fork = await cell.fork(principal, session_id, first)
    claim = await latest(cell, principal, fork.id)
    assert (claim.files.snapshots, claim.files.ancestors) == ({SCRATCH_TREE: stored(1)}, (session_id,))
    await cell.turns.append(claim, [events.message("x")], files=tree_snapshots(7))
    of_fork = await cell.fork(principal, fork.id)
    claim = await latest(cell, principal, of_fork.id)
    assert (claim.files.snapshots, claim.files.ancestors) == ({SCRATCH_TREE: stored(7)}, (fork.id, session_id))
    before = await cell.fork(principal, fork.id, 1)
    assert (await latest(cell, principal, before.id)).files.snapshots == {}
    assert (await latest(cell, principal, session_id)).files.snapshots == {SCRATCH_TREE: stored(102)}
    assert second


async def test_a_diff_is_between_two_positions_of_the_log(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    first, second = await turn(cell, principal, session_id, 1, 2)
    await cell.send(principal, session_id, "more")
    claim = await cell.claim(session_id, principal)
    await cell.turns.append(claim, [events.tool_use("bash", {}, call_id="c")], files=tree_snapshots(3, begins=True))
    await cell.turns.append(claim, [events.message("x")], files=tree_snapshots(4))
    await cell.turns.append(claim, [events.message("y")], files=tree_snapshots(5))
    reads = DiffSnapshots(cell.database, cell.objects)

    async def found(asked: DiffRequest) -> tuple[StoredSnapshot | None, StoredSnapshot | None]:
        (diff,) = await reads.find_diffs(principal, session_id, asked)
        return diff.old, diff.new

    assert await found(DiffRequest()) == (None, stored(5))
    assert await found(DiffRequest(turn_id=claim.turn_id)) == (stored(3), stored(5))
    between = DiffRequest(old=ForkPoint(event_id=first), new=ForkPoint(event_id=second))
    assert await found(between) == (stored(1), stored(2))
    assert await found(DiffRequest(new=ForkPoint(position=0))) == (None, None)
    (diff,) = await reads.find_diffs(principal, session_id, DiffRequest(old=ForkPoint(event_id=second)))
    assert diff.tree_ids == (f"{2:040d}", f"{5:040d}")
    (diff,) = await reads.find_diffs(principal, session_id, DiffRequest())
    assert diff.tree_ids == ("b" * 40, f"{5:040d}")


async def test_an_unknown_session_turn_event_or_project_is_reported(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    reads = DiffSnapshots(cell.database, cell.objects)
    with pytest.raises(NotFound):
        await reads.find_diffs(new_principal(), session_id, DiffRequest())
    with pytest.raises(NotFound):
        await reads.find_diffs(principal, session_id, DiffRequest(turn_id="turn_none"))
    with pytest.raises(InvalidRequest, match="from_event_id"):
        await reads.find_diffs(principal, session_id, DiffRequest(old=ForkPoint(event_id="sevt_none")))
    with pytest.raises(InvalidRequest, match="is not a project of session"):
        await reads.find_diffs(principal, session_id, DiffRequest(project_id="proj_none"))


async def test_a_deleted_session_retains_the_packs_that_its_forks_need(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    first, _ = await turn(cell, principal, session_id, 1, 2)
    prefix = packs_prefix(f"{principal.organisation}/{session_id}", SCRATCH_TREE)
    names = [f"{number:08d}-{'0' * 16}-{number:016d}.0-1.pack" for number in (0, 1, 2, 102)]
    for name in names:
        await cell.objects.create(f"{prefix}/{name}", b"pack")
    fork = await cell.fork(principal, session_id, first)
    await cell.delete(principal, session_id)
    deletions = DeletionCleanup(cell.database, cell.objects, _forget_nothing, second_pass_after=timedelta(0))
    await deletions.run()
    assert sorted(await cell.objects.list_names(prefix)) == names[:2]
    assert (await latest(cell, principal, fork.id)).files.snapshots == {SCRATCH_TREE: stored(1)}
    await _end_turn(cell, principal, fork.id)
    await cell.delete(principal, fork.id)
    await deletions.run()
    assert await cell.objects.list_names(prefix) == []
    assert await cell.rows("snapshots", session_id) == []


async def _end_turn(cell: Cell, principal: Principal, session_id: str) -> None:
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)


async def _forget_nothing(organisation: str, session_id: str) -> None: ...


async def test_snapshots_are_found_by_number_also_those_that_a_fork_inherits(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    _, second, _ = await turn(cell, principal, session_id, 1, 2, 3)
    fork = await cell.fork(principal, session_id, second)
    await turn(cell, principal, fork.id, 13)
    history = SnapshotHistory(cell.database)
    numbers = (1, 2, 3, 13, 99)
    assert await history.load_snapshots(session_id, SCRATCH_TREE, numbers) == {
        number: stored(number).snapshot for number in (1, 2, 3)
    }
    assert await history.load_snapshots(fork.id, SCRATCH_TREE, numbers) == {
        number: stored(number).snapshot for number in (1, 2, 13)
    }
    assert await history.load_snapshots(session_id, "another tree", numbers) == {}
