"""Garbage collection on a real database and folder: objects that the log needs stay, even while a turn writes."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from footplate.domain import events, ids
from footplate.domain.collecting import Verdict, Why
from footplate.domain.files import prefix_of as prefix_of_file
from footplate.domain.principals import Principal
from footplate.domain.projects import Base, Choice
from footplate.domain.running import Claim
from footplate.domain.snapshots import SCRATCH, KeptSnapshot, Snapshot, TreeSnapshot, bases_of, prefix_of
from footplate.store.collecting import CELL, Collector, OtherCell
from footplate.store.files import FileObjects, FileRemovals
from footplate.store.objects import Objects
from footplate.store.retention_deletions import Deletions
from footplate.trees.packs import Step, chain

from .archiving import rester
from .cell import ANSWERED, Cell, somebody
from .test_files import in_pieces, upload
from .test_projects import begin, claimed, create

pytestmark = pytest.mark.timing

DAY = timedelta(days=1)
A_BASE = Base("1" * 40, "main", "app", "b" * 40)


def snapshot(number: int) -> Snapshot:
    return Snapshot(f"{number:040d}")


def collector(cell: Cell) -> Collector:
    return Collector(cell.database, cell.objects, DAY)


def prefix(who: Principal, session_id: str) -> str:
    return prefix_of(f"{who.organisation}/{session_id}", SCRATCH)


async def put(cell: Cell, key: str, *, old: bool = True) -> None:
    await cell.objects.create(key, b"content")
    if old:
        os.utime(cell.folder / key, (1, 1))


async def write(
    cell: Cell, who: Principal, claim: Claim, last: int | None, new: int, *, number: int, committed: bool = True
) -> str:
    """Writes a pack and, if `committed`, its snapshot in the log. Returns the pack's name."""
    step = Step(number, snapshot(new), None if last is None else snapshot(last))
    name = step.name(0, 1)
    await put(cell, f"{prefix(who, claim.session_id)}/{name}")
    if committed:
        kept = TreeSnapshot(SCRATCH, KeptSnapshot(number, step.snapshot))
        await cell.turns.append(claim, [events.message(f"{new}")], files=[kept])
    return name


async def idle(cell: Cell, who: Principal, *, turns: int = 2) -> tuple[str, list[str]]:
    """Creates a session with a snapshot in each of its turns. Returns its id and the names of the packs."""
    session_id = await cell.session(who)
    names = []
    for number in range(turns):
        await cell.send(who, session_id, "go on")
        claim = await cell.claim(session_id, who)
        names.append(await write(cell, who, claim, number - 1 if number else None, number, number=number))
        await cell.turns.finish(claim, ANSWERED)
    return session_id, names


def reasons(verdicts: Sequence[Verdict]) -> dict[str, Why]:
    return {verdict.stored.key.rpartition("/")[2]: verdict.why for verdict in verdicts}


async def test_what_a_turn_left_that_was_cut_off_goes(cell: Cell, principal: Principal) -> None:
    session_id, names = await idle(cell, principal)
    lost = Step(2, snapshot(9), snapshot(1)).name(0, 1)
    young = Step(2, snapshot(8), snapshot(1)).name(0, 1)
    await put(cell, f"{prefix(principal, session_id)}/{lost}")
    await put(cell, f"{prefix(principal, session_id)}/{young}", old=False)
    expected = {names[0]: Why.FILES, names[1]: Why.FILES, lost: Why.CUT_OFF, young: Why.YOUNG}
    collect = collector(cell)
    assert reasons(await collect.session(principal.organisation, session_id, remove=False)) == expected
    assert lost in await cell.objects.names(prefix(principal, session_id))
    assert reasons(await collect.session(principal.organisation, session_id, remove=True)) == expected
    left = await cell.objects.names(prefix(principal, session_id))
    assert sorted(left) == sorted([*names, young])
    assert chain(left, 1, snapshot(1)) == [[names[0]], [names[1]]]


async def test_beside_a_turn_nothing_of_its_session_goes(cell: Cell, principal: Principal) -> None:
    """A running turn may refer to an object of an earlier turn, however old it is."""
    session_id, _ = await idle(cell, principal)
    await cell.send(principal, session_id, "go on")
    claim = await cell.claim(session_id, principal)
    found = await write(cell, principal, claim, 1, 7, number=2, committed=False)
    verdicts = await collector(cell).session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts)[found] is Why.BUSY
    assert await write(cell, principal, claim, 1, 7, number=2) == found
    await cell.turns.finish(claim, ANSWERED)
    verdicts = await collector(cell).session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts)[found] is Why.FILES


async def test_a_turn_that_begins_meanwhile_waits_and_finds_them_gone(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The race: a pack is judged unreferenced, and then a turn writes the same pack and refers to it."""
    session_id, _ = await idle(cell, principal)
    lost = Step(2, snapshot(9), snapshot(1)).name(0, 1)
    await put(cell, f"{prefix(principal, session_id)}/{lost}")
    await cell.send(principal, session_id, "go on")  # a pending wake would make the session busy
    async with cell.database.connection() as connection:
        await connection.execute("update session_heads set wake = false where session_id = $1", session_id)
    claiming: list[asyncio.Task[Claim]] = []
    real = Objects.delete

    async def delete(self: Objects, key: str) -> None:
        claiming.append(asyncio.create_task(cell.claim(session_id, principal)))
        await asyncio.sleep(0.3)
        assert not claiming[0].done()
        await real(self, key)

    monkeypatch.setattr(Objects, "delete", delete)
    await collector(cell).session(principal.organisation, session_id, remove=True)
    claim = await claiming[0]
    assert lost not in await cell.objects.names(prefix(principal, session_id))
    assert await write(cell, principal, claim, 1, 9, number=2) == lost
    assert lost in await cell.objects.names(prefix(principal, session_id))


async def test_a_living_fork_keeps_what_it_begins_with(cell: Cell, principal: Principal) -> None:
    session_id, names = await idle(cell, principal, turns=3)
    at = next(
        p.seq
        for p in await cell.positions(session_id, principal)
        if p.event.body.get("content") == [events.text_block("1")]
    )
    fork = await cell.fork(principal, session_id, at)
    await cell.delete(principal, session_id)
    collect = collector(cell)
    verdicts = await collect.session(principal.organisation, session_id, remove=True)
    assert set(reasons(verdicts).values()) == {Why.DELETING}
    deletions = Deletions(cell.database, cell.objects, _nothing, late=timedelta(0))
    await deletions.run()
    lost = Step(1, snapshot(9), snapshot(0)).name(0, 1)
    await put(cell, f"{prefix(principal, session_id)}/{lost}")
    verdicts = await collect.session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts) == {names[0]: Why.FILES, names[1]: Why.FILES, lost: Why.CUT_OFF}
    await cell.delete(principal, fork.id)
    await deletions.run()
    assert await cell.objects.names(prefix(principal, session_id)) == []


async def test_what_the_log_names_stays_also_if_it_is_archived(cell: Cell, principal: Principal) -> None:
    session = await rester(cell, principal)
    await session.archive()
    await session.turn("more")
    named = session.files
    for name in named:
        path = next(session.folder.rglob(name))
        os.utime(path, (1, 1))
    folder = f"{principal.organisation}/{session.id}"
    for name in ("body_lost.json", "output_lost.txt", "archive/lost"):
        await put(cell, f"{folder}/{name}")
    verdicts = reasons(await collector(cell).session(principal.organisation, session.id, remove=True))
    assert {name for name, why in verdicts.items() if why.goes} == {"body_lost.json", "output_lost.txt", "lost"}
    assert session.files == named


async def test_objects_of_a_session_that_nobody_knows_go(cell: Cell, principal: Principal) -> None:
    session_id = ids.new_id(ids.SESSION)
    key, young = (f"{principal.organisation}/{session_id}/{name}.json" for name in ("body_1", "body_2"))
    await put(cell, key)
    await put(cell, young, old=False)
    verdicts = await collector(cell).session(principal.organisation, session_id, remove=True)
    assert reasons(verdicts) == {"body_1.json": Why.NO_SESSION, "body_2.json": Why.YOUNG}
    assert await cell.objects.names(f"{principal.organisation}/{session_id}") == ["body_2.json"]


async def test_a_base_goes_with_the_last_session_that_began_with_it(cell: Cell) -> None:
    who = somebody()
    project = await create(cell, who)
    folder = bases_of(who.organisation, project.id)
    names = [Step(0, Snapshot(tree), None).name(0, 1) for tree in ("b" * 40, "c" * 40)]
    for name in names:
        await put(cell, f"{folder}/{name}")
    session_id = await begin(cell, who, Choice([project.id]))
    claim = await claimed(cell, who, session_id)
    await cell.turns.decide_base(claim, project.id, A_BASE)
    await cell.turns.finish(claim, ANSWERED)
    fork = await cell.fork(who, session_id)
    collect = collector(cell)
    assert reasons(await collect.project(who.organisation, project.id, remove=True)) == {
        names[0]: Why.BEGAN,
        names[1]: Why.NOBODY_BEGAN,
    }
    await cell.delete(who, session_id)
    await collect.project(who.organisation, project.id, remove=True)
    assert await cell.objects.names(folder) == [names[0]]
    await cell.delete(who, fork.id)
    await collect.project(who.organisation, project.id, remove=True)
    assert await cell.objects.names(folder) == []


async def test_who_does_not_say_what_it_began_with_keeps_every_base(cell: Cell) -> None:
    who = somebody()
    project = await create(cell, who)
    name = Step(0, snapshot(1), None).name(0, 1)
    await put(cell, f"{bases_of(who.organisation, project.id)}/{name}")
    claim = await claimed(cell, who, await begin(cell, who, Choice([project.id])))
    await cell.turns.decide_base(claim, project.id, replace(A_BASE, tree=None))
    verdicts = await collector(cell).project(who.organisation, project.id, remove=True)
    assert reasons(verdicts) == {name: Why.UNTOLD}


async def test_who_begins_with_a_base_while_it_goes_waits(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The race: no session needs the base, then one does and sees that it exists, and then it is removed."""
    who = somebody()
    project = await create(cell, who)
    key = f"{bases_of(who.organisation, project.id)}/{Step(0, Snapshot('b' * 40), None).name(0, 1)}"
    await put(cell, key)
    claim = await claimed(cell, who, await begin(cell, who, Choice([project.id])))
    deciding: list[asyncio.Task[Base]] = []
    real = Objects.delete

    async def delete(self: Objects, removed: str) -> None:
        deciding.append(asyncio.create_task(cell.turns.decide_base(claim, project.id, A_BASE)))
        await asyncio.sleep(0.3)
        assert not deciding[0].done()
        await real(self, removed)

    monkeypatch.setattr(Objects, "delete", delete)
    await collector(cell).project(who.organisation, project.id, remove=True)
    assert await deciding[0] == A_BASE
    assert await cell.objects.names(bases_of(who.organisation, project.id)) == []


async def test_a_store_of_another_cell_is_left_alone(cell: Cell, principal: Principal, tmp_path: Path) -> None:
    objects = Objects.open(None, tmp_path)
    key = f"{principal.organisation}/{ids.new_id(ids.SESSION)}/body_1.json"
    await objects.create(key, b"{}")
    os.utime(tmp_path / "objects" / key, (1, 1))
    collect = Collector(cell.database, objects, DAY)

    async def collected() -> list[Verdict]:
        return [verdict async for verdict in collect.verdicts(remove=True)]

    with pytest.raises(OtherCell, match="None of the sessions"):
        await collected()
    known = f"{principal.organisation}/{await cell.session(principal)}/body_2.json"
    await objects.create(known, b"{}")
    assert reasons(await collected()) == {"body_1.json": Why.NO_SESSION, "body_2.json": Why.YOUNG}
    await objects.delete(CELL)
    await objects.create(CELL, b"another")
    with pytest.raises(OtherCell, match="another cell"):
        await collected()


async def test_killed_in_between_it_is_run_again(cell: Cell, principal: Principal, tmp_path: Path) -> None:
    session = await rester(cell, principal, 1)
    lost = [f"{principal.organisation}/{session.id}/body_{number}.json" for number in range(40)]
    for key in lost:
        await put(cell, key)
    named = {name for name in session.files if f"{principal.organisation}/{session.id}/{name}" not in lost}
    for point in ("collecting_judged", "collecting_removed"):
        await session.in_a_process(tmp_path, point, "collect")
    assert named < set(session.files)
    assert len(session.files) == len(named) + len(lost) - 16
    await collector(cell).session(principal.organisation, session.id, remove=True)
    assert set(session.files) == named
    assert (await session.read())["seq"] > 0


async def _nothing(organisation: str, session_id: str) -> None: ...


async def test_files_are_known_and_what_is_left_of_them_goes(cell: Cell, principal: Principal) -> None:
    uploaded, deleted = await upload(cell, principal, b"one"), await upload(cell, principal, b"two")
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_file(principal, deleted.id)
    under_way, lost = ids.new_id(ids.FILE), ids.new_id(ids.FILE)
    await FileObjects(cell.database, cell.objects).store(principal.organisation, under_way, in_pieces(b"three"))
    for file_id in (uploaded.id, deleted.id, under_way):
        os.utime(cell.folder / prefix_of_file(principal.organisation, file_id) / "0000", (1, 1))
    await put(cell, f"{prefix_of_file(principal.organisation, lost)}/0000")
    expected = {uploaded.id: Why.UPLOADED, deleted.id: Why.BY_NOTE, under_way: Why.BY_NOTE, lost: Why.NO_FILE}
    for remove in (False, True):
        found = await collector(cell).files(principal.organisation, remove=remove)
        assert {verdict.stored.key.split("/")[-2]: verdict.why for verdict in found} == expected
    left = {one.key.split("/")[-2] for one in await cell.objects.stored(f"{principal.organisation}/files")}
    assert left == {uploaded.id, deleted.id, under_way}
    await FileRemovals(cell.database, cell.objects).run()
    told = [verdict async for verdict in collector(cell).verdicts(remove=False)]
    of_these = [verdict.why.name for verdict in told if verdict.stored.key.startswith(f"{principal.organisation}/")]
    assert sorted(of_these) == ["BY_NOTE", "UPLOADED"]
