"""Snapshots are uploaded as packs of the objects that each one added, and another host restores the files."""

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import World, contents, git, make_host, make_world

from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import Snapshot
from footplate.store.object_store import Objects
from footplate.trees.snapshots import packs, restore
from footplate.trees.snapshots.packs import SnapshotStep


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await make_world(tmp_path)


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects.open(None, tmp_path / "data")


class SnapshotChain:
    """A session's snapshots, uploaded as they are taken."""

    def __init__(self, world: World, objects: Objects, prefix: str = "org/session/trees") -> None:
        self.world = world
        self.objects = objects
        self.prefix = prefix
        self.steps: list[SnapshotStep] = []

    async def add(self) -> int:
        """Takes and uploads a snapshot. Returns the number of bytes written."""
        taken = (await self.world.take_snapshot()).snapshot
        before = self.steps[-1].snapshot if self.steps else None
        if taken == before:
            return 0
        self.steps.append(SnapshotStep(len(self.steps), taken, before))
        return await packs.upload_pack(self.objects, self.prefix, self.world.git_dir, self.steps[-1])

    async def restore_elsewhere(self, step: SnapshotStep, name: str) -> Path:
        host = await make_host(self.world.root / f"{name}.git")
        await packs.download_packs(self.objects, [self.prefix], host, step.number, step.snapshot)
        target = self.world.root / name
        target.mkdir()
        await restore.restore_snapshot(host, step.snapshot, target)
        return target


async def test_another_host_restores_every_snapshot_from_the_store_alone(world: World, objects: Objects) -> None:
    chain = SnapshotChain(world, objects)
    expected = []
    git(world.files, "init", "--quiet")
    for number in range(8):
        (world.files / f"file-{number}").write_text(f"{number}\n" * 1000)
        (world.files / "changing").write_text("".join(f"{line * number}\n" for line in range(500)))
        (world.files / f"file-{number - 2}").unlink(missing_ok=True)
        if number == 5:
            git(world.files, "add", "--all")
            git(world.files, "commit", "--quiet", "-m", "five")
        await chain.add()
        expected.append(contents(world.files))
    for step, wanted in zip(chain.steps, expected, strict=True):
        assert contents(await chain.restore_elsewhere(step, f"elsewhere-{step.number}")) == wanted


async def test_a_pack_has_only_the_added_objects(world: World, objects: Objects) -> None:
    source = random.Random(1)
    (world.files / "large").write_bytes(source.randbytes(1_000_000))
    text = [f"{source.random()}\n" for _ in range(20_000)]
    (world.files / "text").write_text("".join(text))
    chain = SnapshotChain(world, objects)
    assert await chain.add() > 1_000_000
    assert await chain.add() == 0
    text[100] = "another line\n"
    (world.files / "text").write_text("".join(text))
    assert await chain.add() < 1000
    restored = await chain.restore_elsewhere(chain.steps[-1], "elsewhere")
    assert contents(restored) == contents(world.files)


async def test_a_repeated_upload_writes_nothing(world: World, objects: Objects) -> None:
    chain = SnapshotChain(world, objects)
    (world.files / "file").write_text("file")
    assert await chain.add() > 0
    assert await packs.upload_pack(objects, chain.prefix, world.git_dir, chain.steps[-1]) == 0


async def test_the_pack_of_a_fenced_worker_is_ignored(world: World, objects: Objects) -> None:
    chain = SnapshotChain(world, objects)
    (world.files / "file").write_text("one")
    await chain.add()
    (world.files / "file").write_text("of the one that was cut off")
    stale = SnapshotStep(1, (await world.take_snapshot()).snapshot, chain.steps[0].snapshot)
    await packs.upload_pack(objects, chain.prefix, world.git_dir, stale)
    (world.files / "file").write_text("two")
    await chain.add()
    assert contents(await chain.restore_elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)


def test_a_pack_without_a_chain_does_not_hide_the_complete_chain() -> None:
    first, stray, last = (Snapshot(digit * 40) for digit in "123")
    chain = [SnapshotStep(0, first, None).part_name(1, 1), SnapshotStep(1, last, first).part_name(1, 1)]
    dead_end = SnapshotStep(1, last, stray).part_name(1, 1)
    for names in ([dead_end, *chain], [*chain, dead_end]):
        assert [pack.names for pack in packs.find_pack_chain(names, 1, last)] == [[name] for name in chain]
    with pytest.raises(Permanent, match="snapshot 1 is not in the object store"):
        packs.find_pack_chain([dead_end, chain[1]], 1, last)


async def test_a_fork_continues_from_its_parents_packs(world: World, objects: Objects) -> None:
    parent = SnapshotChain(world, objects)
    (world.files / "parent").write_text("parent")
    await parent.add()
    (world.files / "later").write_text("later")
    await parent.add()
    fork = SnapshotStep(1, (await _forked(world)), parent.steps[0].snapshot)
    await packs.upload_pack(objects, "org/fork/trees", world.git_dir, fork)
    host = await make_host(world.root / "elsewhere.git")
    await packs.download_packs(objects, ["org/fork/trees", parent.prefix], host, 1, fork.snapshot)
    target = world.root / "elsewhere"
    target.mkdir()
    await restore.restore_snapshot(host, fork.snapshot, target)
    assert sorted(contents(target)) == [b"forked", b"parent"]


async def _forked(world: World) -> Snapshot:
    (world.files / "later").unlink()
    (world.files / "forked").write_text("forked")
    return (await world.take_snapshot()).snapshot


async def test_a_large_pack_is_several_objects(world: World, objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MAX_PART_BYTES", 1000)
    (world.files / "noise").write_bytes(os.urandom(4500))
    chain = SnapshotChain(world, objects)
    await chain.add()
    names = await objects.list_names(chain.prefix)
    assert len(names) == 5
    assert contents(await chain.restore_elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)
    await objects.delete_object(f"{chain.prefix}/{max(names)}")
    with pytest.raises(Permanent, match="snapshot 0 is not in the object store"):
        await chain.restore_elsewhere(chain.steps[-1], "broken")


async def test_chunks_of_any_size_give_the_same_pack(world: World, objects: Objects) -> None:
    chain = SnapshotChain(world, objects)
    for number in range(3):
        (world.files / "file").write_text(f"{number}")
        await chain.add()

    class Crumbs(Objects):
        async def read_chunks(self, key: str) -> AsyncIterator[bytes]:
            async for piece in super().read_chunks(key):
                for offset in range(len(piece)):
                    yield piece[offset : offset + 1]

    chain.objects = Crumbs.open(None, world.root / "data")
    assert contents(await chain.restore_elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)


async def test_a_late_pack_is_as_small_as_the_first_ones(world: World, objects: Objects) -> None:
    for number in range(200):
        (world.files / f"{number}").write_text(f"{number}\n")
    chain = SnapshotChain(world, objects)
    await chain.add()
    sizes = []
    for number in range(30):
        (world.files / f"{number}").write_text(f"changed {number}\n")
        sizes.append(await chain.add())
    assert sum(sizes[-10:]) <= 1.2 * sum(sizes[:10])
    assert contents(await chain.restore_elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)
