"""Outputs of sessions are complete or not there, survive a lost host, and are visible to those who see the session."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from footplate.domain.errors import Fenced, NotFound
from footplate.domain.files.session_outputs import OutputChanges, OutputLimits
from footplate.domain.organisations.limits import LimitName, OrganisationLimitExceeded
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.engine import Claim, OutputCollector
from footplate.store.resources.files import FileCleanup, FileContents
from footplate.store.resources.limits import LimitStore
from footplate.store.resources.session_outputs import OutputRoom
from footplate.trees.outputs.collection import HostOutputDirectories

from .cell import COMPLETED, Cell, new_principal
from .test_organisation_limits import limit

ODD_NAMES = (" ", "-rf", "a\nb", "ü\u202e.txt", "ä" * 127, ".hidden", "sub/dir/x.csv", 'q"uote\\', "%2e%2e")


@dataclass
class Host:
    """A host with its data directory, and a session's output directory on it."""

    cell: Cell
    principal: Principal
    root: Path
    limits: OutputLimits

    @property
    def outputs(self) -> Path:
        return self.root / "state" / "outputs"

    @property
    def directories(self) -> HostOutputDirectories:
        room = OutputRoom(self.cell.database, LimitStore(self.cell.database))
        contents = FileContents(self.cell.database, self.cell.objects)
        return HostOutputDirectories(self.root, contents, self.limits, room.find_room)

    def write(self, **files: bytes) -> None:
        for name, content in files.items():
            path = self.outputs / name.replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def content(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.outputs)): path.read_bytes()
            for path in self.outputs.rglob("*")
            if path.is_file() and not path.is_symlink()
        }

    async def open(self, claim: Claim) -> OutputCollector:
        """Restores the directory, as a worker does when it opens an environment."""
        self.outputs.mkdir(parents=True, exist_ok=True)
        await self.directories.restore(claim.organisation, claim.session_id, self.outputs, claim.files.outputs)
        return self.collector(claim)

    def collector(self, claim: Claim) -> OutputCollector:
        return self.directories.open_collector(claim.organisation, claim.session_id, self.outputs, claim.files.outputs)

    async def stage(self, claim: Claim, collector: OutputCollector) -> None:
        """Collects after a call, as a worker does with the call's result."""
        if (changes := await collector.collect(is_final=False)) is not None:
            await self.cell.turns.append(claim, (), outputs=changes)
            await collector.mark_committed()

    async def finish(self, claim: Claim, collector: OutputCollector) -> None:
        changes = await collector.collect(is_final=True)
        await self.cell.turns.finish(claim, COMPLETED, (), changes or OutputChanges(omitted=None))
        await collector.mark_committed()

    async def run_turn(self, session_id: str, act: Callable[[], None]) -> None:
        await self.cell.send(self.principal, session_id, "go")
        claim = await self.cell.claim(session_id, self.principal)
        collector = await self.open(claim)
        act()
        await self.finish(claim, collector)


NewHost = Callable[..., Host]


@pytest.fixture
def new_host(cell: Cell, principal: Principal, tmp_path: Path) -> NewHost:
    def create(name: str = "first", limits: OutputLimits | None = None) -> Host:
        return Host(cell, principal, tmp_path / name, limits or OutputLimits())

    return create


async def listed(cell: Cell, principal: Principal, session_id: str) -> dict[str, bytes]:
    found = await cell.reads.files(principal, Page(limit=1000), session_id=session_id)
    contents = FileContents(cell.database, cell.objects)
    read = {file.filename: b"".join([piece async for piece in contents.pieces(file)]) for file in found}
    assert len(read) == len(found), "a path is listed twice"
    assert all(len(read[file.filename]) == file.size_bytes for file in found)
    return read


async def test_clients_see_the_files_when_the_turn_ends(cell: Cell, principal: Principal, new_host: NewHost) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    collector = await host.open(claim)
    host.write(report__txt=b"1", empty=b"")
    await host.stage(claim, collector)
    assert await listed(cell, principal, session_id) == {}, "the turn still runs"
    host.write(report__txt=b"2")
    await host.stage(claim, collector)
    (host.outputs / "empty").unlink()
    await host.finish(claim, collector)
    assert await listed(cell, principal, session_id) == {"report.txt": b"2"}
    (file,) = await cell.reads.files(principal, Page(limit=9), session_id=session_id)
    assert (file.session_id, file.mime_type) == (session_id, "text/plain")

    await host.run_turn(session_id, lambda: host.write(report__txt=b"3", second=b"s"))
    assert await listed(cell, principal, session_id) == {"report.txt": b"3", "second": b"s"}
    with pytest.raises(NotFound):
        await cell.reads.file(principal, file.id)  # new content has a new id
    ids = {one.id for one in await cell.reads.files(principal, Page(limit=9), session_id=session_id)}
    await host.run_turn(session_id, lambda: host.write(report__txt=b"3"))
    same = {one.id for one in await cell.reads.files(principal, Page(limit=9), session_id=session_id)}
    assert ids == same, "the same content keeps its id"


async def test_another_host_continues_after_the_last_completed_call(
    cell: Cell, principal: Principal, new_host: NewHost
) -> None:
    first, second, session_id = new_host(), new_host("second"), await cell.session(principal, "go")
    await first.run_turn(session_id, lambda: first.write(old=b"o", gone=b"g"))
    await cell.send(principal, session_id, "go")
    claim = await cell.claim(session_id, principal)
    collector = await first.open(claim)
    first.write(new=b"n" * 100, **{"sub/deep": b"d"})
    (first.outputs / "gone").unlink()
    await first.stage(claim, collector)
    first.write(torn=b"half", old=b"half of it")  # the worker is lost during this call

    again = await cell.claim(session_id, principal, "wrkr_2")
    collector = await second.open(again)
    expected = {"old": b"o", "new": b"n" * 100, "sub/deep": b"d"}
    assert second.content() == expected
    assert await listed(cell, principal, session_id) == {"old": b"o", "gone": b"g"}
    with pytest.raises(Fenced):
        await first.stage(claim, first.collector(claim))
    await second.finish(again, collector)
    assert await listed(cell, principal, session_id) == expected

    await first.run_turn(session_id, lambda: None)  # the first host comes back with an outdated directory
    assert first.content() == expected
    assert await listed(cell, principal, session_id) == expected


async def test_a_torn_file_of_a_lost_attempt_is_removed(cell: Cell, principal: Principal, new_host: NewHost) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    collector = await host.open(claim)
    host.write(whole=b"w")
    await host.stage(claim, collector)
    host.write(torn=b"half", whole=b"overwritten in part")
    again = await cell.claim(session_id, principal, "wrkr_2")
    await host.finish(again, await host.open(again))
    assert await listed(cell, principal, session_id) == {"whole": b"w"}


async def test_names_links_and_other_entries(
    cell: Cell, principal: Principal, new_host: NewHost, tmp_path: Path
) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    secret = tmp_path / "secret"
    secret.write_text("not an output")

    def write() -> None:
        host.write(**{name: name.encode() for name in ODD_NAMES})
        (host.outputs / "link").symlink_to(secret)
        (host.outputs / "up").symlink_to(tmp_path)
        os.mkfifo(host.outputs / "pipe")
        Path(os.fsdecode(os.fsencode(host.outputs) + b"/\xff")).write_bytes(b"x")
        deep = host.outputs.joinpath(*["d" * 200] * 6)
        deep.mkdir(parents=True)

    await host.run_turn(session_id, write)
    assert await listed(cell, principal, session_id) == {name: name.encode() for name in ODD_NAMES}
    omitted = await cell.reads.omitted_outputs(principal, session_id)
    reasons = ["link: it is not a regular file", "pipe: it is not", "up: it is not", "\\xff: its name is not UTF-8"]
    assert all(any(line.startswith(reason) for line in omitted) for reason in reasons), omitted
    assert any("its path has more than" in line for line in omitted)

    moved = new_host("second")
    moved.write(sub=b"in the way")
    (moved.outputs / "up").symlink_to(tmp_path)
    await moved.run_turn(session_id, lambda: None)
    assert moved.content() == {name: name.encode() for name in ODD_NAMES}
    assert secret.read_text() == "not an output"


async def test_limits_of_a_session_prefer_stored_files(cell: Cell, principal: Principal, new_host: NewHost) -> None:
    host = new_host(limits=OutputLimits(max_files=2, max_bytes=10, max_file_bytes=8))
    session_id = await cell.session(principal, "go")
    await host.run_turn(session_id, lambda: host.write(z=b"z" * 4))
    await host.run_turn(session_id, lambda: host.write(a=b"a" * 9, b=b"b" * 7, c=b"c", d=b"d"))
    assert set(await listed(cell, principal, session_id)) == {"z", "c"}
    omitted = await cell.reads.omitted_outputs(principal, session_id)
    assert [line.partition(":")[0] for line in omitted] == ["a", "b", "d"]
    await host.run_turn(session_id, (host.outputs / "z").unlink)
    assert set(await listed(cell, principal, session_id)) == {"b", "c"}
    assert set(host.content()) == {"a", "b", "c", "d"}, "an omitted file stays in the directory"


async def test_the_limit_on_stored_bytes_holds(cell: Cell, principal: Principal, new_host: NewHost) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    await limit(cell, principal, LimitName.STORED_BYTES, 10)
    await host.run_turn(session_id, lambda: host.write(a=b"a" * 6, b=b"b" * 6))
    assert set(await listed(cell, principal, session_id)) == {"a"}
    await cell.send(principal, session_id, "go")
    claim = await cell.claim(session_id, principal)
    collector = await host.open(claim)
    host.write(a=b"x" * 6, c=b"c" * 4)
    changes = await collector.collect(is_final=True)
    await limit(cell, principal, LimitName.STORED_BYTES, 9)  # used up by another upload meanwhile
    with pytest.raises(OrganisationLimitExceeded):
        await cell.turns.finish(claim, COMPLETED, (), changes)
    await cell.turns.finish(claim, COMPLETED, (), collector.refuse_added("the limit is reached"))
    await collector.mark_committed()
    assert await listed(cell, principal, session_id) == {}
    await limit(cell, principal, LimitName.STORED_BYTES, None)
    await host.run_turn(session_id, lambda: None)
    assert await listed(cell, principal, session_id) == {"a": b"x" * 6, "b": b"b" * 6, "c": b"c" * 4}


async def test_the_session_decides_who_sees_and_deletes_them(
    cell: Cell, principal: Principal, new_host: NewHost
) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    await host.run_turn(session_id, lambda: host.write(a=b"a"))
    (file,) = await cell.reads.files(principal, Page(limit=9), session_id=session_id)
    member = replace(new_principal(principal.organisation), roles=frozenset({"operator"}))
    restricted = replace(member, project_ids=frozenset({"proj_1"}))

    async def sees(viewer: Principal) -> list[bool]:
        by_id = await cell.reads.files(viewer, Page(limit=9), ids=[file.id])
        try:
            shown = [await cell.reads.file(viewer, file.id)]
        except NotFound:
            shown = []
        everything = await cell.reads.files(viewer, Page(limit=9))
        scoped = await cell.reads.files(viewer, Page(limit=9), session_id=session_id)
        return [bool(found) for found in (by_id, shown, everything, scoped)]

    assert await sees(member) == [True] * 4
    assert await sees(restricted) == [False] * 4
    assert await sees(new_principal()) == [False] * 4
    async with cell.database.connection() as connection:
        await connection.execute("update sessions set project_ids = '{proj_1}' where id = $1", session_id)
        assert await sees(restricted) == [True] * 4
        await connection.execute("update sessions set visible_to = 'owner' where id = $1", session_id)
    assert await sees(member) == [False] * 4
    assert await sees(principal) == [True] * 4
    for other in (member, new_principal()):
        with pytest.raises(NotFound):
            async with cell.units.unit(other, None) as unit:
                await unit.delete_file(other, file.id)


async def test_a_deleted_output_does_not_come_back(cell: Cell, principal: Principal, new_host: NewHost) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    await host.run_turn(session_id, lambda: host.write(a=b"a", b=b"b"))
    (file,) = [
        one for one in await cell.reads.files(principal, Page(limit=9), session_id=session_id) if one.filename == "a"
    ]

    async def delete() -> None:
        async with cell.units.unit(principal, None) as unit:
            await unit.delete_file(principal, file.id)

    await cell.send(principal, session_id, "go")
    claim = await cell.claim(session_id, principal)
    collector = await host.open(claim)
    await delete()  # while the turn runs
    await host.finish(claim, collector)
    assert await listed(cell, principal, session_id) == {"b": b"b"}
    await host.run_turn(session_id, lambda: None)
    assert await listed(cell, principal, session_id) == host.content() == {"b": b"b"}


async def test_a_deleted_session_and_a_lost_commit_keep_no_object(
    cell: Cell, principal: Principal, new_host: NewHost
) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    collector = await host.open(claim)
    host.write(a=b"a")
    assert await collector.collect(is_final=True) is not None  # stored, and lost before the commit
    await host.finish(claim, host.collector(claim))
    fork = await cell.fork(principal, session_id)
    await cell.delete(principal, session_id)
    async with cell.database.connection() as connection:
        found = "select count(*) from files where session_id = $1"
        assert await connection.fetchval(found, session_id) == await connection.fetchval(found, fork.id) == 0
        await connection.execute("update file_removals set due = now() where organisation = $1", principal.organisation)
    await FileCleanup(cell.database, cell.objects).run()
    folder = cell.folder / principal.organisation / "files"
    assert not [path for path in folder.rglob("*") if path.is_file()]


async def test_a_lost_acknowledgement_commits_once(cell: Cell, principal: Principal, new_host: NewHost) -> None:
    host, session_id = new_host(), await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    collector = await host.open(claim)
    host.write(a=b"a")
    changes = await collector.collect(is_final=False)
    cell.database.acknowledgements_to_lose = 1
    await cell.turns.append(claim, (), outputs=changes)
    await collector.mark_committed()
    host.write(b=b"b")
    changes = await collector.collect(is_final=True)
    cell.database.acknowledgements_to_lose = 1
    await cell.turns.finish(claim, COMPLETED, (), changes)
    assert await listed(cell, principal, session_id) == {"a": b"a", "b": b"b"}
