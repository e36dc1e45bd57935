"""Incremental snapshots, which read only touched files, have the same ids as full snapshots."""

import asyncio
import os
import random
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.trees.random_changes import CHANGES
from tests.integration.trees.snapshot_fixtures import World, git, make_host, make_world

from footplate.domain.files.snapshots import TakenSnapshot
from footplate.trees.object_database import ObjectDatabase
from footplate.trees.snapshots import full_snapshot as snapshots
from footplate.trees.snapshots import incremental_snapshots, tree_watch
from footplate.trees.snapshots.file_state_cache import SnapshotCache
from footplate.trees.snapshots.incremental_snapshots import IncrementalSnapshots
from footplate.trees.snapshots.staging_area import SnapshotLimits
from footplate.trees.snapshots.tree_watch import TreeWatch

pytestmark = pytest.mark.timing

LIMITS = SnapshotLimits()


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await make_world(tmp_path)


@pytest.fixture
async def followed(world: World) -> AsyncIterator[IncrementalSnapshots]:
    tree = IncrementalSnapshots(world.git_dir, world.files, LIMITS)
    yield tree
    await tree.close()


@pytest.fixture
def full_scans(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The git directory of every snapshot that read all files."""
    scans: list[Path] = []
    take = snapshots.take_snapshot_and_cache

    async def counted(git_dir: Path, work_tree: Path, **options: Any) -> tuple[TakenSnapshot, SnapshotCache]:
        scans.append(git_dir)
        return await take(git_dir, work_tree, **options)

    monkeypatch.setattr(snapshots, "take_snapshot_and_cache", counted)
    return scans


async def test_a_change_is_found_without_a_full_scan(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path]
) -> None:
    (world.files / "deep" / "er").mkdir(parents=True)
    (world.files / "deep" / "er" / "file").write_text("one")
    (world.files / "stays").write_text("as it is")
    first = await followed.take_snapshot(None)
    assert len(full_scans) == 1
    assert await followed.take_snapshot(None) == first
    for change in (write_same_size, add_files, rename_directory, remove_directory, make_executable, replace_by_link):
        change(world.files)
        assert await followed.take_snapshot(None) == await full_snapshot(world), change
        full_scans.remove(world.root / "other.git")
    assert len(full_scans) == 1


async def test_ignored_files_are_omitted_and_a_changed_gitignore_applies(
    world: World, followed: IncrementalSnapshots
) -> None:
    (world.files / ".gitignore").write_text("*.log\n/build\n")
    first = await followed.take_snapshot(None)
    (world.files / "new.log").write_text("noise")
    (world.files / "build").mkdir()
    (world.files / "build" / "made").write_text("noise")
    assert await followed.take_snapshot(None) == first
    (world.files / ".gitignore").write_text("*.txt\n")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_the_agents_own_repository_is_followed(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path]
) -> None:
    (world.files / "file").write_text("one")
    git(world.files, "init", "--quiet")
    await followed.take_snapshot(None)
    full_scans.clear()
    (world.files / "file").write_text("two")
    git(world.files, "add", ".")
    git(world.files, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "one")
    (world.files / ".git" / "index.lock").touch()
    taken = await followed.take_snapshot(None)
    assert full_scans == []
    assert taken == await full_snapshot(world)
    (world.files / ".git" / "index.lock").unlink()
    git(world.files, "gc", "--quiet")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_a_tree_that_starts_empty_needs_no_full_scan(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path]
) -> None:
    await followed.watch_empty_tree()
    (world.files / "new").write_text("one")
    taken = await followed.take_snapshot(None)
    assert full_scans == []
    assert taken == await full_snapshot(world)


async def test_a_tree_that_does_not_start_empty_is_scanned(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path]
) -> None:
    (world.files / "old").write_text("one")
    await followed.watch_empty_tree()
    assert await followed.take_snapshot(None) == await full_snapshot(world)
    assert world.git_dir in full_scans


async def test_a_large_file_is_omitted_until_it_is_small(world: World, followed: IncrementalSnapshots) -> None:
    followed.limits = SnapshotLimits(max_file_bytes=2 << 20)
    await followed.take_snapshot(None)
    (world.files / "large").write_bytes(b"x" * (3 << 20))
    (world.files / "small").write_bytes(b"x")
    taken = await followed.take_snapshot(None)
    assert [each.path for each in taken.omitted] == [b"large"]
    (world.files / "small").write_bytes(b"y")
    assert [each.path for each in (await followed.take_snapshot(None)).omitted] == [b"large"]
    (world.files / "large").write_bytes(b"x")
    assert (await followed.take_snapshot(None)).omitted == ()


async def test_a_file_with_two_names_changes_under_both(world: World, followed: IncrementalSnapshots) -> None:
    (world.files / "one").write_text("one")
    os.link(world.files / "one", world.files / "two")
    await followed.take_snapshot(None)
    (world.files / "one").write_text("other")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_too_many_directories_cause_full_scans(
    world: World, followed: IncrementalSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_watch, "MAX_DIRECTORIES", 5)
    for number in range(9):
        (world.files / str(number)).mkdir()
        (world.files / str(number) / "file").write_text("one")
    assert await followed.take_snapshot(None) == await full_snapshot(world)
    (world.files / "3" / "file").write_text("two")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_very_many_packs_cause_full_scans(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental_snapshots, "MAX_PACKS", 1)
    mirror = await make_host(world.root / "mirror.git")
    (world.git_dir / "objects" / "info" / "alternates").write_text(f"{mirror / 'objects'}\n")
    for number in range(2):
        (mirror / "objects" / "pack" / f"pack-{number}.pack").touch()
    for number in range(2):
        (world.files / "file").write_text(str(number))
        assert await followed.take_snapshot(None) == await full_snapshot(world)
    assert full_scans.count(world.git_dir) == 2


async def test_many_ignored_directories_do_not_count(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_watch, "MAX_DIRECTORIES", 5)
    (world.files / ".gitignore").write_text("packages/\n")
    for number in range(9):
        (world.files / "packages" / str(number)).mkdir(parents=True)
        (world.files / "packages" / str(number) / "file").write_text("one")
    await followed.take_snapshot(None)
    full_scans.clear()
    (world.files / "mine").write_text("two")
    taken = await followed.take_snapshot(None)
    assert full_scans == []
    assert taken == await full_snapshot(world)


async def test_dropped_events_cause_a_full_scan(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path]
) -> None:
    await followed.take_snapshot(None)
    await asyncio.to_thread(write_too_often, world.files)
    taken = await followed.take_snapshot(None)
    assert full_scans.count(world.git_dir) == 2
    assert taken == await full_snapshot(world)


async def test_changes_are_found_after_a_failed_snapshot(
    world: World, followed: IncrementalSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    await followed.take_snapshot(None)
    (world.files / "new").write_text("one")
    with monkeypatch.context() as broken:
        broken.setattr(incremental_snapshots, "_Reader", None)
        assert await followed.take_snapshot(None) == await full_snapshot(world)
    (world.files / "new").write_text("two")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


@pytest.mark.parametrize("where", ["read_touched", "_classify", "_apply"])
async def test_changes_are_found_after_a_cancelled_snapshot(
    world: World, followed: IncrementalSnapshots, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Its thread keeps running, but changes nothing that a later snapshot uses."""
    (world.files / "a").write_text("one")
    await followed.take_snapshot(None)
    (world.files / "b").write_text("one")
    began, end = threading.Event(), threading.Event()
    owner: Any = TreeWatch if where == "read_touched" else incremental_snapshots
    original = getattr(owner, where)

    def slow(*arguments: Any) -> Any:
        result = original(*arguments)
        began.set()
        end.wait(30)
        return result

    with monkeypatch.context() as slowed:
        slowed.setattr(owner, where, slow)
        task = asyncio.create_task(followed.take_snapshot(None))
        await asyncio.to_thread(began.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (world.files / "c").write_text("one")
    expected = await full_snapshot(world)
    assert await followed.take_snapshot(None) == expected
    end.set()
    await asyncio.sleep(0.05)
    assert await followed.take_snapshot(None) == expected


async def test_files_found_in_a_directory_that_is_not_watched_yet_are_followed(
    world: World, followed: IncrementalSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = snapshots.take_snapshot_and_cache

    async def late(git_dir: Path, work_tree: Path, **options: Any) -> tuple[TakenSnapshot, SnapshotCache]:
        if git_dir == world.git_dir:
            await asyncio.to_thread(add_files, world.files)
        return await scan(git_dir, work_tree, **options)

    (world.files / "old").write_text("one")
    with monkeypatch.context() as raced:
        raced.setattr(snapshots, "take_snapshot_and_cache", late)
        await followed.take_snapshot(None)
    (world.files / "new" / "directory" / "a").unlink()
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_a_directory_that_is_ignored_no_longer_is_watched(
    world: World, followed: IncrementalSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_watch, "MAX_DIRECTORIES", 5)
    (world.files / ".gitignore").write_text("packages/\n")
    for number in range(9):
        (world.files / "packages" / str(number)).mkdir(parents=True)
    (world.files / "packages" / "file").write_text("one")
    await followed.take_snapshot(None)
    monkeypatch.setattr(tree_watch, "MAX_DIRECTORIES", 50)
    (world.files / ".gitignore").write_text("")
    assert await followed.take_snapshot(None) == await full_snapshot(world)
    (world.files / "packages" / "file").write_text("two")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_a_directory_whose_files_happen_to_be_ignored_is_watched(
    world: World, followed: IncrementalSnapshots, full_scans: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_watch, "MAX_DIRECTORIES", 5)
    (world.files / ".gitignore").write_text("packages/\n*.log\n")
    for number in range(9):
        (world.files / "packages" / str(number)).mkdir(parents=True)
    (world.files / "packages" / "file").write_text("one")
    (world.files / "out").mkdir()
    (world.files / "out" / "a.log").write_text("one")
    await followed.take_snapshot(None)
    full_scans.clear()
    (world.files / "out" / "result").write_text("one")
    taken = await followed.take_snapshot(None)
    assert full_scans == []
    assert taken == await full_snapshot(world)


async def test_a_nested_repository_that_is_moved_away_is_noticed(world: World, followed: IncrementalSnapshots) -> None:
    (world.files / "nested").mkdir()
    (world.files / "nested" / "file").write_text("one")
    git(world.files / "nested", "init", "--quiet")
    await followed.take_snapshot(None)
    (world.files / "nested").rename(world.root / "away")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_very_deep_and_very_many_new_directories_cause_full_scans(
    world: World, followed: IncrementalSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_watch, "_MAX_TOUCHED", 20)
    monkeypatch.setattr(tree_watch, "_MAX_DEPTH", 10)
    await followed.take_snapshot(None)
    for number in range(4):
        (world.files / str(number)).mkdir()
        for name in range(9):
            (world.files / str(number) / str(name)).write_text("one")
    assert await followed.take_snapshot(None) == await full_snapshot(world)
    world.files.joinpath(*"abcdefghijklmnop").mkdir(parents=True)
    world.files.joinpath(*"abcdefghijklmnop", "file").write_text("one")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_a_replaced_root_directory_is_noticed(world: World, followed: IncrementalSnapshots) -> None:
    (world.files / "a").write_text("one")
    await followed.take_snapshot(None)
    world.files.rename(world.root / "away")
    world.files.mkdir()
    (world.files / "b").write_text("one")
    assert await followed.take_snapshot(None) == await full_snapshot(world)


async def test_git_builds_a_pack_that_is_too_deep_for_this_process(
    world: World, followed: IncrementalSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_deep(*_: object) -> None:
        raise RecursionError

    first = await followed.take_snapshot(None)
    (world.files / "a").write_text("one")
    taken = await followed.take_snapshot(None)
    assert await followed.build_pack(first.snapshot, taken.snapshot) is not None
    monkeypatch.setattr(ObjectDatabase, "iter_added_objects", too_deep)
    assert await followed.build_pack(first.snapshot, taken.snapshot) is None


@pytest.mark.parametrize("seed", range(4))
async def test_random_changes_have_the_same_ids_as_a_full_snapshot(
    world: World, followed: IncrementalSnapshots, seed: int
) -> None:
    chance = random.Random(seed)
    git(world.files, "init", "--quiet")
    await followed.take_snapshot(None)
    other = await make_host(world.root / "other.git")
    for number in range(15):
        changes = [chance.choice(CHANGES) for _ in range(chance.randint(1, 4))]
        for change in changes:
            change(world.files, chance)
        assert await followed.take_snapshot(None) == await snapshots.take_snapshot(other, world.files), (
            seed,
            number,
            changes,
        )


async def full_snapshot(world: World) -> object:
    """Takes a snapshot on a host that has never seen the tree."""
    other = world.root / "other.git"
    await asyncio.to_thread(shutil.rmtree, other, ignore_errors=True)
    return await snapshots.take_snapshot(await make_host(other), world.files, limits=LIMITS)


def write_too_often(files: Path) -> None:
    """Writes more often than the kernel's event queue holds."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2):
        (files / f"{number % 2}").write_text(str(number))
    (files / "last").write_text("one")


def write_same_size(files: Path) -> None:
    (files / "deep" / "er" / "file").write_text("two")


def add_files(files: Path) -> None:
    (files / "new" / "directory").mkdir(parents=True)
    (files / "new" / "directory" / "a").write_text("a")
    (files / "new" / "directory" / "b").write_text("b")


def rename_directory(files: Path) -> None:
    (files / "new").rename(files / "deep" / "new")


def remove_directory(files: Path) -> None:
    shutil.rmtree(files / "deep" / "new")


def make_executable(files: Path) -> None:
    (files / "stays").chmod(0o755)


def replace_by_link(files: Path) -> None:
    (files / "stays").unlink()
    (files / "stays").symlink_to("deep")
