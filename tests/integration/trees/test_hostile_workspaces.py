"""Hostile agents: the snapshot of a workspace neither blocks, nor runs code, nor contains files from outside."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import World, contents, git, make_world

from footplate.domain.errors import Permanent, Unavailable
from footplate.trees.delivery.agent_commits import CommitCollectionFailed, import_bundle
from footplate.trees.git import Git
from footplate.trees.snapshots import changed_paths
from footplate.trees.snapshots.staging_area import SnapshotLimits

pytestmark = pytest.mark.timing

SECRET = b"the host's own secret"


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = await make_world(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    return world


async def test_a_file_swapped_for_a_link_never_exposes_files_outside(world: World) -> None:
    def swap(number: int) -> None:
        path, other = world.files / "swapped", world.files / "other"
        if number % 2:
            other.symlink_to(world.root / "outside" / "secret")
        else:
            other.write_bytes(b"%d" % number)
        other.replace(path)

    with run_repeatedly(swap) as swaps:
        for _ in range(30):
            await world.take_snapshot()
    assert swaps[0] > 100
    assert not await is_stored(world, SECRET)


async def test_a_directory_swapped_for_a_link_never_exposes_files_outside(world: World) -> None:
    (world.files / "inside").mkdir()
    (world.files / "inside" / "secret").write_bytes(b"of the workspace")

    def swap(number: int) -> None:
        (world.files / "inside").rename(world.files / "aside")
        (world.files / "inside").symlink_to(world.root / "outside")
        (world.files / "aside" / "secret").write_bytes(b"%d" % number)
        (world.files / "inside").unlink()
        (world.files / "aside").rename(world.files / "inside")

    with run_repeatedly(swap) as swaps:
        for _ in range(30):
            await world.take_snapshot()
    assert swaps[0] > 100
    assert not await is_stored(world, SECRET)


async def test_a_linked_git_directory_is_stored_as_a_link(world: World) -> None:
    git(world.root / "outside", "init", "--quiet")
    (world.files / "sub").mkdir()
    (world.files / "sub" / "file").write_text("file")
    (world.files / "sub" / ".git").symlink_to(world.root / "outside")
    (world.files / ".git").symlink_to(world.root / "outside" / ".git")
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)
    assert not await is_stored(world, SECRET)


@pytest.mark.parametrize("name", ["objects", "refs", "HEAD", "config"])
async def test_a_link_inside_a_git_directory_is_restored_as_a_link(world: World, name: str) -> None:
    git(world.files, "init", "--quiet")
    path = world.files / ".git" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(world.root / "outside")
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)
    assert [entry.name for entry in (world.root / "outside").iterdir()] == ["secret"]


async def test_configuration_hooks_and_filters_of_the_workspace_run_nothing(world: World) -> None:
    git(world.files, "init", "--quiet")
    (world.files / ".gitattributes").write_text("* filter=evil diff=evil text eol=crlf\n")
    (world.files / "file").write_text("one\n")
    git(world.files, "add", "--all")
    git(world.files, "commit", "--quiet", "-m", "first")
    touch = f"touch {world.root / 'ran'}; cat"
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "core.pager"):
        git(world.files, "config", key, touch)
    for name in ("post-index-change", "pre-commit", "post-checkout"):
        hook = world.files / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{touch}\n")
        hook.chmod(0o755)
    (world.files / "file").write_text("two\n")
    first = await world.take_snapshot()
    (world.files / "file").write_text("three\n")
    await world.take_snapshot()
    await world.restore(first)
    assert not (world.root / "ran").exists()


@pytest.mark.parametrize("name", [".gitignore", "deep/.gitignore", ".gitattributes", "deep/.gitattributes"])
async def test_a_pipe_that_would_block_git_is_reported_by_name(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_paths, "_BLOCKED_AFTER_SECONDS", 0.2)
    (world.files / "deep").mkdir()
    (world.files / "deep" / "file").write_text("file")
    os.mkfifo(world.files / name)
    started_at = time.monotonic()
    for _ in range(2):
        with pytest.raises(Permanent, match=name):
            await world.take_snapshot()
    assert time.monotonic() - started_at < 30


async def test_the_snapshot_of_a_growing_file_ends(world: World) -> None:
    def grow(_: int) -> None:
        with (world.files / "log").open("ab") as file:
            file.write(bytes(100_000))

    with run_repeatedly(grow):
        taken = await world.take_snapshot(SnapshotLimits(max_file_bytes=3_000_000))
    assert [omitted.path for omitted in taken.omitted] in ([], [b"log"])


async def test_files_that_appear_and_disappear_cause_no_error(world: World) -> None:
    def churn(number: int) -> None:
        path = world.files / f"{number % 50}"
        if path.exists():
            path.unlink()
        else:
            path.write_bytes(b"%d" % number)

    with run_repeatedly(churn):
        for _ in range(20):
            await world.take_snapshot()
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)


async def test_a_snapshot_that_takes_too_long_is_an_error(world: World) -> None:
    for number in range(2000):
        (world.files / f"{number}").write_text("file")
    with pytest.raises(Unavailable, match="could not be read within"):
        await world.take_snapshot(SnapshotLimits(timeout_seconds=0.05))
    await asyncio.sleep(0)
    taken = await world.take_snapshot()
    assert len(contents(await world.restore(taken))) == 2000


async def test_a_commit_whose_tree_has_a_git_directory_is_refused(world: World) -> None:
    git(world.files, "init", "--quiet", "--initial-branch=good")
    git(world.files, "commit", "--quiet", "--allow-empty", "-m", "first")
    host = Git(git_dir=world.git_dir)
    await import_bundle(bundle(world, "good"), host)
    good = git(world.files, "rev-parse", "good").strip()
    assert (await host.run_with_exit_code("cat-file", "-e", good))[0] == 0
    (world.files / "tree").write_bytes(b"40000 .git\0" + bytes.fromhex(git(world.files, "write-tree").strip()))
    tree = git(world.files, "hash-object", "-w", "--literally", "-t", "tree", "tree").strip()
    git(world.files, "update-ref", "refs/heads/bad", git(world.files, "commit-tree", "-m", "bad", tree).strip())
    with pytest.raises(CommitCollectionFailed, match="fsck"):
        await import_bundle(bundle(world, "bad"), host)
    assert (await host.run_with_exit_code("cat-file", "-e", tree, accept=(0, 1, 128)))[0] != 0


def bundle(world: World, branch: str) -> bytes:
    git(world.files, "bundle", "create", "--quiet", "../bundle", branch)
    return (world.root / "bundle").read_bytes()


@contextmanager
def run_repeatedly(act: Callable[[int], None]) -> Iterator[list[int]]:
    """Runs an action repeatedly in a thread. Yields how often it ran."""
    done = [0]
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            act(done[0])
            done[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


async def is_stored(world: World, content: bytes) -> bool:
    """Tells whether any object stored by the host contains the content."""
    host = Git(git_dir=world.git_dir)
    listed = await host.run("cat-file", "--batch-check=%(objectname) %(objecttype)", "--batch-all-objects")
    blobs = [line.split()[0] for line in listed.decode().splitlines() if line.endswith("blob")]
    found = await host.run("cat-file", "--batch", stdin="\n".join(blobs).encode())
    return content in found
