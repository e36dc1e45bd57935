"""A project's caches and included files, in trees on this host, without an environment."""

import math
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import contents

from footplate.domain.files.snapshots import SessionFiles
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import CheckoutTarget, SessionTree
from footplate.domain.ports.project_setup import SetupRequest
from footplate.domain.projects.project import SessionProject
from footplate.domain.projects.setup import CacheEntry, CacheIndex, CacheKey
from footplate.store.object_store import Objects
from footplate.trees.projects.directory_archive import (
    ArchiveLimits,
    ArchiveReader,
    ArchiveRefused,
    Stopped,
    write_archive,
)
from footplate.trees.projects.directory_cache import CacheLimits, DirectoryCache
from footplate.trees.projects.included_files import IncludedFiles, IncludedFilesTooLarge
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.projects.tree_setup import CachedTreeSetup
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

pytestmark = pytest.mark.requirement("K7")

USER = (os.geteuid(), os.getegid())
REQUEST = SetupRequest(inside_path="/workspace", platform="linux", is_untouched=True, is_home_empty=True)
BIG = ArchiveLimits(1 << 30)


@dataclass
class MemoryIndex(CacheIndex):
    entries: dict[CacheKey, CacheEntry] = field(default_factory=dict)

    async def find_cache(self, key: CacheKey) -> CacheEntry | None:
        return self.entries.get(key)

    async def add_cache(self, entry: CacheEntry, max_project_bytes: int) -> Sequence[CacheEntry]:
        del max_project_bytes
        self.entries.setdefault(entry.key, entry)
        return []

    async def remove_cache(self, entry: CacheEntry) -> None:
        self.entries.pop(entry.key, None)


class World:
    """A host, its projects and its object store."""

    def __init__(self, root: Path, **limits: int) -> None:
        self.root = root
        self.index = MemoryIndex()
        self.objects = Objects.open(None, root)
        self.repository = root / "projects" / "app"
        self.repository.mkdir(parents=True)
        self.project = SessionProject(id="proj_1", name="app", path="app", setup="make", cached_directories=None)
        self.open_host("a", **limits)

    def open_host(self, name: str, *, max_bytes: int = 1 << 20, **limits: int) -> None:
        data = self.data = self.root / name
        mirrors = Mirrors(data, root=str(self.root / "projects"), address_policy=AddressPolicy(), seconds=60)
        self.trees = SessionTrees(
            data,
            mirrors,
            SnapshotUploader(self.objects),
            seconds=60,
            included_files=IncludedFiles(max_bytes=max_bytes),
        )
        cache = DirectoryCache(data, self.objects, self.index, CacheLimits(**limits))
        self.setup = CachedTreeSetup(data, cache, seconds=60)

    def commit(self, **files: str) -> None:
        for name, content in files.items():
            (self.repository / name.replace("_", ".")).write_text(content)
        for command in ("init -q -b main", "add -A", "-c user.name=U -c user.email=u@example.com commit -qm first"):
            subprocess.run(["git", *command.split()], cwd=self.repository, check=True)

    async def check_out(self, session_id: str, project: SessionProject | None = None) -> SessionTree:
        project = project or self.project
        project = replace(project, base=await self.trees.resolve_base("default", project))
        files = self.data / "workspaces" / session_id
        target = CheckoutTarget(
            tree=files,
            inside_path="/workspace",
            additional_directory=self.data / "more",
            additional_inside_path="/projects",
            objects_inside_path="/objects",
            owner=USER,
        )
        await self.trees.check_out("default", session_id, [project], target, SessionFiles(), deadline=math.inf)
        return SessionTree(organisation="default", session_id=session_id, project=project, files=files)

    async def set_up(
        self, session_id: str, request: SetupRequest = REQUEST, project: SessionProject | None = None
    ) -> tuple[SessionTree, Sequence[str], Sequence[str]]:
        """Returns the tree, and what was restored and stored. The setup creates what is missing."""
        tree = await self.check_out(session_id, project)
        start = await self.setup.begin_setup(tree, request)
        if not start.restored:
            fill(tree.files / "node_modules")
            fill(tree.files / "packages" / "one" / ".venv")
        return tree, start.restored, await self.setup.complete_setup(tree)


def fill(directory: Path) -> None:
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "tool").write_bytes(b"#!/bin/sh\n" + bytes(range(256)) * 2000)
    (directory / "bin" / "tool").chmod(0o755)
    (directory / "bin" / "link").symlink_to("../../../outside")
    (directory / "empty").mkdir()
    os.utime(directory / "bin" / "tool", ns=(10**18, 10**18 + 7))
    (directory / os.fsdecode(b"name-\xff")).write_text("")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    (world.repository / "packages" / "one").mkdir(parents=True)
    files = {
        "_gitignore": "node_modules\n.venv/\n.env\nsecrets/\n",
        "package-lock_json": "{}",
        "packages/one/file": "x",
    }
    world.commit(**files)
    return world


async def test_directories_are_stored_once_and_restored_on_every_host(world: World) -> None:
    first, restored, stored = await world.set_up("sesn_1")
    assert (restored, stored) == ((), ["node_modules", "packages/one/.venv"])
    expected = contents(first.files, git=False)
    assert not await world.setup.needs_setup(first)
    changed = replace(first, project=replace(world.project, setup="make all"))
    assert await world.setup.needs_setup(changed)

    for session_id, host in (("sesn_2", "a"), ("sesn_3", "b")):
        world.open_host(host)
        tree, restored, stored = await world.set_up(session_id)
        assert (restored, stored) == (("node_modules", "packages/one/.venv"), ())
        assert contents(tree.files, git=False) == expected
        assert (tree.files / "node_modules/bin/tool").stat().st_mtime_ns == 10**18 + 7
        # A copy, which no other session sees.
        (tree.files / "node_modules/bin/tool").write_text("changed")
    assert contents(first.files, git=False) == expected


@pytest.mark.parametrize(
    "request_",
    [
        replace(REQUEST, is_untouched=False),
        replace(REQUEST, is_home_empty=False),
        replace(REQUEST, platform=None),
        replace(REQUEST, inside_path="/data/sesn_1"),
    ],
)
async def test_only_an_isolated_setup_in_a_fixed_place_is_stored(world: World, request_: SetupRequest) -> None:
    _, _, stored = await world.set_up("sesn_1", request_)
    assert stored == ()
    assert world.index.entries == {}


async def test_a_tree_in_which_something_has_run_is_never_stored(world: World) -> None:
    tree, _, stored = await world.set_up("sesn_1", replace(REQUEST, is_untouched=False))
    assert stored == ()
    changed = replace(tree, project=replace(world.project, setup="make all"))
    await world.setup.begin_setup(changed, REQUEST)
    assert await world.setup.complete_setup(changed) == ()
    # The first setup was interrupted, and hooks ran before the second one.
    tree = await world.check_out("sesn_2")
    await world.setup.begin_setup(tree, REQUEST)
    await world.setup.begin_setup(tree, replace(REQUEST, is_untouched=False))
    await world.setup.begin_setup(tree, REQUEST)
    fill(tree.files / "node_modules")
    assert await world.setup.complete_setup(tree) == ()


@pytest.mark.parametrize(
    ("setup", "request_"),
    [("make all", REQUEST), ("make", replace(REQUEST, platform="image")), ("make", replace(REQUEST, inside_path="/w"))],
)
async def test_files_of_another_setup_or_platform_are_never_stored(
    world: World, setup: str, request_: SetupRequest
) -> None:
    tree = await world.check_out("sesn_a")
    await world.setup.begin_setup(tree, REQUEST)
    fill(tree.files / "node_modules")  # and then it fails
    assert tree.project is not None
    changed = replace(tree, project=replace(tree.project, setup=setup))
    await world.setup.begin_setup(changed, replace(request_, is_home_empty=False))
    assert await world.setup.complete_setup(changed) == ()
    assert world.index.entries == {}


async def test_a_setup_that_is_repeated_is_stored(world: World) -> None:
    tree = await world.check_out("sesn_a")
    await world.setup.begin_setup(tree, REQUEST)
    fill(tree.files / "node_modules")
    await world.setup.begin_setup(tree, replace(REQUEST, is_home_empty=False))
    assert await world.setup.complete_setup(tree) == ["node_modules"]


async def test_a_tree_that_was_opened_without_a_setup_is_never_stored(world: World) -> None:
    tree = await world.check_out("sesn_1")
    await world.check_out("sesn_1", replace(world.project, setup=None))
    assert (await world.check_out("sesn_1")).files == tree.files
    await world.setup.begin_setup(tree, REQUEST)
    fill(tree.files / "node_modules")
    assert await world.setup.complete_setup(tree) == ()


async def test_the_key_covers_all_that_the_directories_depend_on(world: World) -> None:
    await world.set_up("sesn_1")
    for number, request in enumerate(
        (replace(REQUEST, platform="other"), replace(REQUEST, inside_path="/projects/app"))
    ):
        assert (await world.set_up(f"sesn_2{number}", request))[1] == ()
    for number, project in enumerate(
        (
            replace(world.project, id="proj_2"),
            replace(world.project, setup="other"),
            replace(world.project, cached_directories=("node_modules", ".venv")),
        )
    ):
        assert (await world.set_up(f"sesn_3{number}", project=project))[1] == ()
    world.commit(file="not a lock file")
    assert (await world.set_up("sesn_4"))[1] == ("node_modules", "packages/one/.venv")
    world.commit(**{"package-lock_json": "{ }"})
    assert (await world.set_up("sesn_5"))[1] == ()


async def test_nothing_is_restored_over_files_or_where_git_does_not_ignore_it(world: World) -> None:
    await world.set_up("sesn_1")
    tree = await world.check_out("sesn_2")
    (tree.files / "node_modules").symlink_to("/tmp")
    assert (await world.setup.begin_setup(tree, REQUEST)).restored == ()
    assert (tree.files / "node_modules").is_symlink()
    tree = await world.check_out("sesn_3")
    (tree.files / ".gitignore").write_text("")
    assert (await world.setup.begin_setup(tree, REQUEST)).restored == ()
    assert not (tree.files / "node_modules").exists()


@pytest.mark.parametrize("damage", ["object", "missing", "host", "entry"])
async def test_a_damaged_cache_is_a_cold_start(world: World, damage: str) -> None:
    await world.set_up("sesn_1")
    ((key, entry),) = world.index.entries.items()
    stored, local = world.root / "objects" / entry.object_key, [*(world.data / "caches").rglob("*.*")]
    if damage == "entry":
        world.index.entries[key] = replace(entry, sha256="0" * 64)
    for path in [stored] if damage in {"object", "missing"} else []:
        path.write_bytes(b"x" * entry.size) if damage == "object" else path.unlink()
    for path in local:
        path.write_bytes(b"x" * entry.size)
    tree, restored, stored_now = await world.set_up("sesn_2")
    if damage == "host":
        assert restored == ("node_modules", "packages/one/.venv")
    else:
        assert restored == ()
        assert stored_now
    assert (tree.files / "node_modules/bin/tool").exists()


async def test_an_interrupted_restore_starts_over(world: World) -> None:
    first, *_ = await world.set_up("sesn_1")
    tree = await world.check_out("sesn_2")
    await world.setup.begin_setup(tree, REQUEST)
    record = world.data / "trees/default/sesn_2/host.git/setup.json"
    written = record.read_text()
    assert '"restored":["node_modules"' in written
    record.write_text(written.replace('"creating":[]', '"creating":["node_modules","packages/one/.venv"]'))
    (tree.files / "node_modules/bin/tool").unlink()
    (tree.files / "node_modules/extra").write_text("")
    shutil.rmtree(tree.files / "packages/one/.venv")
    (tree.files / "packages/one/.venv").symlink_to(first.files)
    start = await world.setup.begin_setup(tree, REQUEST)
    assert start.restored == ()  # a link is not removed: nothing that restores makes one
    assert not (tree.files / "node_modules").exists()
    (tree.files / "packages/one/.venv").unlink()
    start = await world.setup.begin_setup(tree, REQUEST)
    assert start.restored == ("node_modules", "packages/one/.venv")
    assert contents(tree.files, git=False) == contents(first.files, git=False)


async def test_large_and_special_files_are_not_stored(tmp_path: Path) -> None:
    world = World(tmp_path, entry_bytes=1000)
    world.commit(_gitignore="node_modules\n.venv/\n")
    assert (await world.set_up("sesn_1"))[2] == ()
    world.open_host("b")
    tree = await world.check_out("sesn_2")
    await world.setup.begin_setup(tree, REQUEST)
    (tree.files / "node_modules").mkdir()
    os.mkfifo(tree.files / "node_modules" / "pipe")
    assert await world.setup.complete_setup(tree) == ()
    assert world.index.entries == {}


async def test_caches_on_a_host_are_limited(tmp_path: Path) -> None:
    world = World(tmp_path, host_bytes=20_000)
    world.commit(_gitignore="node_modules\n.venv/\n")
    for number in range(3):
        await world.set_up(f"sesn_{number}", project=replace(world.project, setup=f"make {number}"))
    assert sum(path.stat().st_size for path in (world.data / "caches").rglob("*.*")) <= 20_000
    assert len(world.index.entries) == 3


def test_a_damaged_archive_creates_nothing_outside(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    fill(source / "a")
    target.mkdir()
    file = BytesIO()
    write_archive(source, ["a"], file, BIG)
    data = file.getvalue()
    for cut in (0, 3, 20, len(data) // 2):
        with pytest.raises(ArchiveRefused):
            ArchiveReader(BytesIO(data[:cut])).create_directories(target, USER, BIG)
        shutil.rmtree(target / "a", ignore_errors=True)
    (target / "a").symlink_to(source)
    with pytest.raises(OSError, match="exists"):
        ArchiveReader(BytesIO(data)).create_directories(target, USER, BIG)
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        write_archive(source, ["a"], BytesIO(), ArchiveLimits(1 << 30, stop=stop))


async def test_ignored_files_are_copied_as_worktreeinclude_lists_them(world: World, tmp_path: Path) -> None:
    (world.repository / ".worktreeinclude").write_text(
        ".env\nsecrets/*\n!secrets/not\npackage.lock.json\nlinked\n*.txt\n"
    )
    (world.repository / ".env").write_text("TOKEN=1\n")
    (world.repository / ".env").chmod(0o600)
    (world.repository / "secrets").mkdir()
    for name in ("one", "not"):
        (world.repository / "secrets" / name).write_text(name)
    (world.repository / "secrets" / "link").symlink_to("/etc/passwd")
    (world.repository / "plain.txt").write_text("not ignored")
    tree = await world.check_out("sesn_1")
    assert (tree.files / ".env").read_text() == "TOKEN=1\n"
    assert (tree.files / ".env").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in (tree.files / "secrets").iterdir()} == {"one"}
    assert not (tree.files / "plain.txt").exists()
    # A link in the place of the patterns, or of a directory, is not followed.
    (world.repository / ".worktreeinclude").unlink()
    outside = tmp_path / "patterns"
    outside.write_text(".env\n")
    (world.repository / ".worktreeinclude").symlink_to(outside)
    assert not ((await world.check_out("sesn_2")).files / ".env").exists()


async def test_included_files_are_limited(tmp_path: Path) -> None:
    world = World(tmp_path, max_bytes=10)
    world.commit(_gitignore=".env\n")
    (world.repository / ".worktreeinclude").write_text(".env\n")
    (world.repository / ".env").write_text("x" * 11)
    with pytest.raises(IncludedFilesTooLarge):
        await world.check_out("sesn_1")
    (world.repository / ".env").write_text("x")
    assert ((await world.check_out("sesn_1")).files / ".env").exists()
