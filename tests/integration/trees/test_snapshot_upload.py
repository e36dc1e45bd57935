"""A session's files outlive its host: a snapshot is in the object store before anything refers to it."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import World, contents, git, make_host, make_world

from footplate.domain.errors import Permanent
from footplate.domain.files.pack_names import short_id
from footplate.domain.files.snapshots import StoredSnapshot
from footplate.store.object_store import Objects
from footplate.trees.git import Git
from footplate.trees.snapshots.upload import SnapshotUploader, TreeLocation


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = await make_world(tmp_path)
    for number in range(100):
        (world.files / f"{number}").write_text(f"file {number} of the project\n" * 20)
    git(world.files, "init", "--quiet")
    git(world.files, "add", "--all")
    git(world.files, "commit", "--quiet", "-m", "base")
    return world


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects.open(None, tmp_path / "data")


async def check_out_tree(world: World, session: str) -> TreeLocation:
    """Checks out the project's tree for a session."""
    location = TreeLocation(
        git_dir=await make_host(world.root / session / "host.git"),
        tree=world.root / session / "tree",
        prefix=f"org/{session}/trees",
        base=git(world.files, "rev-parse", "HEAD").strip(),
        base_prefix="org/projects/project/bases",
    )
    (location.git_dir / "objects" / "info" / "alternates").write_text(f"{world.files / '.git' / 'objects'}\n")
    location.tree.mkdir()
    assert location.base is not None
    await Git(git_dir=location.git_dir, work_tree=location.tree).run("read-tree", "-m", "-u", location.base)
    return location


async def restore_elsewhere(
    world: World, uploader: SnapshotUploader, location: TreeLocation, stored: StoredSnapshot, name: str
) -> Path:
    host = await make_host(world.root / name / "host.git")
    tree = world.root / name / "tree"
    tree.mkdir()
    await uploader.restore_files(replace(location, git_dir=host, tree=tree), stored)
    return tree


async def test_stored_snapshots_survive_the_loss_of_the_host(world: World, objects: Objects) -> None:
    uploader, location = SnapshotUploader(objects), await check_out_tree(world, "session")
    stored = await uploader.take_and_upload(location, None)
    (location.tree / "1").write_text("changed by the agent\n")
    stored = await uploader.take_and_upload(location, stored)
    (location.tree / "new").write_text("made by the agent\n")
    stored = await uploader.take_and_upload(location, stored)
    expected = contents(location.tree)
    shutil.rmtree(world.root / "session")
    assert contents(await restore_elsewhere(world, uploader, location, stored, "other")) == expected
    assert stored.number == 2


async def test_sessions_of_a_project_share_the_objects_of_their_base(world: World, objects: Objects) -> None:
    uploader = SnapshotUploader(objects)
    for session in ("one", "two"):
        location = await check_out_tree(world, session)
        (location.tree / "1").write_text(f"changed in {session}\n")
        await uploader.take_and_upload(location, None)
    assert len(await objects.list_names("org/projects/project/bases")) == 1
    assert len(await objects.list_names("org/one/trees")) == 1
    assert await size(objects, "org/one/trees") < await size(objects, "org/projects/project/bases") / 2


async def test_an_unchanged_tree_writes_nothing(world: World, objects: Objects) -> None:
    uploader, location = SnapshotUploader(objects), await check_out_tree(world, "session")
    first = await uploader.take_and_upload(location, None)
    assert first.number == 0
    assert await uploader.take_and_upload(location, first) == first
    assert await objects.list_names(location.prefix) == []


async def test_the_pack_of_a_worker_that_died_before_its_commit_is_reused(world: World, objects: Objects) -> None:
    uploader, location = SnapshotUploader(objects), await check_out_tree(world, "session")
    (location.tree / "1").write_text("changed\n")
    first = await uploader.take_and_upload(location, None)
    names = await objects.list_names(location.prefix)
    again = await uploader.take_and_upload(location, None)
    assert again == first
    assert await objects.list_names(location.prefix) == names


async def test_a_pack_is_uploaded_once_and_again_only_after_a_change(
    world: World, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploader, location = SnapshotUploader(objects), await check_out_tree(world, "session")
    incremental = uploader.create_incremental_snapshots(location)
    created: list[str] = []
    create = Objects.create

    async def counted(self: Objects, key: str, content: bytes) -> bool:
        created.append(key)
        return await create(self, key, content)

    try:
        first = await uploader.take_and_upload(location, None, incremental=incremental)
        monkeypatch.setattr(Objects, "create", counted)
        (location.tree / "1").write_text("changed\n")
        ahead = await uploader.take_and_upload(location, first, incremental=incremental)
        assert await uploader.take_and_upload(location, first, incremental=incremental) == ahead
        assert len(created) == 1
        (location.tree / "1").write_text("changed again\n")
        stored = await uploader.take_and_upload(location, first, incremental=incremental)
        assert len(created) == 2
    finally:
        await incremental.close()
    expected = contents(location.tree)
    shutil.rmtree(world.root / "session")
    assert contents(await restore_elsewhere(world, uploader, location, stored, "other")) == expected


async def test_a_fork_starts_with_its_parents_files_and_continues_independently(world: World, objects: Objects) -> None:
    uploader, parent = SnapshotUploader(objects), await check_out_tree(world, "parent")
    (parent.tree / "early").write_text("early\n")
    at = await uploader.take_and_upload(parent, None)
    (parent.tree / "late").write_text("late\n")
    await uploader.take_and_upload(parent, at)
    fork = replace(parent, prefix="org/fork/trees", parent_prefixes=[parent.prefix])
    tree = await restore_elsewhere(world, uploader, fork, at, "fork")
    assert (tree / "early").exists()
    assert not (tree / "late").exists()
    fork = replace(fork, tree=tree, git_dir=world.root / "fork" / "host.git", base=None)
    (tree / "forked").write_text("forked\n")
    stored = await uploader.take_and_upload(fork, at)
    expected = contents(tree)
    shutil.rmtree(world.root / "fork")
    assert contents(await restore_elsewhere(world, uploader, fork, stored, "other")) == expected
    assert short_id(stored.snapshot) in (await objects.list_names("org/fork/trees"))[0]


async def test_files_may_return_to_an_earlier_content(world: World, objects: Objects) -> None:
    """Then an object is in two packs, and other objects are deltas of it in both."""
    uploader, location = SnapshotUploader(objects), await check_out_tree(world, "session")
    lines = "".join(f"{hashlib.sha256(bytes([n % 250])).hexdigest()}\n" for n in range(200))
    texts = [lines + "end\n", "begin\n" + lines, lines + "other end\n"]
    stored = None
    for turn in range(12):
        for number in range(3):
            (location.tree / f"{number}").write_text(texts[(turn * (number + 1) + number) % 3])
        stored = await uploader.take_and_upload(location, stored)
    assert stored is not None
    assert contents(await restore_elsewhere(world, uploader, location, stored, "other")) == contents(location.tree)


async def test_a_fork_on_the_host_of_its_parent_needs_no_object_store(world: World, objects: Objects) -> None:
    uploader, parent = SnapshotUploader(objects), await check_out_tree(world, "parent")
    stored = None
    for number in range(5):
        (parent.tree / "1").write_text(f"{number}\n")
        stored = await uploader.take_and_upload(parent, stored)
    assert stored is not None
    await objects.delete_folder("org")
    fork = replace(parent, prefix="org/fork/trees", parent_prefixes=[parent.prefix])
    with pytest.raises(Permanent, match="not in the object store"):
        await restore_elsewhere(
            world, uploader, replace(fork, local_sources=[world.root / "nobody.git"]), stored, "fails"
        )
    fork = replace(fork, local_sources=[world.root / "nobody.git", parent.git_dir])
    tree = await restore_elsewhere(world, uploader, fork, stored, "fork")
    shutil.rmtree(parent.git_dir)
    assert contents(tree) == contents(parent.tree)
    host = replace(fork, git_dir=world.root / "fork" / "host.git", tree=tree, base=None)
    assert await uploader.take_and_upload(host, stored) == stored
    (tree / "1").write_text("of the fork\n")
    assert (await uploader.take_and_upload(host, stored)).number == stored.number + 1


async def size(objects: Objects, prefix: str) -> int:
    found = 0
    for name in await objects.list_names(prefix):
        async for piece in objects.read_chunks(f"{prefix}/{name}"):
            found += len(piece)
    return found
