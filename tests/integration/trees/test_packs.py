"""Snapshots are uploaded as packs of the objects that each one added, and another host restores the files."""

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.trees.worlds import World, contents, git, make_host, make_world

from footplate.domain.errors import Permanent
from footplate.domain.snapshots import Snapshot
from footplate.store.objects import Objects
from footplate.trees import packs, restoring
from footplate.trees.packs import Step


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await make_world(tmp_path)


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects.open(None, tmp_path / "data")


class Chain:
    """A session's snapshots, uploaded as they are taken."""

    def __init__(self, world: World, objects: Objects, prefix: str = "org/session/trees") -> None:
        self.world = world
        self.objects = objects
        self.prefix = prefix
        self.steps: list[Step] = []

    async def add(self) -> int:
        """Takes and uploads a snapshot. Returns the number of bytes written."""
        taken = (await self.world.take()).snapshot
        before = self.steps[-1].snapshot if self.steps else None
        if taken == before:
            return 0
        self.steps.append(Step(len(self.steps), taken, before))
        return await packs.upload(self.objects, self.prefix, self.world.git_dir, self.steps[-1])

    async def elsewhere(self, step: Step, name: str) -> Path:
        host = await make_host(self.world.root / f"{name}.git")
        await packs.download(self.objects, [self.prefix], host, step.number, step.snapshot)
        target = self.world.root / name
        target.mkdir()
        await restoring.restore(host, step.snapshot, target)
        return target


async def test_another_host_restores_every_snapshot_from_the_store_alone(world: World, objects: Objects) -> None:
    chain = Chain(world, objects)
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
        assert contents(await chain.elsewhere(step, f"elsewhere-{step.number}")) == wanted


async def test_a_pack_has_what_was_added_and_nothing_else(world: World, objects: Objects) -> None:
    source = random.Random(1)
    (world.files / "large").write_bytes(source.randbytes(1_000_000))
    text = [f"{source.random()}\n" for _ in range(20_000)]
    (world.files / "text").write_text("".join(text))
    chain = Chain(world, objects)
    assert await chain.add() > 1_000_000
    assert await chain.add() == 0
    text[100] = "another line\n"
    (world.files / "text").write_text("".join(text))
    assert await chain.add() < 1000
    restored = await chain.elsewhere(chain.steps[-1], "elsewhere")
    assert contents(restored) == contents(world.files)


async def test_an_upload_that_is_done_again_writes_nothing(world: World, objects: Objects) -> None:
    chain = Chain(world, objects)
    (world.files / "file").write_text("file")
    assert await chain.add() > 0
    assert await packs.upload(objects, chain.prefix, world.git_dir, chain.steps[-1]) == 0


async def test_what_a_worker_that_was_cut_off_wrote_is_in_nobodys_way(world: World, objects: Objects) -> None:
    chain = Chain(world, objects)
    (world.files / "file").write_text("one")
    await chain.add()
    (world.files / "file").write_text("of the one that was cut off")
    stale = Step(1, (await world.take()).snapshot, chain.steps[0].snapshot)
    await packs.upload(objects, chain.prefix, world.git_dir, stale)
    (world.files / "file").write_text("two")
    await chain.add()
    assert contents(await chain.elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)


def test_a_pack_that_leads_nowhere_hides_no_way() -> None:
    first, stray, last = (Snapshot(digit * 40) for digit in "123")
    way = [Step(0, first, None).name(1, 1), Step(1, last, first).name(1, 1)]
    dead_end = Step(1, last, stray).name(1, 1)
    for names in ([dead_end, *way], [*way, dead_end]):
        assert packs.chain(names, 1, last) == [[name] for name in way]
    with pytest.raises(Permanent, match="snapshot 1 is not in the object store"):
        packs.chain([dead_end, way[1]], 1, last)


async def test_a_fork_goes_on_from_its_parents_packs(world: World, objects: Objects) -> None:
    parent = Chain(world, objects)
    (world.files / "parent").write_text("parent")
    await parent.add()
    (world.files / "later").write_text("later")
    await parent.add()
    fork = Step(1, (await _forked(world)), parent.steps[0].snapshot)
    await packs.upload(objects, "org/fork/trees", world.git_dir, fork)
    host = await make_host(world.root / "elsewhere.git")
    await packs.download(objects, ["org/fork/trees", parent.prefix], host, 1, fork.snapshot)
    target = world.root / "elsewhere"
    target.mkdir()
    await restoring.restore(host, fork.snapshot, target)
    assert sorted(contents(target)) == [b"forked", b"parent"]


async def _forked(world: World) -> Snapshot:
    (world.files / "later").unlink()
    (world.files / "forked").write_text("forked")
    return (await world.take()).snapshot


async def test_a_large_pack_is_several_objects(world: World, objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "PART", 1000)
    (world.files / "noise").write_bytes(os.urandom(4500))
    chain = Chain(world, objects)
    await chain.add()
    names = await objects.names(chain.prefix)
    assert len(names) == 5
    assert contents(await chain.elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)
    await objects.delete(f"{chain.prefix}/{max(names)}")
    with pytest.raises(Permanent, match="snapshot 0 is not in the object store"):
        await chain.elsewhere(chain.steps[-1], "broken")


async def test_pieces_of_any_size_make_the_same_pack(world: World, objects: Objects) -> None:
    chain = Chain(world, objects)
    for number in range(3):
        (world.files / "file").write_text(f"{number}")
        await chain.add()

    class Crumbs(Objects):
        async def read_chunks(self, key: str) -> AsyncIterator[bytes]:
            async for piece in super().pieces(key):
                for place in range(len(piece)):
                    yield piece[place : place + 1]

    chain.objects = Crumbs.open(None, world.root / "data")
    assert contents(await chain.elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)


async def test_a_late_pack_is_as_small_as_the_first_ones(world: World, objects: Objects) -> None:
    for number in range(200):
        (world.files / f"{number}").write_text(f"{number}\n")
    chain = Chain(world, objects)
    await chain.add()
    sizes = []
    for number in range(30):
        (world.files / f"{number}").write_text(f"changed {number}\n")
        sizes.append(await chain.add())
    assert sum(sizes[-10:]) <= 1.2 * sum(sizes[:10])
    assert contents(await chain.elsewhere(chain.steps[-1], "elsewhere")) == contents(world.files)
