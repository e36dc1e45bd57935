"""Objects written without git are identical to git's own, and a pack contains everything that another host lacks."""

from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import World, git, make_host, make_world

from footplate.domain.files.snapshots import EMPTY_TREE
from footplate.trees.object_database import ObjectDatabase, TreeEntry


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await make_world(tmp_path)


def test_trees_are_identical_to_those_of_git(world: World) -> None:
    for path in ("a", "a.b", "a/b", "b/c/d", "ü"):
        if path != "a":
            (world.files / path).parent.mkdir(parents=True, exist_ok=True)
            (world.files / path).write_text(path)
    git(world.files, "init", "--quiet")
    git(world.files, "add", "--all")
    expected = git(world.files, "write-tree").strip()
    with ObjectDatabase(world.git_dir) as objects:
        entries = {
            path.encode(): TreeEntry(0o100644, objects.write_blob(path.encode()))
            for path in ("a.b", "a/b", "b/c/d", "ü")
        }
        tree = objects.change_tree(EMPTY_TREE, {**entries, b"b/e": entries[b"a.b"]})
        assert objects.change_tree(tree, {b"b/e": None}) == expected
        assert objects.change_tree(expected, dict.fromkeys([b"a", b"a.b", b"b", "ü".encode()])) == EMPTY_TREE
    git(world.git_dir, "fsck", "--strict")


def test_files_of_a_killed_writer_block_no_other(world: World) -> None:
    with ObjectDatabase(world.git_dir) as objects:
        blob = objects.write_blob(b"one")
        path = world.git_dir / "objects" / blob[:2] / blob[2:]
        path.unlink()
        path.with_name(f"{path.name}.lock").touch()
        path.with_name("tmp_obj_left").touch()
        assert objects.write_blob(b"one") == blob
    assert git(world.git_dir, "cat-file", "-p", blob) == "one"


def test_file_modes_of_old_repositories_are_normalised(world: World) -> None:
    with ObjectDatabase(world.git_dir) as objects:
        blob = objects.write_blob(b"one")
        old = objects.change_tree(EMPTY_TREE, {b"old": TreeEntry(0o100664, blob), b"run": TreeEntry(0o100775, blob)})
        new = objects.change_tree(old, {b"new": TreeEntry(0o100644, blob)})
        assert [objects.find_entry(new, name) for name in (b"old", b"run")] == [
            TreeEntry(0o100644, blob),
            TreeEntry(0o100755, blob),
        ]


async def test_a_pack_has_a_blob_whose_id_is_that_of_a_submodule(world: World) -> None:
    with ObjectDatabase(world.git_dir) as objects:
        blob = objects.write_blob(b"one")
        before = objects.change_tree(EMPTY_TREE, {b"sub": TreeEntry(0o160000, blob)})
        after = objects.change_tree(before, {b"file": TreeEntry(0o100644, blob)})
        added = dict(objects.iter_added_objects(before, after))
        assert added == {after: True, blob: False}
        other = await make_host(world.root / "other.git")
        (other / "objects" / "pack" / "pack-1.pack").write_bytes(objects.build_pack(added))
    git(other, "index-pack", "objects/pack/pack-1.pack")
    assert git(other, "cat-file", "-p", blob) == "one"
