"""Garbage collection on a real database and folder: objects that the log needs stay, even while a turn writes."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from footplate.domain import ids
from footplate.domain.files.object_gc import ObjectVerdict, RetentionReason
from footplate.domain.files.snapshots import (
    SCRATCH_TREE,
    Snapshot,
    StoredSnapshot,
    TreeSnapshot,
    base_packs_prefix,
    packs_prefix,
)
from footplate.domain.files.uploaded_files import object_prefix as prefix_of_file
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.engine import Claim
from footplate.domain.projects.project import BaseCommit, ProjectSelection
from footplate.domain.projects.setup import CacheEntry, CacheKey, cache_folder
from footplate.domain.sessions import events
from footplate.store.object_store import Objects
from footplate.store.resources.files import FileCleanup, FileContents
from footplate.store.resources.project_caches import ProjectCaches
from footplate.store.retention.deletion_cleanup import DeletionCleanup
from footplate.store.retention.object_gc import CELL_OBJECT, ObjectGarbageCollector, OtherCell
from footplate.trees.snapshots.packs import SnapshotStep, find_pack_chain

from .archivable_session import create_archivable_session
from .cell import COMPLETED, Cell, new_principal
from .test_files import in_chunks, upload
from .test_projects import claim_turn, create_project, start_session

pytestmark = pytest.mark.timing

DAY = timedelta(days=1)
A_BASE = BaseCommit("1" * 40, "main", "app", "b" * 40)


def snapshot(number: int) -> Snapshot:
    return Snapshot(f"{number:040d}")


def collector(cell: Cell) -> ObjectGarbageCollector:
    return ObjectGarbageCollector(cell.database, cell.objects, DAY)


def prefix(principal: Principal, session_id: str) -> str:
    return packs_prefix(f"{principal.organisation}/{session_id}", SCRATCH_TREE)


async def put(cell: Cell, key: str, *, old: bool = True) -> None:
    await cell.objects.create(key, b"content")
    if old:
        os.utime(cell.folder / key, (1, 1))


async def write(
    cell: Cell, principal: Principal, claim: Claim, last: int | None, new: int, *, number: int, committed: bool = True
) -> str:
    """Writes a pack and, if `committed`, its snapshot in the log. Returns the pack's name."""
    step = SnapshotStep(number, snapshot(new), None if last is None else snapshot(last))
    name = step.part_name(0, 1)
    await put(cell, f"{prefix(principal, claim.session_id)}/{name}")
    if committed:
        stored = TreeSnapshot(SCRATCH_TREE, StoredSnapshot(number, step.snapshot))
        await cell.turns.append(claim, [events.message(f"{new}")], files=[stored])
    return name


async def create_idle_session(cell: Cell, principal: Principal, *, turns: int = 2) -> tuple[str, list[str]]:
    """Creates a session with a snapshot in each of its turns. Returns its id and the names of the packs."""
    session_id = await cell.session(principal)
    names = []
    for number in range(turns):
        await cell.send(principal, session_id, "go on")
        claim = await cell.claim(session_id, principal)
        names.append(await write(cell, principal, claim, number - 1 if number else None, number, number=number))
        await cell.turns.finish(claim, COMPLETED)
    return session_id, names


def reasons(verdicts: Sequence[ObjectVerdict]) -> dict[str, RetentionReason]:
    return {verdict.stored.key.rpartition("/")[2]: verdict.reason for verdict in verdicts}


async def test_objects_of_an_interrupted_turn_are_removed(cell: Cell, principal: Principal) -> None:
    session_id, names = await create_idle_session(cell, principal)
    lost = SnapshotStep(2, snapshot(9), snapshot(1)).part_name(0, 1)
    young = SnapshotStep(2, snapshot(8), snapshot(1)).part_name(0, 1)
    await put(cell, f"{prefix(principal, session_id)}/{lost}")
    await put(cell, f"{prefix(principal, session_id)}/{young}", old=False)
    expected = {
        names[0]: RetentionReason.FILES,
        names[1]: RetentionReason.FILES,
        lost: RetentionReason.CUT_OFF,
        young: RetentionReason.YOUNG,
    }
    collect = collector(cell)
    assert reasons(await collect.collect_session(principal.organisation, session_id, remove=False)) == expected
    assert lost in await cell.objects.list_names(prefix(principal, session_id))
    assert reasons(await collect.collect_session(principal.organisation, session_id, remove=True)) == expected
    remaining = await cell.objects.list_names(prefix(principal, session_id))
    assert sorted(remaining) == sorted([*names, young])
    assert [pack.names for pack in find_pack_chain(remaining, 1, snapshot(1))] == [[names[0]], [names[1]]]


async def test_nothing_of_a_session_is_removed_while_its_turn_runs(cell: Cell, principal: Principal) -> None:
    """A running turn may refer to an object of an earlier turn, however old it is."""
    session_id, _ = await create_idle_session(cell, principal)
    await cell.send(principal, session_id, "go on")
    claim = await cell.claim(session_id, principal)
    found = await write(cell, principal, claim, 1, 7, number=2, committed=False)
    verdicts = await collector(cell).collect_session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts)[found] is RetentionReason.BUSY
    assert await write(cell, principal, claim, 1, 7, number=2) == found
    await cell.turns.finish(claim, COMPLETED)
    verdicts = await collector(cell).collect_session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts)[found] is RetentionReason.FILES


async def test_a_turn_that_starts_during_removal_waits_and_finds_the_pack_gone(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The race: a pack is judged unreferenced, and then a turn writes the same pack and refers to it."""
    session_id, _ = await create_idle_session(cell, principal)
    lost = SnapshotStep(2, snapshot(9), snapshot(1)).part_name(0, 1)
    await put(cell, f"{prefix(principal, session_id)}/{lost}")
    await cell.send(principal, session_id, "go on")  # a pending wake would make the session busy
    async with cell.database.connection() as connection:
        await connection.execute("update session_heads set wake = false where session_id = $1", session_id)
    claiming: list[asyncio.Task[Claim]] = []
    real = Objects.delete_object

    async def delete(self: Objects, key: str) -> None:
        claiming.append(asyncio.create_task(cell.claim(session_id, principal)))
        await asyncio.sleep(0.3)
        assert not claiming[0].done()
        await real(self, key)

    monkeypatch.setattr(Objects, "delete_object", delete)
    await collector(cell).collect_session(principal.organisation, session_id, remove=True)
    claim = await claiming[0]
    assert lost not in await cell.objects.list_names(prefix(principal, session_id))
    assert await write(cell, principal, claim, 1, 9, number=2) == lost
    assert lost in await cell.objects.list_names(prefix(principal, session_id))


async def test_packs_that_a_living_fork_needs_stay(cell: Cell, principal: Principal) -> None:
    session_id, names = await create_idle_session(cell, principal, turns=3)
    at = next(
        p.seq
        for p in await cell.positions(session_id, principal)
        if p.event.body.get("content") == [events.text_block("1")]
    )
    fork = await cell.fork(principal, session_id, at)
    await cell.delete(principal, session_id)
    collect = collector(cell)
    verdicts = await collect.collect_session(principal.organisation, session_id, remove=True)
    assert set(reasons(verdicts).values()) == {RetentionReason.DELETING}
    deletions = DeletionCleanup(cell.database, cell.objects, _forget_nothing, second_pass_after=timedelta(0))
    await deletions.run()
    lost = SnapshotStep(1, snapshot(9), snapshot(0)).part_name(0, 1)
    await put(cell, f"{prefix(principal, session_id)}/{lost}")
    verdicts = await collect.collect_session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts) == {
        names[0]: RetentionReason.FILES,
        names[1]: RetentionReason.FILES,
        lost: RetentionReason.CUT_OFF,
    }
    await cell.delete(principal, fork.id)
    await deletions.run()
    assert await cell.objects.list_names(prefix(principal, session_id)) == []


async def test_objects_named_by_an_archived_log_stay(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal)
    await session.archive()
    await session.turn("more")
    named = session.files
    for name in named:
        path = next(session.folder.rglob(name))
        os.utime(path, (1, 1))
    folder = f"{principal.organisation}/{session.id}"
    for name in ("body_lost.json", "output_lost.txt", "archive/lost"):
        await put(cell, f"{folder}/{name}")
    verdicts = reasons(await collector(cell).collect_session(principal.organisation, session.id, remove=True))
    assert {name for name, why in verdicts.items() if why.is_deletable} == {"body_lost.json", "output_lost.txt", "lost"}
    assert session.files == named


async def test_objects_of_an_unknown_session_are_removed(cell: Cell, principal: Principal) -> None:
    session_id = ids.new_id(ids.SESSION)
    key, young = (f"{principal.organisation}/{session_id}/{name}.json" for name in ("body_1", "body_2"))
    await put(cell, key)
    await put(cell, young, old=False)
    verdicts = await collector(cell).collect_session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts) == {"body_1.json": RetentionReason.NO_SESSION, "body_2.json": RetentionReason.YOUNG}
    assert await cell.objects.list_names(f"{principal.organisation}/{session_id}") == ["body_2.json"]


async def test_a_base_is_removed_with_the_last_session_that_started_from_it(cell: Cell) -> None:
    principal = new_principal()
    project = await create_project(cell, principal)
    folder = base_packs_prefix(principal.organisation, project.id)
    names = [SnapshotStep(0, Snapshot(tree), None).part_name(0, 1) for tree in ("b" * 40, "c" * 40)]
    for name in names:
        await put(cell, f"{folder}/{name}")
    session_id = await start_session(cell, principal, ProjectSelection([project.id]))
    claim = await claim_turn(cell, principal, session_id)
    await cell.turns.decide_base(claim, project.id, A_BASE)
    await cell.turns.finish(claim, COMPLETED)
    fork = await cell.fork(principal, session_id)
    collect = collector(cell)
    assert reasons(await collect.collect_project(principal.organisation, project.id, remove=True)) == {
        names[0]: RetentionReason.BEGAN,
        names[1]: RetentionReason.NOBODY_BEGAN,
    }
    await cell.delete(principal, session_id)
    await collect.collect_project(principal.organisation, project.id, remove=True)
    assert await cell.objects.list_names(folder) == [names[0]]
    await cell.delete(principal, fork.id)
    await collect.collect_project(principal.organisation, project.id, remove=True)
    assert await cell.objects.list_names(folder) == []


@pytest.mark.requirement("K7")
async def test_caches_of_a_project_are_its_own_and_removed_when_unused_or_archived(cell: Cell) -> None:
    principal, other = new_principal(), new_principal()
    project = await create_project(cell, principal)
    caches = ProjectCaches(cell.database)
    keys = [CacheKey(principal.organisation, project.id, name) for name in ("first", "second", "third")]
    entries = [CacheEntry(key, "a" * 64, 40) for key in keys]
    for entry in entries:
        await put(cell, entry.object_key)
        # The first entry of a key stays. Another organisation's is not the project's.
        assert await caches.add_cache(entry, 100) == ([entries[0]] if entry is entries[2] else [])
    assert await caches.add_cache(entries[1], 100) == []
    rival = replace(entries[1], sha256="b" * 64)
    assert await caches.add_cache(rival, 100) == [rival]
    foreign = CacheEntry(CacheKey(other.organisation, project.id, "first"), "a" * 64, 40)
    assert await caches.add_cache(foreign, 100) == [foreign]
    assert await caches.find_cache(foreign.key) is None
    assert [await caches.find_cache(key) for key in keys] == [None, entries[1], entries[2]]

    collect = ObjectGarbageCollector(cell.database, cell.objects, DAY, cache_retention=DAY)
    found = reasons(await collect.collect_project(principal.organisation, project.id, remove=True))
    assert [*found.values()].count(RetentionReason.CACHED) == 2
    async with cell.database.connection() as connection:
        await connection.execute(
            "update project_caches set used_at = now() - interval '2 days' where project_id = $1 and digest = 'second'",
            project.id,
        )
    await collect.collect_project(principal.organisation, project.id, remove=True)
    folder = cache_folder(principal.organisation, project.id)
    assert await cell.objects.list_names(folder) == [f"third.{'a' * 64}"]

    async with cell.units.unit(principal, None) as unit:
        await unit.archive_project(principal, project.id)
    assert await caches.find_cache(keys[2]) is None
    assert await caches.add_cache(entries[2], 100) == [entries[2]]
    await collect.collect_project(principal.organisation, project.id, remove=True)
    assert await cell.objects.list_names(folder) == []


async def test_a_session_without_a_recorded_base_tree_retains_every_base(cell: Cell) -> None:
    principal = new_principal()
    project = await create_project(cell, principal)
    name = SnapshotStep(0, snapshot(1), None).part_name(0, 1)
    await put(cell, f"{base_packs_prefix(principal.organisation, project.id)}/{name}")
    claim = await claim_turn(cell, principal, await start_session(cell, principal, ProjectSelection([project.id])))
    await cell.turns.decide_base(claim, project.id, replace(A_BASE, tree=None))
    verdicts = await collector(cell).collect_project(principal.organisation, project.id, remove=True)
    assert reasons(verdicts) == {name: RetentionReason.UNTOLD}


async def test_a_session_that_starts_from_a_base_waits_for_its_removal(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The race: no session needs the base, then one does and sees that it exists, and then it is removed."""
    principal = new_principal()
    project = await create_project(cell, principal)
    part_name = SnapshotStep(0, Snapshot("b" * 40), None).part_name(0, 1)
    key = f"{base_packs_prefix(principal.organisation, project.id)}/{part_name}"
    await put(cell, key)
    claim = await claim_turn(cell, principal, await start_session(cell, principal, ProjectSelection([project.id])))
    deciding: list[asyncio.Task[BaseCommit]] = []
    real = Objects.delete_object

    async def delete(self: Objects, removed: str) -> None:
        deciding.append(asyncio.create_task(cell.turns.decide_base(claim, project.id, A_BASE)))
        await asyncio.sleep(0.3)
        assert not deciding[0].done()
        await real(self, removed)

    monkeypatch.setattr(Objects, "delete_object", delete)
    await collector(cell).collect_project(principal.organisation, project.id, remove=True)
    assert await deciding[0] == A_BASE
    assert await cell.objects.list_names(base_packs_prefix(principal.organisation, project.id)) == []


async def test_the_object_store_of_another_cell_is_not_touched(
    cell: Cell, principal: Principal, tmp_path: Path
) -> None:
    objects = Objects.open(None, tmp_path)
    key = f"{principal.organisation}/{ids.new_id(ids.SESSION)}/body_1.json"
    await objects.create(key, b"{}")
    os.utime(tmp_path / "objects" / key, (1, 1))
    collect = ObjectGarbageCollector(cell.database, objects, DAY)

    async def collected() -> list[ObjectVerdict]:
        return [verdict async for verdict in collect.collect(remove=True)]

    with pytest.raises(OtherCell, match="None of the sessions"):
        await collected()
    known = f"{principal.organisation}/{await cell.session(principal)}/body_2.json"
    await objects.create(known, b"{}")
    assert reasons(await collected()) == {
        "body_1.json": RetentionReason.NO_SESSION,
        "body_2.json": RetentionReason.YOUNG,
    }
    await objects.delete_object(CELL_OBJECT)
    await objects.create(CELL_OBJECT, b"another")
    with pytest.raises(OtherCell, match="another cell"):
        await collected()


async def test_a_killed_collection_is_completed_by_the_next(cell: Cell, principal: Principal, tmp_path: Path) -> None:
    session = await create_archivable_session(cell, principal, 1)
    lost = [f"{principal.organisation}/{session.id}/body_{number}.json" for number in range(40)]
    for key in lost:
        await put(cell, key)
    named = {name for name in session.files if f"{principal.organisation}/{session.id}/{name}" not in lost}
    for point in ("collecting_judged", "collecting_removed"):
        await session.run_until_killed(tmp_path, point, "collect")
    assert named < set(session.files)
    assert len(session.files) == len(named) + len(lost) - 16
    await collector(cell).collect_session(principal.organisation, session.id, remove=True)
    assert set(session.files) == named
    assert (await session.read())["seq"] > 0


async def _forget_nothing(organisation: str, session_id: str) -> None: ...


async def test_uploaded_files_stay_and_orphans_are_removed(cell: Cell, principal: Principal) -> None:
    uploaded, deleted = await upload(cell, principal, b"one"), await upload(cell, principal, b"two")
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_file(principal, deleted.id)
    under_way, lost = ids.new_id(ids.FILE), ids.new_id(ids.FILE)
    await FileContents(cell.database, cell.objects).store(principal.organisation, under_way, in_chunks(b"three"))
    for file_id in (uploaded.id, deleted.id, under_way):
        os.utime(cell.folder / prefix_of_file(principal.organisation, file_id) / "0000", (1, 1))
    await put(cell, f"{prefix_of_file(principal.organisation, lost)}/0000")
    expected = {
        uploaded.id: RetentionReason.UPLOADED,
        deleted.id: RetentionReason.BY_NOTE,
        under_way: RetentionReason.BY_NOTE,
        lost: RetentionReason.NO_FILE,
    }
    for remove in (False, True):
        found = await collector(cell).collect_files(principal.organisation, remove=remove)
        assert {verdict.stored.key.split("/")[-2]: verdict.reason for verdict in found} == expected
    remaining = {one.key.split("/")[-2] for one in await cell.objects.list_objects(f"{principal.organisation}/files")}
    assert remaining == {uploaded.id, deleted.id, under_way}
    await FileCleanup(cell.database, cell.objects).run()
    verdicts = [verdict async for verdict in collector(cell).collect(remove=False)]
    of_these = [
        verdict.reason.name for verdict in verdicts if verdict.stored.key.startswith(f"{principal.organisation}/")
    ]
    assert sorted(of_these) == ["BY_NOTE", "UPLOADED"]
