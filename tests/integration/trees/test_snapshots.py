"""A snapshot contains every file of the working tree, and restoring it gives the same files."""

import asyncio
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import World, contents, git, make_world

from footplate.trees.git import Git
from footplate.trees.git_plumbing import update_index
from footplate.trees.snapshots import full_snapshot
from footplate.trees.snapshots.staging_area import SnapshotLimits

pytestmark = pytest.mark.timing


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await make_world(tmp_path)


async def test_files_links_modes_and_names_of_any_bytes_are_restored(world: World) -> None:
    fill(world.files)
    taken = await world.take_snapshot()
    restored = await world.restore(taken)
    assert contents(restored) == contents(world.files)
    assert taken.omitted == ()


async def test_an_unchanged_tree_has_the_same_ids_and_adds_no_object(world: World) -> None:
    fill(world.files)
    git(world.files, "init", "--quiet")
    first = await world.take_snapshot()
    objects = world.count_objects()
    assert await world.take_snapshot() == first
    assert world.count_objects() == objects


async def test_a_change_of_the_same_size_in_the_same_second_is_detected(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git knows file times in seconds, and the snapshot writes its index more than once."""

    async def in_the_next_second(of: Git, lines: Iterable[bytes]) -> None:
        await asyncio.sleep(1.01 - time.time() % 1)
        await update_index(of, lines)

    await asyncio.sleep(1.01 - time.time() % 1)
    (world.files / "same size").write_bytes(b"one")
    (world.files / "goes").touch()
    await world.take_snapshot()
    (world.files / "same size").write_bytes(b"two")
    (world.files / "goes").unlink()
    monkeypatch.setattr(full_snapshot, "update_index", in_the_next_second)
    restored = await world.restore(await world.take_snapshot())
    assert contents(restored) == contents(world.files)


async def test_each_kind_of_change_is_detected(world: World) -> None:
    fill(world.files)
    await world.take_snapshot()
    (world.files / "plain").write_bytes(b"other\n")
    (world.files / "program").chmod(0o644)
    (world.files / "link").unlink()
    (world.files / "link").symlink_to("elsewhere")
    (world.files / "deep" / "er" / "file").unlink()
    (world.files / "new").write_bytes(b"")
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)


async def test_file_directory_and_link_may_replace_each_other(world: World) -> None:
    for name in ("one", "two", "three"):
        (world.files / name).write_text(name)
        (world.files / f"{name}-directory").mkdir()
        (world.files / f"{name}-directory" / "inside").write_text(name)
    await world.take_snapshot()
    (world.files / "one").unlink()
    (world.files / "one").mkdir()
    (world.files / "one" / "inside").write_text("now")
    (world.files / "two-directory" / "inside").unlink()
    (world.files / "two-directory").rmdir()
    (world.files / "two-directory").write_text("a file now")
    (world.files / "three-directory").rename(world.files / "moved")
    (world.files / "three-directory").symlink_to("moved")
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)


async def test_only_ignore_rules_of_the_project_apply(world: World) -> None:
    git(world.files, "init", "--quiet")
    (world.files / ".git" / "info" / "exclude").write_text("*.secretly\n")
    git(world.files, "config", "core.excludesFile", str(world.root / "excludes"))
    (world.root / "excludes").write_text("*.too\n")
    (world.files / ".gitignore").write_text("*.log\nbuilt/\n")
    for name in ("a.log", "a.secretly", "a.too", "a.txt"):
        (world.files / name).write_text(name)
    (world.files / "built").mkdir()
    (world.files / "built" / "large").write_text("large")
    restored = await world.restore(await world.take_snapshot())
    assert sorted(contents(restored, git=False)) == [b".gitignore", b"a.secretly", b"a.too", b"a.txt"]


async def test_staged_and_unstaged_changes_and_the_index_are_restored(world: World) -> None:
    commit(world.files)
    (world.files / "staged").write_text("staged")
    git(world.files, "add", "staged")
    (world.files / "plain").write_text("unstaged\n")
    (world.files / "untracked").write_text("untracked")
    restored = await world.restore(await world.take_snapshot())
    assert contents(restored) == contents(world.files)
    assert git(restored, "status", "--porcelain") == git(world.files, "status", "--porcelain")
    assert git(restored, "log", "--format=%H") == git(world.files, "log", "--format=%H")


async def test_a_repository_before_its_first_commit_is_restored(world: World) -> None:
    git(world.files, "init", "--quiet", "--initial-branch=trunk")
    (world.files / "first").write_text("first")
    git(world.files, "add", "first")
    restored = await world.restore(await world.take_snapshot())
    assert git(restored, "status", "--porcelain", "--branch") == "## No commits yet on trunk\nA  first\n"


async def test_an_unfinished_merge_is_restored(world: World) -> None:
    commit(world.files)
    git(world.files, "checkout", "--quiet", "-b", "theirs")
    (world.files / "plain").write_text("theirs\n")
    git(world.files, "commit", "--quiet", "-am", "theirs")
    git(world.files, "checkout", "--quiet", "-b", "ours", "HEAD~")
    (world.files / "plain").write_text("ours\n")
    git(world.files, "commit", "--quiet", "-am", "ours")
    git(world.files, "merge", "theirs", check=False)
    restored = await world.restore(await world.take_snapshot())
    assert contents(restored) == contents(world.files)
    assert "UU plain" in git(restored, "status", "--porcelain")
    (restored / "plain").write_text("both\n")
    git(restored, "commit", "--quiet", "-am", "merged")
    assert len(git(restored, "log", "-1", "--format=%P").split()) == 2


async def test_nested_repositories_are_restored_with_files_and_history(world: World) -> None:
    commit(world.files)
    commit(world.files / "vendor" / "nested")
    commit(world.files / "vendor" / "nested" / "inner")
    git(make(world.files / "empty"), "init", "--quiet")
    first = await world.take_snapshot()
    assert contents(await world.restore(first, "first")) == contents(world.files)
    (world.files / "vendor" / "nested" / "plain").write_text("changed\n")
    (world.files / "vendor" / "nested" / "added").write_text("added\n")
    git(world.files / "vendor" / "nested", "commit", "--quiet", "-am", "second")
    git(make(world.files / "deep" / "later"), "init", "--quiet")
    git(world.files / "deep", "init", "--quiet")
    second = await world.take_snapshot()
    restored = await world.restore(second, "second")
    assert contents(restored) == contents(world.files)
    assert git(restored / "vendor" / "nested", "log", "--format=%s") == "second\nfirst\n"
    assert second.snapshot.tree != first.snapshot.tree


async def test_a_repository_that_replaces_a_file_is_restored(world: World) -> None:
    (world.files / "library").write_text("a file\n")
    (world.files / "link").write_text("another\n")
    await world.take_snapshot()
    (world.files / "library").unlink()
    commit(make(world.files / "library"))
    (world.files / "link").unlink()
    (world.files / "link").symlink_to("library")
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)
    assert await world.take_snapshot() == taken


async def test_the_files_of_a_submodule_are_restored_and_the_tree_has_its_link(world: World) -> None:
    commit(world.root / "library")
    commit(world.files)
    git(
        world.files,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(world.root / "library"),
        "lib",
    )
    git(world.files, "commit", "--quiet", "-m", "with a submodule")
    tree = git(world.files, "rev-parse", "HEAD^{tree}").strip()
    await adopt(world, tree)
    (world.files / "lib" / "plain").write_text("changed in the submodule\n")
    (world.files / "lib" / "yarn.lock").write_text("no lock of git's\n")
    taken = await world.take_snapshot()
    assert taken.snapshot.tree == tree
    restored = await world.restore(taken)
    assert contents(restored) == contents(world.files)
    assert git(restored / "lib", "status", "--porcelain") == " M plain\n?? yarn.lock\n"


async def test_a_submodule_that_was_not_fetched_stays_a_link_until_it_is_removed(world: World) -> None:
    commit(world.root / "library")
    commit(world.root / "project")
    git(
        world.root / "project",
        *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.root / "library"), "lib"),
    )
    git(world.root / "project", "commit", "--quiet", "-m", "with a submodule")
    world.files.rmdir()
    git(world.root, "clone", "--quiet", str(world.root / "project"), str(world.files))
    tree = git(world.files, "rev-parse", "HEAD^{tree}").strip()
    await adopt(world, tree)
    assert (await world.take_snapshot()).snapshot.tree == tree
    (world.files / "lib").rmdir()
    taken = await world.take_snapshot()
    assert not (await world.restore(taken) / "lib").exists()


async def test_file_names_that_git_refuses_are_restored(world: World) -> None:
    (world.files / ".GIT").mkdir()
    (world.files / ".GIT" / "config").write_text("[core]\n")
    (world.files / "%2Egit").write_text("no git directory")
    (world.files / "sub").mkdir()
    (world.files / "sub" / ".git").write_text("gitdir: nowhere\n")
    (world.files / "sub" / "file").write_text("file")
    (world.files / ".gitmodules").symlink_to("sub/file")
    (world.files / "back\\slash").write_text("a name like any other")
    (world.files / "git~1").write_text("as well")
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)
    assert taken.omitted == ()


async def test_locks_of_a_running_git_are_omitted(world: World) -> None:
    commit(world.files)
    (world.files / ".git" / "index.lock").write_text("")
    (world.files / "Cargo.lock").write_text("")
    restored = await world.restore(await world.take_snapshot())
    assert not (restored / ".git" / "index.lock").exists()
    assert (restored / "Cargo.lock").exists()


async def test_pipes_sockets_and_large_files_are_omitted_and_reported(world: World) -> None:
    (world.files / "tracked").write_text("a file at first")
    (world.files / "grows").write_text("small")
    await world.take_snapshot()
    (world.files / "tracked").unlink()
    os.mkfifo(world.files / "tracked")
    os.mkfifo(world.files / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(world.files / "socket"))
    os.truncate(world.files / "grows", 1 << 40)
    taken = await world.take_snapshot()
    assert {omitted.path: omitted.reason for omitted in taken.omitted} == {
        b"tracked": "not a regular file or symbolic link",
        b"grows": f"larger than {SnapshotLimits().max_file_bytes} bytes",
    }
    assert contents(await world.restore(taken)) == {}


async def test_files_above_the_limit_of_a_snapshot_are_omitted_and_reported(world: World) -> None:
    for name in ("a", "b", "c"):
        (world.files / name).write_bytes(name.encode() * 1000)
    taken = await world.take_snapshot(SnapshotLimits(max_new_bytes=2500))
    assert [omitted.path for omitted in taken.omitted] == [b"c"]
    assert sorted(contents(await world.restore(taken))) == [b"a", b"b"]
    assert (await world.take_snapshot()).omitted == ()


async def test_a_large_file_is_restored(world: World) -> None:
    (world.files / "large").write_bytes(os.urandom(20 << 20))
    taken = await world.take_snapshot()
    assert contents(await world.restore(taken)) == contents(world.files)


async def test_a_newly_ignored_file_is_omitted_unless_the_project_tracks_it(world: World) -> None:
    (world.files / "project.log").write_text("the project has it\n")
    git(world.files, "init", "--quiet")
    git(world.files, "add", "--all")
    base = git(world.files, "write-tree").strip()
    await adopt(world, base)
    (world.files / "made.log").write_text("made by the agent\n")
    await world.take_snapshot()
    (world.files / ".gitignore").write_text("*.log\n")
    taken = await world.take_snapshot(base=base)
    assert sorted(contents(await world.restore(taken), git=False)) == [b".gitignore", b"project.log"]


def fill(directory: Path) -> None:
    (directory / "plain").write_bytes(b"plain\n")
    (directory / "crlf").write_bytes(b"one\r\ntwo\r\n")
    (directory / ".gitattributes").write_text("* text=auto eol=crlf ident filter=evil working-tree-encoding=UTF-16\n")
    (directory / "$Id$").write_bytes(b"$Id$\n")
    (directory / "program").write_bytes(b"#!/bin/sh\n")
    (directory / "program").chmod(0o755)
    (directory / "binary").write_bytes(bytes(range(256)) * 10)
    (directory / "empty").write_bytes(b"")
    (directory / "link").symlink_to("plain")
    (directory / "dangling").symlink_to("/nowhere/at/all")
    make(directory / "deep" / "er")
    (directory / "deep" / "er" / "file").write_bytes(b"deep\n")
    for name in (b"caf\xe9", "\U0001f600".encode(), b"new\nline", b'quo"te', b"tab\t", b" space ", b"*", b":(top)x"):
        (directory / os.fsdecode(name)).write_bytes(name)


def make(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def commit(directory: Path) -> None:
    """Creates a repository with one commit."""
    make(directory)
    git(directory, "init", "--quiet", "--initial-branch=main")
    (directory / "plain").write_text("plain\n")
    git(directory, "add", "plain")
    git(directory, "commit", "--quiet", "-m", "first")


async def adopt(world: World, tree: str) -> None:
    """Prepares a session's tree: the host has the project's objects, and an index of its base."""
    (world.git_dir / "objects" / "info" / "alternates").write_text(f"{world.files / '.git' / 'objects'}\n")
    await Git(git_dir=world.git_dir, work_tree=world.files).run("read-tree", tree)
