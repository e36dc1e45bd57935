"""Packs in the object store are merged in the background: any snapshot needs few objects, and a crash loses nothing."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.integration.trees.snapshot_fixtures import Contents, World, contents, git, make_host, make_world

from footplate.domain.errors import Unavailable
from footplate.domain.files.pack_names import complete_packs
from footplate.domain.files.snapshots import Snapshot, StoredSnapshot
from footplate.store.object_store import Objects
from footplate.trees.git import Git
from footplate.trees.snapshots import packs
from footplate.trees.snapshots.pack_consolidation import MAX_CHAIN_PACKS, PackConsolidator
from footplate.trees.snapshots.upload import SnapshotUploader, TreeLocation

_SNAPSHOTS: Final = 30
_KILLED_AFTER_WRITES: Final = """
import asyncio, json, os, signal, sys
from pathlib import Path
from footplate.domain.files.snapshots import Snapshot, StoredSnapshot
from footplate.store.object_store import Objects
from footplate.trees.snapshots import packs
from footplate.trees.snapshots.pack_consolidation import PackConsolidator
from footplate.trees.snapshots.upload import SnapshotUploader, TreeLocation

root, git_dir, prefix, writes, trees = sys.argv[1:]
left = int(writes)
packs.MAX_PART_BYTES = 2000
snapshots = dict(enumerate(map(Snapshot, json.loads(trees))))


class History:
    async def load_snapshots(self, session_id, tree, numbers):
        return {number: snapshots[number] for number in numbers}


class DyingStore(Objects):
    async def create(self, key, content):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return await super().create(key, content)


store = DyingStore.open(None, Path(root))
location = TreeLocation(git_dir=Path(git_dir), tree=Path(git_dir), prefix=prefix)
newest = max(snapshots)
stored = StoredSnapshot(newest, snapshots[newest])
consolidator = PackConsolidator(store, SnapshotUploader(store), History())
asyncio.run(consolidator.consolidate(location, stored, "sesn", "scratch"))
"""


class CountingObjects(Objects):
    """Counts the objects that are read, and can fail."""

    reads = 0
    fails = False

    async def create(self, key: str, content: bytes) -> bool:
        if self.fails:
            raise Unavailable("The object store does not respond.")
        return await super().create(key, content)

    def read_chunks(self, key: str):  # pyrefly: ignore[unannotated-return]  # noqa: ANN201 - as its parent
        self.reads += 1
        return super().read_chunks(key)


@dataclass
class Session:
    """A session whose snapshots are uploaded and recorded in a log."""

    location: TreeLocation
    objects: CountingObjects
    log: list[StoredSnapshot] = field(default_factory=list)
    expected: list[Contents] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.uploader = SnapshotUploader(self.objects)
        self.incremental = self.uploader.create_incremental_snapshots(self.location)
        self.consolidator = PackConsolidator(self.objects, self.uploader, self)

    async def load_snapshots(self, session_id: str, tree: str, numbers: Sequence[int]) -> Mapping[int, Snapshot]:
        assert (session_id, tree) == ("sesn", "project")
        return {stored.number: stored.snapshot for stored in self.log if stored.number in numbers}

    async def write(self, number: int, *, consolidate: bool = True) -> StoredSnapshot:
        (self.location.tree / f"{number % 7}").write_text(f"version {number}\n" * 50)
        (self.location.tree / f"new-{number}").write_text(f"{number}\n")
        (self.location.tree / f"new-{number - 5}").unlink(missing_ok=True)
        last = self.log[-1] if self.log else None
        stored = await self.uploader.take_and_upload(self.location, last, incremental=self.incremental)
        self.log.append(stored)
        self.expected.append(contents(self.location.tree, git=False))
        if consolidate:
            self.consolidator.consolidate_later(self.location, stored, "sesn", "project")
            await self.finish_merging()
        return stored

    async def finish_merging(self) -> None:
        chains = self.consolidator._chains.values()
        await asyncio.gather(*(chain.task for chain in chains if chain.task is not None))

    async def count_restored(self, stored: StoredSnapshot, expected: Contents, name: str) -> int:
        """Restores a snapshot on a host that has nothing, checks its files and returns the number of objects read."""
        root = self.location.git_dir.parent.parent / name
        host, tree = await make_host(root / "host.git"), root / "tree"
        tree.mkdir()
        before = self.objects.reads
        location = replace(self.location, git_dir=host, tree=tree, local_sources=())
        await SnapshotUploader(self.objects).restore_files(location, stored)
        assert contents(tree, git=False) == expected
        shutil.rmtree(root)
        return self.objects.reads - before


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = await make_world(tmp_path)
    for number in range(20):
        (world.files / f"{number}").write_text(f"file {number} of the project\n" * 20)
    git(world.files, "init", "--quiet")
    git(world.files, "add", "--all")
    git(world.files, "commit", "--quiet", "-m", "base")
    return world


StartSession = Callable[..., Awaitable[Session]]


@pytest.fixture
async def start_session(world: World) -> AsyncIterator[StartSession]:
    sessions: list[Session] = []

    async def start(name: str = "session", **changes: Any) -> Session:
        location = TreeLocation(
            git_dir=await make_host(world.root / name / "host.git"),
            tree=world.root / name / "tree",
            prefix=f"org/{name}/trees/project",
            base=git(world.files, "rev-parse", "HEAD").strip(),
            base_prefix="org/projects/project/bases",
        )
        (location.git_dir / "objects" / "info" / "alternates").write_text(f"{world.files / '.git' / 'objects'}\n")
        location.tree.mkdir()
        assert location.base is not None
        await Git(git_dir=location.git_dir, work_tree=location.tree).run("read-tree", "-m", "-u", location.base)
        objects = CountingObjects.open(None, world.root / "data")
        assert isinstance(objects, CountingObjects)
        sessions.append(Session(replace(location, **changes), objects))
        return sessions[-1]

    yield start
    for session in sessions:
        await session.incremental.close()


@pytest.mark.requirement("K7")
async def test_every_snapshot_is_restored_from_few_objects(start_session: StartSession) -> None:
    session = await start_session()
    for number in range(_SNAPSHOTS):
        await session.write(number)
    for stored, expected in [*zip(session.log, session.expected, strict=True)][3::4]:
        # one more: the project's base
        assert await session.count_restored(stored, expected, "elsewhere") <= MAX_CHAIN_PACKS + 1
    names = await session.objects.list_names(session.location.prefix)
    assert len(names) < _SNAPSHOTS * 1.4


async def test_another_host_continues_to_merge(start_session: StartSession) -> None:
    session = await start_session()
    for number in range(20):
        await session.write(number)
    names = {*await session.objects.list_names(session.location.prefix)}
    other = await start_session("other", prefix=session.location.prefix)
    shutil.rmtree(other.location.tree)
    other.location.tree.mkdir()
    other.log, other.expected = session.log, session.expected
    await other.uploader.restore_files(other.location, session.log[-1])
    stored = [await other.write(number) for number in range(20, 30)][-1]
    assert await other.count_restored(stored, other.expected[-1], "third") <= MAX_CHAIN_PACKS + 1
    merged = {pack.steps for found in complete_packs(names).values() for pack in found}
    after = {*await session.objects.list_names(session.location.prefix)}
    assert names < after
    assert max(merged) > 1


async def test_a_fork_on_the_host_of_its_parent_merges_from_its_base(start_session: StartSession) -> None:
    """The host has the objects of the fork's start, but not of the parent's snapshots before it."""
    parent = await start_session("parent")
    for number in range(20):
        await parent.write(number)
    at = 15
    prefix, parents = "org/fork/trees/project", [parent.location.prefix]
    fork = await start_session("fork", prefix=prefix, parent_prefixes=parents, local_sources=[parent.location.git_dir])
    shutil.rmtree(fork.location.tree)
    fork.location.tree.mkdir()
    await fork.uploader.restore_files(fork.location, parent.log[at])
    fork.log, fork.expected = parent.log[: at + 1], parent.expected[: at + 1]
    for number in range(100, 110):
        await fork.write(number)
    for stored, expected in [*zip(fork.log, fork.expected, strict=True)][at::3]:
        assert await fork.count_restored(stored, expected, "elsewhere") <= MAX_CHAIN_PACKS + 1


async def test_a_snapshot_that_the_log_no_longer_has_is_skipped(start_session: StartSession) -> None:
    session = await start_session()
    for number in range(16):
        await session.write(number, consolidate=number == 12)
    del session.log[10:15], session.expected[10:15]
    stored = [await session.write(number) for number in range(20, 24)][-1]
    assert await session.count_restored(stored, session.expected[-1], "elsewhere") <= MAX_CHAIN_PACKS + 1


async def test_two_workers_that_merge_the_same_packs_write_one_pack(start_session: StartSession) -> None:
    session = await start_session()
    for number in range(12):
        stored = await session.write(number, consolidate=False)
    before = len(await session.objects.list_names(session.location.prefix))
    await asyncio.gather(
        *(session.consolidator.consolidate(session.location, stored, "sesn", "project") for _ in range(2))
    )
    assert len(await session.objects.list_names(session.location.prefix)) == before + 1


async def test_a_failed_merge_is_logged_and_tried_again_later(start_session: StartSession) -> None:
    session = await start_session()
    for number in range(12):
        stored = await session.write(number, consolidate=False)
    session.objects.fails = True
    session.consolidator.consolidate_later(session.location, stored, "sesn", "project")
    await session.finish_merging()
    session.objects.fails = False
    before = len(await session.objects.list_names(session.location.prefix))
    for number in range(12, 28):
        stored = await session.write(number)
    assert len(await session.objects.list_names(session.location.prefix)) == before + 17
    assert await session.count_restored(stored, session.expected[-1], "elsewhere") <= MAX_CHAIN_PACKS + 1


@pytest.mark.timing
@pytest.mark.requirement("K7")
async def test_a_process_that_is_killed_while_it_merges_loses_nothing(tmp_path: Path) -> None:
    world = await make_world(tmp_path)
    objects = Objects.open(None, tmp_path)
    prefix, steps, expected = "org/sesn/trees/scratch", list[packs.SnapshotStep](), list[Contents]()
    for number in range(12):
        (world.files / f"{number}").write_bytes(os.urandom(700))
        taken = (await world.take_snapshot()).snapshot
        steps.append(packs.SnapshotStep(number, taken, steps[-1].snapshot if steps else None))
        await packs.upload_pack(objects, prefix, world.git_dir, steps[-1])
        expected.append(contents(world.files))
    trees = json.dumps([step.snapshot.tree for step in steps])
    chains = []
    for writes in (0, 2, 4, 99):
        arguments = (f"{tmp_path}", f"{world.git_dir}", prefix, f"{writes}", trees)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED_AFTER_WRITES, *arguments)
        code = await process.wait()
        names = await objects.list_names(prefix)
        chains.append(len(packs.find_pack_chain(names, 11, steps[-1].snapshot)))
        assert code == (0 if writes == 99 else -signal.SIGKILL)
        await _check_restores(world, objects, prefix, steps, expected)
    assert chains == [12, 12, 12, 1]


async def _check_restores(
    world: World, objects: Objects, prefix: str, steps: Sequence[packs.SnapshotStep], expected: Sequence[Contents]
) -> None:
    for step in (steps[-1], steps[6]):
        host = await make_host(world.root / "elsewhere.git")
        await packs.download_packs(objects, [prefix], host, step.number, step.snapshot)
        listed = (await Git(git_dir=host).run("ls-tree", "-r", "--name-only", step.snapshot.tree)).split()
        assert {*listed} == {*expected[step.number]}
        await Git(git_dir=host).run("fsck", "--connectivity-only", step.snapshot.tree)
        shutil.rmtree(host)
