"""The trees of sessions on this host: resolves their base, checks out or recovers their files, and takes snapshots."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from footplate.domain.brought import Brought
from footplate.domain.ports import Environment
from footplate.domain.projects import Base, SessionProject, Trust
from footplate.domain.running import KeptTree, PlacedTree, TreeGround, Trees
from footplate.domain.snapshots import NO_FILES, SCRATCH, Collected, Files, KeptSnapshot, bases_of, prefix_of
from footplate.trees import bringing, repacking
from footplate.trees.commits import collect
from footplate.trees.git import Git
from footplate.trees.incremental_snapshots import IncrementalSnapshots
from footplate.trees.keeping import Keeper, TreePlace
from footplate.trees.locks import locked
from footplate.trees.mirrors import Mirrors
from footplate.trees.placing import (
    BEGUN,
    BESIDE,
    HOST,
    Placement,
    host_of,
    init,
    is_placed,
    place_at_base,
    private_of,
)
from footplate.trees.returning import Return, bring_back, go_on_from, goes_on

_LOCK: Final = "lock"
_MOST_BROUGHT: Final = 32
_MERGE_SECONDS: Final = 10.0
"""Timeout for merging the packs of one session. The session's next turn waits for it."""


class SessionTrees(Trees):
    def __init__(self, data: Path, mirrors: Mirrors, uploader: Keeper, *, seconds: float) -> None:
        self._data = data.resolve()
        self._mirrors = mirrors
        self._uploader = uploader
        self._seconds = seconds
        self._incremental_snapshots: dict[Path, IncrementalSnapshots] = {}
        """Incremental snapshots of running turns, by the host's git directory."""
        self._instructions: dict[tuple[str, str, str, Trust], Brought] = {}
        """Instructions by base commit. A commit never changes, so they are not read again for each turn."""

    def private_dir(self, organisation: str, session_id: str) -> Path:
        return private_of(self._data, organisation, session_id)

    async def resolve_base(self, organisation: str, project: SessionProject) -> Base:
        return await self._mirrors.refresh(organisation, project)

    async def check_out(
        self,
        organisation: str,
        session_id: str,
        projects: Sequence[SessionProject],
        target: TreeGround,
        files: Files = NO_FILES,
    ) -> Sequence[PlacedTree]:
        checked_out = [self._placed(organisation, project, target, number) for number, project in enumerate(projects)]
        projects_and_trees = [(project, found.tree) for project, found in zip(projects, checked_out, strict=True)]
        trees = [
            KeptTree(organisation=organisation, session_id=session_id, project=project, files=tree, beside=number > 0)
            for number, (project, tree) in enumerate(projects_and_trees or [(None, target.tree)])
        ]
        if all(self._is_up_to_date(tree, files) for tree in trees):
            for project in projects:  # the trees share their objects; a mirror never removes any
                if not self._mirrors.mirror_path(organisation, project.id).is_dir():
                    await self._ensure(organisation, project)
            return checked_out
        async with locked(self.private_dir(organisation, session_id) / _LOCK, seconds=self._seconds):
            for number, tree in enumerate(trees):
                if not self._is_up_to_date(tree, files):
                    await self._check_out_tree(tree, checked_out[number].objects_seen if checked_out else None, target.user, files)
        return checked_out

    def _is_up_to_date(self, tree: KeptTree, files: Files) -> bool:
        """Whether the tree is up to date. A scratch tree starts empty, so it needs work only if the log has files of
        it.
        """
        host_git_dir, stored = self._host_git_dir(tree), files.kept.get(_name(tree))
        if tree.project is None and stored is None:
            return True
        return is_placed(host_git_dir.parent) and goes_on(host_git_dir, stored)

    async def _check_out_tree(self, tree: KeptTree, objects_inside: str | None, user: tuple[int, int], files: Files) -> None:
        stored, project = files.kept.get(_name(tree)), tree.project
        if project is None:
            assert stored is not None
            await bring_back(self._uploader, Return(place=self._locate_tree(tree, files), kept=stored, user=user))
            return
        base = project.base or await self.resolve_base(tree.organisation, project)
        mirror = await self._ensure(tree.organisation, project)
        if stored is not None:
            location = self._locate_tree(tree, files)
            request = Return(place=location, kept=stored, user=user, branch=base.branch, mirror=mirror, objects=objects_inside)
            await bring_back(self._uploader, request)
            return
        assert objects_inside is not None
        await place_at_base(
            Placement(
                project=project,
                base=base,
                mirror=mirror,
                objects_inside=objects_inside,
                private_dir=self._host_git_dir(tree).parent,
                tree=tree.files,
                user=user,
            )
        )

    async def store_snapshot(
        self,
        tree: KeptTree,
        last: KeptSnapshot | None,
        collected: Collected | None = None,
        *,
        incremental: bool = False,
    ) -> KeptSnapshot | None:
        location = self._locate_tree(tree)
        snapshots = None
        if incremental:
            snapshots = self._incremental_snapshots.setdefault(location.git_dir, self._uploader.create_incremental_snapshots(location))
        if not location.git_dir.is_dir():
            if snapshots is not None:
                await snapshots.watch_empty_tree()
            if last is None and not await asyncio.to_thread(_has_any, tree.files):
                return None
            await _make_host(location.git_dir)
        stored = await self._uploader.keep(location, last, collected, snapshots)
        if stored != last:
            go_on_from(location.git_dir, [last, stored])
        return stored

    async def stop_watching(self, tree: KeptTree, *, merge_packs: bool = True) -> None:
        host_git_dir = self._host_git_dir(tree)
        if (snapshots := self._incremental_snapshots.pop(host_git_dir, None)) is not None:
            await snapshots.close()
        if not merge_packs:
            return
        await repacking.merge_packs(host_git_dir, seconds=_MERGE_SECONDS)
        if tree.project is not None:
            self._mirrors.merge_packs_later(tree.organisation, tree.project.id)

    async def collect_commits(
        self, tree: KeptTree, environment: Environment, inside_path: str, last: KeptSnapshot | None
    ) -> Collected:
        base = None if tree.project is None else tree.project.base_commit
        before = None if last is None else last.snapshot
        return await collect(environment, inside_path, Git(git_dir=self._host_git_dir(tree)), base, before)

    def mark_for_rebuild(self, organisation: str, session_id: str) -> None:
        """Makes the next turn rebuild the trees, whatever happens to the files now. No turn may be running."""
        private_dir = self.private_dir(organisation, session_id)
        for directory in (private_dir, *(private_dir / BESIDE).glob("*")):
            if is_placed(directory):
                shutil.rmtree(directory / BEGUN, ignore_errors=True)
                (directory / HOST).rename(directory / BEGUN)

    def _host_git_dir(self, tree: KeptTree, session_id: str | None = None) -> Path:
        """`session_id`: another session with the same projects."""
        private_dir = self.private_dir(tree.organisation, session_id or tree.session_id)
        return host_of(private_dir, _name(tree), is_additional=tree.beside)

    def _locate_tree(self, tree: KeptTree, files: Files = NO_FILES) -> TreePlace:
        organisation, name = tree.organisation, _name(tree)
        base = None if tree.project is None else tree.project.base_commit
        return TreePlace(
            git_dir=self._host_git_dir(tree),
            tree=tree.files,
            prefix=prefix_of(f"{organisation}/{tree.session_id}", name),
            parents=[prefix_of(f"{organisation}/{owner}", name) for owner in files.owners],
            base=base,
            shared=None if base is None else bases_of(organisation, name),
            nearby=[self._host_git_dir(tree, owner) for owner in files.owners],
        )

    async def load_instructions(self, organisation: str, project: SessionProject) -> Brought:
        commit = project.base_commit
        if commit is None or project.trust is Trust.NOTHING:
            return Brought()
        key = (organisation, project.id, commit, project.trust)
        if key not in self._instructions:
            mirror = await self._ensure(organisation, project)
            found = await bringing.read(Git(git_dir=mirror), commit, project.trust)
            while len(self._instructions) >= _MOST_BROUGHT:
                self._instructions.pop(next(iter(self._instructions)))
            self._instructions[key] = found
        return self._instructions[key]

    def git(self, organisation: str, session_id: str, tree: Path, user: tuple[int, int] | None = None) -> Git:
        """Runs git on the tree of the session's first project, with the host's git directory."""
        return Git(git_dir=self.private_dir(organisation, session_id) / HOST, work_tree=tree, user=user)

    async def _ensure(self, organisation: str, project: SessionProject) -> Path:
        path = self._mirrors.mirror_path(organisation, project.id)
        if (commit := project.base_commit) is not None:
            return await self._mirrors.ensure_commit(organisation, project, commit)
        if not path.is_dir():
            await self._mirrors.refresh(organisation, project)
        return path

    def _placed(self, organisation: str, project: SessionProject, target: TreeGround, number: int) -> PlacedTree:
        objects = self._mirrors.mirror_path(organisation, project.id) / "objects"
        tree = target.tree if number == 0 else target.beside / project.name
        inside_path = target.seen if number == 0 else f"{target.beside_seen}/{project.name}"
        return PlacedTree(
            project_id=project.id,
            tree=tree,
            seen=inside_path,
            objects=objects,
            objects_seen=str(objects) if target.objects_seen is None else f"{target.objects_seen}/{project.id}",
        )


def _name(tree: KeptTree) -> str:
    return SCRATCH if tree.project is None else tree.project.id


def _has_any(directory: Path) -> bool:
    with os.scandir(directory) as entries:
        return next(entries, None) is not None


async def _make_host(git_dir: Path) -> None:
    """Creates the host's git directory of a scratch tree, once there are files to store."""
    new = git_dir.with_name(f"{HOST}.{os.getpid()}")
    await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
    await asyncio.to_thread(new.mkdir, parents=True)
    await init(new, "main", None)
    await asyncio.to_thread(new.rename, git_dir)
