"""A session's tree matches the log on whichever host runs its next turn, and nothing is written outside the tree."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.trees.worlds import contents, git, make_host

from footplate.domain.addresses import Reach
from footplate.domain.projects import SessionProject
from footplate.domain.running import KeptTree, TreeGround
from footplate.domain.snapshots import NO_FILES, SCRATCH, Collected, Files, KeptSnapshot, Snapshot
from footplate.environments.guardian import clock
from footplate.environments.unsandboxed import UnsandboxedEnvironment
from footplate.store.objects import Objects
from footplate.trees import restoring
from footplate.trees.git import Git
from footplate.trees.indexing import entry, store, update, write_tree
from footplate.trees.keeping import Keeper
from footplate.trees.mirrors import Mirrors
from footplate.trees.placing import BEGUN, HOST
from footplate.trees.sessions import SessionTrees


class Host:
    """One of several hosts that share the projects and the object store."""

    def __init__(self, world: Path, name: str) -> None:
        self.data = world / name
        self.data.mkdir()
        self.tree = self.data / "workspaces" / "default" / "sesn_1"
        mirrors = Mirrors(self.data, root=str(world / "projects"), address_policy=Reach(), seconds=60)
        self.trees = SessionTrees(self.data, mirrors, Keeper(Objects.open(None, world)), seconds=60)

    async def place(self, project: SessionProject | None, kept: KeptSnapshot | None) -> Path:
        name = SCRATCH if project is None else project.id
        files = NO_FILES if kept is None else Files({name: kept})
        ground = TreeGround(
            tree=self.tree,
            seen=str(self.tree),
            beside=self.data / "beside",
            beside_seen="",
            objects_seen=None,
            user=(os.geteuid(), os.getegid()),
        )
        self.tree.mkdir(parents=True, exist_ok=True)
        await self.trees.check_out("default", "sesn_1", [project] if project else [], ground, files)
        return self.tree

    def kept_tree(self, project: SessionProject | None) -> KeptTree:
        return KeptTree(organisation="default", session_id="sesn_1", project=project, files=self.tree)

    async def keep(
        self, project: SessionProject | None, last: KeptSnapshot | None, collected: Collected | None = None
    ) -> KeptSnapshot | None:
        return await self.trees.store_snapshot(self.kept_tree(project), last, collected)

    async def kept(
        self, project: SessionProject | None, last: KeptSnapshot | None, collected: Collected | None = None
    ) -> KeptSnapshot:
        kept = await self.keep(project, last, collected)
        assert kept is not None
        return kept

    async def collected(self, project: SessionProject, last: KeptSnapshot | None) -> Collected:
        environment = UnsandboxedEnvironment(str(self.tree), deadline=clock() + 60)
        try:
            return await self.trees.collect_commits(self.kept_tree(project), environment, str(self.tree), last)
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


@pytest.mark.requirement("K7")
async def test_another_host_has_files_commits_and_index(a: Host, b: Host, app: SessionProject) -> None:
    tree = await a.place(app, None)
    (tree / "file").write_text("two\n")
    git(tree, "commit", "--quiet", "-am", "second")
    (tree / "staged").write_text("x\n")
    git(tree, "add", "staged")
    (tree / "loose").write_text("y\n")
    kept = await a.kept(app, None)
    other = await b.place(app, kept)
    assert contents(other, git=False) == contents(tree, git=False)
    assert git(other, "log", "--format=%s").split() == ["second", "first"]
    assert git(other, "status", "--porcelain").split() == ["A", "staged", "??", "loose"]
    alternates = (other / ".git" / "objects" / "info" / "alternates").read_text()
    assert alternates == f"{b.data / 'mirrors' / 'default' / 'proj_1' / 'objects'}\n"
    before = await b.kept(app, kept)
    (other / "loose").write_text("z\n")
    assert (await b.kept(app, before)).number == before.number + 1


async def test_another_host_has_the_agents_commits_before_there_are_new_ones(
    a: Host, b: Host, app: SessionProject
) -> None:
    tree = await a.place(app, None)
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "second")
    collected = await a.collected(app, None)
    assert "HEAD" in dict(collected.commits)
    first = await a.kept(app, None, collected)
    (await b.place(app, first) / "file").write_text("two\n")
    assert await b.collected(app, first) == collected
    assert (await b.kept(app, first, collected)).snapshot.commits == collected.commits


async def test_without_projects_the_same(a: Host, b: Host) -> None:
    tree = await a.place(None, None)
    assert await a.keep(None, None) is None
    assert not (a.data / "trees").exists(), "nothing was ever there, and nothing was made for it"
    (tree / "file").write_text("x\n")
    kept = await a.kept(None, None)
    assert contents(await b.place(None, kept)) == contents(tree)
    assert await b.keep(None, kept) == kept


async def test_files_that_were_all_removed_are_gone_elsewhere_too(a: Host, b: Host) -> None:
    tree = await a.place(None, None)
    (tree / "file").write_text("x\n")
    first = await a.kept(None, None)
    (tree / "file").unlink()
    second = await a.kept(None, first)
    await b.place(None, first)
    assert contents(await b.place(None, second)) == {}


async def test_a_host_that_was_overtaken_is_brought_up_to_date(a: Host, b: Host, app: SessionProject) -> None:
    tree = await a.place(app, None)
    (tree / "file").write_text("of a\n")
    first = await a.kept(app, None)
    other = await b.place(app, first)
    (other / "new").write_text("of b\n")
    (other / "file").unlink()
    second = await b.kept(app, first)
    (tree / "left").write_text("by a command that nobody knows the outcome of\n")
    assert contents(await a.place(app, second), git=False) == contents(other, git=False)


async def test_what_a_cut_off_call_did_stays_where_the_log_has_not_gone_on(a: Host) -> None:
    tree = await a.place(None, None)
    (tree / "file").write_text("x\n")
    first = await a.kept(None, None)
    (tree / "more").write_text("kept, and never in the log\n")
    await a.kept(None, first)
    (tree / "most").write_text("not even kept\n")
    assert set(contents(await a.place(None, first))) == {b"file", b"more", b"most"}


async def test_killed_while_it_is_brought_back_it_is_begun_anew(a: Host, b: Host, app: SessionProject) -> None:
    tree = await a.place(app, None)
    (tree / "file").write_text("two\n")
    kept = await a.kept(app, None)
    expected = contents(tree, git=False)
    await b.place(app, kept)
    private = b.data / "trees" / "default" / "sesn_1"
    (private / HOST).rename(private / BEGUN)
    (b.tree / "half").write_text("written before it was killed\n")
    assert contents(await b.place(app, kept), git=False) == expected


@pytest.mark.parametrize("killed_after", ["unplaced", "tree", "all"])
@pytest.mark.parametrize("snapshots", [True, False])
async def test_a_host_that_let_go_of_the_tree_brings_it_back(
    a: Host,
    app: SessionProject,
    killed_after: str,
    snapshots: bool,  # noqa: FBT001 - a case
) -> None:
    """Whenever the worker that released the tree was killed, and also for an unchanged session."""
    tree = await a.place(app, None)
    kept = None
    if snapshots:
        (tree / "file").write_text("two\n")
        kept = await a.kept(app, None)
    expected = contents(tree, git=False)
    a.trees.mark_for_rebuild("default", "sesn_1")
    if killed_after != "unplaced":
        shutil.rmtree(tree)
    if killed_after == "all":
        shutil.rmtree(a.data / "trees" / "default" / "sesn_1")
    assert contents(await a.place(app, kept), git=False) == expected
    assert await a.keep(app, kept) is not None
    a.trees.mark_for_rebuild("default", "sesn_none")


async def test_the_way_to_the_mirror_is_not_written_through_a_link(
    a: Host, b: Host, app: SessionProject, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "alternates").write_text("of the host\n")
    tree = await a.place(app, None)
    info = tree / ".git" / "objects" / "info"
    (info / "alternates").unlink()
    info.rmdir()
    info.symlink_to(outside)
    await b.place(app, await a.kept(app, None))
    assert (outside / "alternates").read_text() == "of the host\n"


async def test_nothing_is_put_behind_a_link_that_came_in_between(tmp_path: Path) -> None:
    """A directory that became a link while its snapshot was taken is in both trees of the snapshot."""
    git_dir, tree, outside = await make_host(tmp_path / "host.git"), tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.mkdir()
    (tmp_path / "target").write_text(str(outside))
    host = Git(git_dir=git_dir, index=tmp_path / "index")
    (blob,) = await store(host, [tmp_path / "target"])
    await update(host, [entry("120000", blob, b"dir")])
    files = await write_tree(host)
    beside = replace(host, index=tmp_path / "other")
    await update(beside, [entry("100644", blob, b"dir/%2Egit/HEAD"), entry("100644", blob, b"%2Egit/HEAD")])
    await restoring.restore(git_dir, Snapshot(files, await write_tree(beside)), tree)
    assert [*outside.iterdir()] == []
    assert (tree / ".git" / "HEAD").exists()


async def test_a_project_beside_the_first_comes_back_beside_it(a: Host, b: Host, app: SessionProject) -> None:
    second = replace(app, id="proj_2", name="other")

    async def place(host: Host, files: Files) -> list[KeptTree]:
        ground = TreeGround(
            tree=host.tree,
            seen=str(host.tree),
            beside=host.data / "beside",
            beside_seen="",
            objects_seen=None,
            user=(os.geteuid(), os.getegid()),
        )
        placed = await host.trees.check_out("default", "sesn_1", [app, second], ground, files)
        return [
            KeptTree(organisation="default", session_id="sesn_1", project=project, files=found.tree, beside=number > 0)
            for number, (project, found) in enumerate(zip((app, second), placed, strict=True))
        ]

    first, beside = await place(a, NO_FILES)
    (first.files / "file").write_text("of the first\n")
    (beside.files / "file").write_text("of the second\n")
    kept = {tree.project.id: await a.trees.store_snapshot(tree, None) for tree in (first, beside) if tree.project}
    other = await place(b, Files({name: one for name, one in kept.items() if one is not None}))
    assert [(tree.files / "file").read_text() for tree in other] == ["of the first\n", "of the second\n"]
    assert other[1].files == b.data / "beside" / "other"
    for tree, last in zip(other, kept.values(), strict=True):
        again = await b.trees.store_snapshot(tree, last)
        assert again is not None
        assert last is not None
        assert again.snapshot.tree == last.snapshot.tree
