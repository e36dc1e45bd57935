"""A diff of two trees: one line for each change, and a patch that turns one tree into the other."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import World, contents, git, make_world

from footplate.domain.errors import InvalidRequest
from footplate.domain.files.snapshots import FileChange, display_path
from footplate.trees.diffs import tree_diff
from footplate.trees.git import GitFailed


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await make_world(tmp_path)


async def change_files(world: World) -> tuple[str, str]:
    (world.files / "modified").write_text("one\ntwo\nthree\n")
    (world.files / "deleted").write_text("gone\n")
    (world.files / "renamed").write_text("".join(f"line {number}\n" for number in range(50)))
    (world.files / "binary").write_bytes(bytes(range(256)))
    (world.files / "program").write_text("run\n")
    (world.files / "becomes-link").write_text("file\n")
    old = (await world.take_snapshot()).snapshot.tree
    (world.files / "modified").write_text("one\n2\nthree\nfour\n")
    (world.files / "deleted").unlink()
    (world.files / "renamed").rename(world.files / "new\nname")
    (world.files / "binary").write_bytes(bytes(reversed(range(256))))
    (world.files / "program").chmod(0o755)
    (world.files / "becomes-link").unlink()
    (world.files / "becomes-link").symlink_to("modified")
    (world.files / os.fsdecode(b"caf\xe9")).write_bytes(b"added\n")
    return old, (await world.take_snapshot()).snapshot.tree


@pytest.mark.requirement("C6")
async def test_the_summary_has_a_line_for_each_file(world: World) -> None:
    old, new = await change_files(world)
    found = await tree_diff.summarise_changes(world.git_dir, old, new)
    assert {line.path: line for line in found} == {
        line.path: line
        for line in (
            FileChange(path=b"modified", status="modified", added=2, deleted=1),
            FileChange(path=b"deleted", status="deleted", added=0, deleted=1),
            FileChange(path=b"new\nname", old_path=b"renamed", status="renamed", added=0, deleted=0),
            FileChange(path=b"binary", status="modified", added=None, deleted=None),
            FileChange(path=b"program", status="modified", added=0, deleted=0),
            FileChange(path=b"becomes-link", status="type_changed", added=1, deleted=1),
            FileChange(path=b"caf\xe9", status="added", added=1, deleted=0),
        )
    }
    assert [line.path for line in found if line.binary] == [b"binary"]
    assert display_path(b"caf\xe9") == "caf\\xe9"


async def test_a_summary_of_too_many_files_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = await change_files(world)
    monkeypatch.setattr(tree_diff, "MAX_SUMMARY_BYTES", 500)
    with pytest.raises(InvalidRequest, match="too many changed files"):
        await tree_diff.summarise_changes(world.git_dir, old, new)


async def test_the_same_tree_has_no_difference(world: World) -> None:
    old, _ = await change_files(world)
    assert await tree_diff.summarise_changes(world.git_dir, old, old) == []
    async with tree_diff.stream_patch(world.git_dir, old, old) as pieces:
        assert [piece async for piece in pieces] == []


async def test_the_patch_turns_one_tree_into_the_other(world: World) -> None:
    first = await world.take_snapshot()
    old, new = await change_files(world)
    assert first.snapshot.tree != old
    async with tree_diff.stream_patch(world.git_dir, old, new) as pieces:
        patch = b"".join([piece async for piece in pieces])
    now = contents(world.files)
    target = world.root / "applied"
    target.mkdir()
    apply(target, await read_patch(world, first.snapshot.tree, old))
    apply(target, patch)
    assert contents(target) == now


async def test_a_link_moved_below_its_old_path_is_patched(world: World) -> None:
    empty = (await world.take_snapshot()).snapshot.tree
    (world.files / "w").symlink_to("somewhere")
    old = (await world.take_snapshot()).snapshot.tree
    (world.files / "w").unlink()
    (world.files / "w").mkdir()
    (world.files / "w" / "link").symlink_to("somewhere")
    new = (await world.take_snapshot()).snapshot.tree
    target = world.root / "applied"
    target.mkdir()
    apply(target, await read_patch(world, empty, old))
    apply(target, await read_patch(world, old, new))
    assert contents(target) == contents(world.files)
    assert b"rename" not in await read_patch(world, old, new)


async def test_files_in_a_directory_whose_name_ends_with_a_space_are_patched(world: World) -> None:
    empty = (await world.take_snapshot()).snapshot.tree
    directory = world.files / "at the end " / "b"
    directory.mkdir(parents=True)
    (directory / "program").write_text("diff --git a/x /y b/x /y\n")
    (directory / "goes").touch()
    old = (await world.take_snapshot()).snapshot.tree
    (directory / "program").chmod(0o755)
    (directory / "goes").unlink()
    (directory / "comes").touch()
    (directory / "comes too").write_text("diff --git a/x /y b/x /y\n")
    new = (await world.take_snapshot()).snapshot.tree
    target = world.root / "applied"
    target.mkdir()
    apply(target, await read_patch(world, empty, old))
    apply(target, await read_patch(world, old, new))
    assert contents(target) == contents(world.files)


@pytest.mark.parametrize("size", [1, 2, 7, 16, 1000])
async def test_names_are_quoted_wherever_the_chunks_end(size: int) -> None:
    content = b"+diff --git a/x /y b/x /y\n" + b"d" * 50 + b"\n-no end"
    given = b"diff --git a/d /e b/d /e\nnew file mode 100644\n%bdiff --git a/f g b/f g\ndiff --git a/d /e b/d /e\n"
    wanted = given.replace(b"a/d /e b/d /e", b'"a/d /e" "b/d /e"')

    async def pieces() -> AsyncIterator[bytes]:
        whole = given % (content + b"\n")
        for at in range(0, len(whole), size):
            yield whole[at : at + size]

    assert b"".join([piece async for piece in tree_diff.quote_headers(pieces())]) == wanted % (content + b"\n")


async def test_attributes_and_drivers_of_the_tree_change_nothing(world: World) -> None:
    git(world.files, "init", "--quiet")
    git(world.files, "config", "diff.evil.textconv", f"touch {world.root / 'ran'}; cat")
    (world.files / ".gitattributes").write_text("* diff=evil -text\n*.txt binary\n")
    (world.files / "a.txt").write_text("one\n")
    old = (await world.take_snapshot()).snapshot.tree
    (world.files / "a.txt").write_text("two\n")
    new = (await world.take_snapshot()).snapshot.tree
    assert await tree_diff.summarise_changes(world.git_dir, old, new) == [
        FileChange(path=b"a.txt", status="modified", added=1, deleted=1)
    ]
    assert b"\n-one\n+two\n" in await read_patch(world, old, new)
    assert not (world.root / "ran").exists()


@pytest.mark.requirement("C6")
async def test_closing_a_patch_early_ends_git_and_an_unknown_tree_is_an_error(world: World) -> None:
    old = (await world.take_snapshot()).snapshot.tree
    (world.files / "large").write_text("".join(f"{number}\n" for number in range(500_000)))
    new = (await world.take_snapshot()).snapshot.tree
    async with tree_diff.stream_patch(world.git_dir, old, new) as pieces:
        assert len(await anext(pieces)) <= 1 << 16
    with pytest.raises(GitFailed):
        await read_patch(world, old, "1" * 40)


async def read_patch(world: World, old: str, new: str) -> bytes:
    async with tree_diff.stream_patch(world.git_dir, old, new) as pieces:
        return b"".join([piece async for piece in pieces])


def apply(directory: Path, patch: bytes) -> None:
    if patch:
        subprocess.run(
            ["git", "apply", "--binary", "--whitespace=nowarn", "-"],
            input=patch,
            cwd=directory,
            env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(directory.parent), "HOME": "/nonexistent"},
            check=True,
        )
