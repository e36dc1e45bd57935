"""A session's tree matches the log on whichever host runs its next turn, and nothing is written outside the tree."""

import asyncio
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import contents, git, make_host

from footplate.domain.errors import Fenced
from footplate.domain.files.snapshots import (
    NO_FILES,
    SCRATCH_TREE,
    CollectedCommits,
    SessionFiles,
    Snapshot,
    StoredSnapshot,
)
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import CheckoutTarget, SessionTree
from footplate.domain.projects.project import SessionProject
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.lease_clock import lease_clock
from footplate.store.object_store import Objects
from footplate.trees.checkout import HOST_GIT_DIR_NAME, UNFINISHED_GIT_DIR_NAME
from footplate.trees.file_locks import hold_lock
from footplate.trees.git import Git
from footplate.trees.git_plumbing import format_index_entry, store_blobs, update_index, write_tree
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots import restore
from footplate.trees.snapshots.upload import SnapshotUploader


class Host:
    """One of several hosts that share the projects and the object store."""

    def __init__(self, world: Path, name: str) -> None:
        self.data = world / name
        self.data.mkdir()
        self.tree = self.data / "workspaces" / "default" / "sesn_1"
        mirrors = Mirrors(self.data, root=str(world / "projects"), address_policy=AddressPolicy(), seconds=60)
        self.trees = SessionTrees(self.data, mirrors, SnapshotUploader(Objects.open(None, world)), seconds=60)

    async def check_out(
        self, project: SessionProject | None, stored: StoredSnapshot | None, *, deadline: float = math.inf
    ) -> Path:
        name = SCRATCH_TREE if project is None else project.id
        files = NO_FILES if stored is None else SessionFiles({name: stored})
        target = CheckoutTarget(
            tree=self.tree,
            inside_path=str(self.tree),
            additional_directory=self.data / "beside",
            additional_inside_path="",
            objects_inside_path=None,
            owner=(os.geteuid(), os.getegid()),
        )
        self.tree.mkdir(parents=True, exist_ok=True)
        await self.trees.check_out("default", "sesn_1", [project] if project else [], target, files, deadline=deadline)
        return self.tree

    def session_tree(self, project: SessionProject | None) -> SessionTree:
        return SessionTree(organisation="default", session_id="sesn_1", project=project, files=self.tree)

    async def store_snapshot(
        self, project: SessionProject | None, last: StoredSnapshot | None, collected: CollectedCommits | None = None
    ) -> StoredSnapshot | None:
        return await self.trees.store_snapshot(self.session_tree(project), last, collected)

    async def store_new_snapshot(
        self, project: SessionProject | None, last: StoredSnapshot | None, collected: CollectedCommits | None = None
    ) -> StoredSnapshot:
        stored = await self.store_snapshot(project, last, collected)
        assert stored is not None
        return stored

    async def collect_commits(self, project: SessionProject, last: StoredSnapshot | None) -> CollectedCommits:
        environment = UnsandboxedEnvironment(str(self.tree), deadline=lease_clock() + 60)
        try:
            return await self.trees.collect_commits(self.session_tree(project), environment, str(self.tree), last)
        finally:
            await environment.aclose()


@pytest.fixture
async def app(tmp_path: Path) -> SessionProject:
    repository = tmp_path / "projects" / "app"
    repository.mkdir(parents=True)
    git(repository, "init", "--quiet")
    (repository / "file").write_text("one\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "first")
    project = SessionProject(id="proj_1", name="app", path="app")
    return replace(project, base=await Host(tmp_path, "any").trees.resolve_base("default", project))


@pytest.fixture
def a(tmp_path: Path) -> Host:
    return Host(tmp_path, "a")


@pytest.fixture
def b(tmp_path: Path) -> Host:
    return Host(tmp_path, "b")


async def test_a_worker_whose_lease_has_expired_replaces_no_files(a: Host, app: SessionProject) -> None:
    tree = await a.check_out(app, None)
    (tree / "file").write_text("one\n")
    first = await a.store_new_snapshot(app, None)
    (tree / "file").write_text("two\n")
    second = await a.store_new_snapshot(app, first)
    (tree / "file").write_text("three\n")
    third = await a.store_new_snapshot(app, second)
    with pytest.raises(Fenced, match="expired before its files were restored"):
        await a.check_out(app, first, deadline=lease_clock())
    assert (await a.check_out(app, third, deadline=lease_clock()) / "file").read_text() == "three\n"


@pytest.mark.timing
async def test_a_worker_waits_until_another_has_restored_the_files(a: Host, app: SessionProject) -> None:
    await a.check_out(app, None)
    async with hold_lock(a.trees.private_dir("default", "sesn_1") / "lock", seconds=1):
        waiting = asyncio.ensure_future(a.check_out(app, None))
        await asyncio.sleep(0.1)
        assert not waiting.done()
    await waiting


@pytest.mark.requirement("K7")
async def test_another_host_has_files_commits_and_index(a: Host, b: Host, app: SessionProject) -> None:
    tree = await a.check_out(app, None)
    (tree / "file").write_text("two\n")
    git(tree, "commit", "--quiet", "-am", "second")
    (tree / "staged").write_text("x\n")
    git(tree, "add", "staged")
    (tree / "loose").write_text("y\n")
    stored = await a.store_new_snapshot(app, None)
    other = await b.check_out(app, stored)
    assert contents(other, git=False) == contents(tree, git=False)
    assert git(other, "log", "--format=%s").split() == ["second", "first"]
    assert git(other, "status", "--porcelain").split() == ["A", "staged", "??", "loose"]
    alternates = (other / ".git" / "objects" / "info" / "alternates").read_text()
    assert alternates == f"{b.data / 'mirrors' / 'default' / 'proj_1' / 'objects'}\n"
    before = await b.store_new_snapshot(app, stored)
    (other / "loose").write_text("z\n")
    assert (await b.store_new_snapshot(app, before)).number == before.number + 1


async def test_another_host_has_the_agents_earlier_commits(a: Host, b: Host, app: SessionProject) -> None:
    tree = await a.check_out(app, None)
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "second")
    collected = await a.collect_commits(app, None)
    assert "HEAD" in dict(collected.commits)
    first = await a.store_new_snapshot(app, None, collected)
    (await b.check_out(app, first) / "file").write_text("two\n")
    assert await b.collect_commits(app, first) == collected
    assert (await b.store_new_snapshot(app, first, collected)).snapshot.commits == collected.commits


async def test_a_session_without_projects_is_recovered_too(a: Host, b: Host) -> None:
    tree = await a.check_out(None, None)
    assert await a.store_snapshot(None, None) is None
    assert not (a.data / "trees").exists(), "nothing was ever there, and nothing was made for it"
    (tree / "file").write_text("x\n")
    stored = await a.store_new_snapshot(None, None)
    assert contents(await b.check_out(None, stored)) == contents(tree)
    assert await b.store_snapshot(None, stored) == stored


async def test_removed_files_are_removed_on_another_host_too(a: Host, b: Host) -> None:
    tree = await a.check_out(None, None)
    (tree / "file").write_text("x\n")
    first = await a.store_new_snapshot(None, None)
    (tree / "file").unlink()
    second = await a.store_new_snapshot(None, first)
    await b.check_out(None, first)
    assert contents(await b.check_out(None, second)) == {}


async def test_an_outdated_host_is_updated(a: Host, b: Host, app: SessionProject) -> None:
    tree = await a.check_out(app, None)
    (tree / "file").write_text("of a\n")
    first = await a.store_new_snapshot(app, None)
    other = await b.check_out(app, first)
    (other / "new").write_text("of b\n")
    (other / "file").unlink()
    second = await b.store_new_snapshot(app, first)
    (tree / "left").write_text("by a command that nobody knows the outcome of\n")
    assert contents(await a.check_out(app, second), git=False) == contents(other, git=False)


async def test_files_of_an_interrupted_call_stay_if_the_log_has_not_advanced(a: Host) -> None:
    tree = await a.check_out(None, None)
    (tree / "file").write_text("x\n")
    first = await a.store_new_snapshot(None, None)
    (tree / "more").write_text("kept, and never in the log\n")
    await a.store_new_snapshot(None, first)
    (tree / "most").write_text("not even kept\n")
    assert set(contents(await a.check_out(None, first))) == {b"file", b"more", b"most"}


async def test_a_recovery_that_was_killed_starts_again(a: Host, b: Host, app: SessionProject) -> None:
    tree = await a.check_out(app, None)
    (tree / "file").write_text("two\n")
    stored = await a.store_new_snapshot(app, None)
    expected = contents(tree, git=False)
    await b.check_out(app, stored)
    private = b.data / "trees" / "default" / "sesn_1"
    (private / HOST_GIT_DIR_NAME).rename(private / UNFINISHED_GIT_DIR_NAME)
    (b.tree / "half").write_text("written before it was killed\n")
    assert contents(await b.check_out(app, stored), git=False) == expected


@pytest.mark.parametrize("killed_after", ["unplaced", "tree", "all"])
@pytest.mark.parametrize("snapshots", [True, False])
async def test_a_host_that_released_the_tree_recovers_it(
    a: Host,
    app: SessionProject,
    killed_after: str,
    snapshots: bool,  # noqa: FBT001 - a case
) -> None:
    """Whenever the worker that released the tree was killed, and also for an unchanged session."""
    tree = await a.check_out(app, None)
    stored = None
    if snapshots:
        (tree / "file").write_text("two\n")
        stored = await a.store_new_snapshot(app, None)
    expected = contents(tree, git=False)
    a.trees.mark_for_rebuild("default", "sesn_1")
    if killed_after != "unplaced":
        shutil.rmtree(tree)
    if killed_after == "all":
        shutil.rmtree(a.data / "trees" / "default" / "sesn_1")
    assert contents(await a.check_out(app, stored), git=False) == expected
    assert await a.store_snapshot(app, stored) is not None
    a.trees.mark_for_rebuild("default", "sesn_none")


async def test_the_path_of_the_mirror_is_not_written_through_a_link(
    a: Host, b: Host, app: SessionProject, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "alternates").write_text("of the host\n")
    tree = await a.check_out(app, None)
    info = tree / ".git" / "objects" / "info"
    (info / "alternates").unlink()
    info.rmdir()
    info.symlink_to(outside)
    await b.check_out(app, await a.store_new_snapshot(app, None))
    assert (outside / "alternates").read_text() == "of the host\n"


async def test_nothing_is_written_through_a_link_created_during_the_snapshot(tmp_path: Path) -> None:
    """A directory that became a link while its snapshot was taken is in both trees of the snapshot."""
    git_dir, tree, outside = await make_host(tmp_path / "host.git"), tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.mkdir()
    (tmp_path / "target").write_text(str(outside))
    host = Git(git_dir=git_dir, index=tmp_path / "index")
    (blob,) = await store_blobs(host, [tmp_path / "target"])
    await update_index(host, [format_index_entry("120000", blob, b"dir")])
    files = await write_tree(host)
    beside = replace(host, index=tmp_path / "other")
    await update_index(
        beside,
        [format_index_entry("100644", blob, b"dir/%2Egit/HEAD"), format_index_entry("100644", blob, b"%2Egit/HEAD")],
    )
    await restore.restore_snapshot(git_dir, Snapshot(files, await write_tree(beside)), tree)
    assert [*outside.iterdir()] == []
    assert (tree / ".git" / "HEAD").exists()


async def test_an_additional_project_is_recovered_beside_the_first(a: Host, b: Host, app: SessionProject) -> None:
    second = replace(app, id="proj_2", name="other")

    async def check_out(host: Host, files: SessionFiles) -> list[SessionTree]:
        target = CheckoutTarget(
            tree=host.tree,
            inside_path=str(host.tree),
            additional_directory=host.data / "beside",
            additional_inside_path="",
            objects_inside_path=None,
            owner=(os.geteuid(), os.getegid()),
        )
        placed = await host.trees.check_out("default", "sesn_1", [app, second], target, files, deadline=math.inf)
        return [
            SessionTree(
                organisation="default", session_id="sesn_1", project=project, files=found.tree, is_additional=number > 0
            )
            for number, (project, found) in enumerate(zip((app, second), placed, strict=True))
        ]

    first, beside = await check_out(a, NO_FILES)
    (first.files / "file").write_text("of the first\n")
    (beside.files / "file").write_text("of the second\n")
    stored = {tree.project.id: await a.trees.store_snapshot(tree, None) for tree in (first, beside) if tree.project}
    other = await check_out(b, SessionFiles({name: one for name, one in stored.items() if one is not None}))
    assert [(tree.files / "file").read_text() for tree in other] == ["of the first\n", "of the second\n"]
    assert other[1].files == b.data / "beside" / "other"
    for tree, last in zip(other, stored.values(), strict=True):
        again = await b.trees.store_snapshot(tree, last)
        assert again is not None
        assert last is not None
        assert again.snapshot.tree == last.snapshot.tree
