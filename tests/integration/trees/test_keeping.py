"""A session's files outlive its host: a snapshot is in the object store before anything refers to it."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.trees.worlds import World, contents, git, make_host, make_world

from footplate.domain.errors import Permanent
from footplate.domain.packs import short
from footplate.domain.snapshots import KeptSnapshot
from footplate.store.objects import Objects
from footplate.trees.git import Git
from footplate.trees.keeping import Keeper, TreePlace


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


async def begin(world: World, session: str) -> TreePlace:
    """Checks out the project's tree for a session."""
    place = TreePlace(
        git_dir=await make_host(world.root / session / "host.git"),
        tree=world.root / session / "tree",
        prefix=f"org/{session}/trees",
        base=git(world.files, "rev-parse", "HEAD").strip(),
        shared="org/projects/project/bases",
    )
    (place.git_dir / "objects" / "info" / "alternates").write_text(f"{world.files / '.git' / 'objects'}\n")
    place.tree.mkdir()
    assert place.base is not None
    await Git(git_dir=place.git_dir, work_tree=place.tree).run("read-tree", "-m", "-u", place.base)
    return place


async def elsewhere(world: World, keeper: Keeper, place: TreePlace, kept: KeptSnapshot, name: str) -> Path:
    host = await make_host(world.root / name / "host.git")
    tree = world.root / name / "tree"
    tree.mkdir()
    await keeper.bring_back(replace(place, git_dir=host, tree=tree), kept)
    return tree


async def test_a_host_that_is_lost_takes_nothing_with_it_that_was_kept(world: World, objects: Objects) -> None:
    keeper, place = Keeper(objects), await begin(world, "session")
    kept = await keeper.keep(place, None)
    (place.tree / "1").write_text("changed by the agent\n")
    kept = await keeper.keep(place, kept)
    (place.tree / "new").write_text("made by the agent\n")
    kept = await keeper.keep(place, kept)
    expected = contents(place.tree)
    shutil.rmtree(world.root / "session")
    assert contents(await elsewhere(world, keeper, place, kept, "other")) == expected
    assert kept.number == 2


async def test_sessions_of_a_project_share_what_their_base_has(world: World, objects: Objects) -> None:
    keeper = Keeper(objects)
    for session in ("one", "two"):
        place = await begin(world, session)
        (place.tree / "1").write_text(f"changed in {session}\n")
        await keeper.keep(place, None)
    assert len(await objects.names("org/projects/project/bases")) == 1
    assert len(await objects.names("org/one/trees")) == 1
    assert await size(objects, "org/one/trees") < await size(objects, "org/projects/project/bases") / 2


async def test_nothing_changed_is_nothing_written(world: World, objects: Objects) -> None:
    keeper, place = Keeper(objects), await begin(world, "session")
    first = await keeper.keep(place, None)
    assert first.number == 0
    assert await keeper.keep(place, first) == first
    assert await objects.names(place.prefix) == []


async def test_a_worker_that_died_before_the_log_knew_is_followed_by_one_that_finds_its_pack(
    world: World, objects: Objects
) -> None:
    keeper, place = Keeper(objects), await begin(world, "session")
    (place.tree / "1").write_text("changed\n")
    first = await keeper.keep(place, None)
    names = await objects.names(place.prefix)
    again = await keeper.keep(place, None)
    assert again == first
    assert await objects.names(place.prefix) == names


async def test_a_pack_is_uploaded_once_and_again_when_the_files_changed_since(
    world: World, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, place = Keeper(objects), await begin(world, "session")
    incremental = keeper.create_incremental_snapshots(place)
    created: list[str] = []
    create = Objects.create

    async def counted(self: Objects, key: str, content: bytes) -> bool:
        created.append(key)
        return await create(self, key, content)

    try:
        first = await keeper.keep(place, None, incremental=incremental)
        monkeypatch.setattr(Objects, "create", counted)
        (place.tree / "1").write_text("changed\n")
        ahead = await keeper.keep(place, first, incremental=incremental)
        assert await keeper.keep(place, first, incremental=incremental) == ahead
        assert len(created) == 1
        (place.tree / "1").write_text("changed again\n")
        kept = await keeper.keep(place, first, incremental=incremental)
        assert len(created) == 2
    finally:
        await incremental.close()
    expected = contents(place.tree)
    shutil.rmtree(world.root / "session")
    assert contents(await elsewhere(world, keeper, place, kept, "other")) == expected


async def test_a_fork_begins_with_its_parents_files_and_goes_on_alone(world: World, objects: Objects) -> None:
    keeper, parent = Keeper(objects), await begin(world, "parent")
    (parent.tree / "early").write_text("early\n")
    at = await keeper.keep(parent, None)
    (parent.tree / "late").write_text("late\n")
    await keeper.keep(parent, at)
    fork = replace(parent, prefix="org/fork/trees", parents=[parent.prefix])
    tree = await elsewhere(world, keeper, fork, at, "fork")
    assert (tree / "early").exists()
    assert not (tree / "late").exists()
    fork = replace(fork, tree=tree, git_dir=world.root / "fork" / "host.git", base=None)
    (tree / "forked").write_text("forked\n")
    kept = await keeper.keep(fork, at)
    expected = contents(tree)
    shutil.rmtree(world.root / "fork")
    assert contents(await elsewhere(world, keeper, fork, kept, "other")) == expected
    assert short(kept.snapshot) in (await objects.names("org/fork/trees"))[0]


async def test_files_may_return_to_what_they_once_were(world: World, objects: Objects) -> None:
    """Then an object is in two packs, and other objects are deltas of it in both."""
    keeper, place = Keeper(objects), await begin(world, "session")
    lines = "".join(f"{hashlib.sha256(bytes([n % 250])).hexdigest()}\n" for n in range(200))
    texts = [lines + "end\n", "begin\n" + lines, lines + "other end\n"]
    kept = None
    for turn in range(12):
        for number in range(3):
            (place.tree / f"{number}").write_text(texts[(turn * (number + 1) + number) % 3])
        kept = await keeper.keep(place, kept)
    assert kept is not None
    assert contents(await elsewhere(world, keeper, place, kept, "other")) == contents(place.tree)


async def test_a_fork_beside_its_parent_needs_no_store(world: World, objects: Objects) -> None:
    keeper, parent = Keeper(objects), await begin(world, "parent")
    kept = None
    for number in range(5):
        (parent.tree / "1").write_text(f"{number}\n")
        kept = await keeper.keep(parent, kept)
    assert kept is not None
    await objects.delete_under("org")
    fork = replace(parent, prefix="org/fork/trees", parents=[parent.prefix])
    with pytest.raises(Permanent, match="not in the object store"):
        await elsewhere(world, keeper, replace(fork, nearby=[world.root / "nobody.git"]), kept, "fails")
    fork = replace(fork, nearby=[world.root / "nobody.git", parent.git_dir])
    tree = await elsewhere(world, keeper, fork, kept, "fork")
    shutil.rmtree(parent.git_dir)
    assert contents(tree) == contents(parent.tree)
    host = replace(fork, git_dir=world.root / "fork" / "host.git", tree=tree, base=None)
    assert await keeper.keep(host, kept) == kept
    (tree / "1").write_text("of the fork\n")
    assert (await keeper.keep(host, kept)).number == kept.number + 1


async def size(objects: Objects, prefix: str) -> int:
    found = 0
    for name in await objects.names(prefix):
        async for piece in objects.pieces(f"{prefix}/{name}"):
            found += len(piece)
    return found
