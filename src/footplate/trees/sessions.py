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
    def __init__(self, data: Path, mirrors: Mirrors, keeper: Keeper, *, seconds: float) -> None:
        self._data = data.resolve()
        self._mirrors = mirrors
        self._keeper = keeper
        self._seconds = seconds
        self._watched: dict[Path, IncrementalSnapshots] = {}
        """Incremental snapshots of running turns, by the host's git directory."""
        self._brought: dict[tuple[str, str, str, Trust], Brought] = {}
        """Instructions by base commit. A commit never changes, so they are not read again for each turn."""

    def private(self, organisation: str, session_id: str) -> Path:
        return private_of(self._data, organisation, session_id)

    async def base(self, organisation: str, project: SessionProject) -> Base:
        return await self._mirrors.refresh(organisation, project)

    async def place(
        self,
        organisation: str,
        session_id: str,
        projects: Sequence[SessionProject],
        ground: TreeGround,
        files: Files = NO_FILES,
    ) -> Sequence[PlacedTree]:
        placed = [self._placed(organisation, project, ground, number) for number, project in enumerate(projects)]
        given = [(project, found.tree) for project, found in zip(projects, placed, strict=True)]
        trees = [
            KeptTree(organisation=organisation, session_id=session_id, project=project, files=tree, beside=number > 0)
            for number, (project, tree) in enumerate(given or [(None, ground.tree)])
        ]
        if all(self._is_there(tree, files) for tree in trees):
            for project in projects:  # the trees share their objects; a mirror never removes any
                if not self._mirrors.path(organisation, project.id).is_dir():
                    await self._ensure(organisation, project)
            return placed
        async with locked(self.private(organisation, session_id) / _LOCK, seconds=self._seconds):
            for number, tree in enumerate(trees):
                if not self._is_there(tree, files):
                    await self._place(tree, placed[number].objects_seen if placed else None, ground.user, files)
        return placed

    def _is_there(self, tree: KeptTree, files: Files) -> bool:
        """Whether the tree is up to date. A scratch tree starts empty, so it needs work only if the log has files of
        it.
        """
        host, kept = self._host(tree), files.kept.get(_name(tree))
        if tree.project is None and kept is None:
            return True
        return is_placed(host.parent) and goes_on(host, kept)

    async def _place(self, tree: KeptTree, objects: str | None, user: tuple[int, int], files: Files) -> None:
        kept, project = files.kept.get(_name(tree)), tree.project
        if project is None:
            assert kept is not None
            await bring_back(self._keeper, Return(place=self._tree_place(tree, files), kept=kept, user=user))
            return
        base = project.base or await self.base(tree.organisation, project)
        mirror = await self._ensure(tree.organisation, project)
        if kept is not None:
            place = self._tree_place(tree, files)
            wanted = Return(place=place, kept=kept, user=user, branch=base.branch, mirror=mirror, objects=objects)
            await bring_back(self._keeper, wanted)
            return
        assert objects is not None
        await place_at_base(
            Placement(
                project=project,
                base=base,
                mirror=mirror,
                objects=objects,
                private=self._host(tree).parent,
                tree=tree.files,
                user=user,
            )
        )

    async def keep(
        self,
        tree: KeptTree,
        last: KeptSnapshot | None,
        collected: Collected | None = None,
        *,
        incremental: bool = False,
    ) -> KeptSnapshot | None:
        place = self._tree_place(tree)
        watched = None
        if incremental:
            watched = self._watched.setdefault(place.git_dir, self._keeper.create_incremental_snapshots(place))
        if not place.git_dir.is_dir():
            if watched is not None:
                await watched.watch_empty_tree()
            if last is None and not await asyncio.to_thread(_has_any, tree.files):
                return None
            await _make_host(place.git_dir)
        kept = await self._keeper.keep(place, last, collected, watched)
        if kept != last:
            go_on_from(place.git_dir, [last, kept])
        return kept

    async def stop_watching(self, tree: KeptTree, *, merge_packs: bool = True) -> None:
        host = self._host(tree)
        if (watched := self._watched.pop(host, None)) is not None:
            await watched.close()
        if not merge_packs:
            return
        await repacking.merge_packs(host, seconds=_MERGE_SECONDS)
        if tree.project is not None:
            self._mirrors.merge_packs_later(tree.organisation, tree.project.id)

    async def commits(
        self, tree: KeptTree, environment: Environment, seen: str, last: KeptSnapshot | None
    ) -> Collected:
        base = None if tree.project is None else tree.project.base_commit
        before = None if last is None else last.snapshot
        return await collect(environment, seen, Git(git_dir=self._host(tree)), base, before)

    def unplace(self, organisation: str, session_id: str) -> None:
        """Makes the next turn rebuild the trees, whatever happens to the files now. No turn may be running."""
        private = self.private(organisation, session_id)
        for place in (private, *(private / BESIDE).glob("*")):
            if is_placed(place):
                shutil.rmtree(place / BEGUN, ignore_errors=True)
                (place / HOST).rename(place / BEGUN)

    def _host(self, tree: KeptTree, session_id: str | None = None) -> Path:
        """`session_id`: another session with the same projects."""
        private = self.private(tree.organisation, session_id or tree.session_id)
        return host_of(private, _name(tree), beside=tree.beside)

    def _tree_place(self, tree: KeptTree, files: Files = NO_FILES) -> TreePlace:
        organisation, name = tree.organisation, _name(tree)
        base = None if tree.project is None else tree.project.base_commit
        return TreePlace(
            git_dir=self._host(tree),
            tree=tree.files,
            prefix=prefix_of(f"{organisation}/{tree.session_id}", name),
            parents=[prefix_of(f"{organisation}/{owner}", name) for owner in files.owners],
            base=base,
            shared=None if base is None else bases_of(organisation, name),
            nearby=[self._host(tree, owner) for owner in files.owners],
        )

    async def brought(self, organisation: str, project: SessionProject) -> Brought:
        commit = project.base_commit
        if commit is None or project.trust is Trust.NOTHING:
            return Brought()
        key = (organisation, project.id, commit, project.trust)
        if key not in self._brought:
            mirror = await self._ensure(organisation, project)
            found = await bringing.read(Git(git_dir=mirror), commit, project.trust)
            while len(self._brought) >= _MOST_BROUGHT:
                self._brought.pop(next(iter(self._brought)))
            self._brought[key] = found
        return self._brought[key]

    def git(self, organisation: str, session_id: str, tree: Path, user: tuple[int, int] | None = None) -> Git:
        """Runs git on the tree of the session's first project, with the host's git directory."""
        return Git(git_dir=self.private(organisation, session_id) / HOST, work_tree=tree, user=user)

    async def _ensure(self, organisation: str, project: SessionProject) -> Path:
        path = self._mirrors.path(organisation, project.id)
        if (commit := project.base_commit) is not None:
            return await self._mirrors.ensure(organisation, project, commit)
        if not path.is_dir():
            await self._mirrors.refresh(organisation, project)
        return path

    def _placed(self, organisation: str, project: SessionProject, ground: TreeGround, number: int) -> PlacedTree:
        objects = self._mirrors.path(organisation, project.id) / "objects"
        tree = ground.tree if number == 0 else ground.beside / project.name
        seen = ground.seen if number == 0 else f"{ground.beside_seen}/{project.name}"
        return PlacedTree(
            project_id=project.id,
            tree=tree,
            seen=seen,
            objects=objects,
            objects_seen=str(objects) if ground.objects_seen is None else f"{ground.objects_seen}/{project.id}",
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
