"""The trees of sessions on this host: which base they begin with, and where their files are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from footplate.domain.brought import Brought
from footplate.domain.projects import PRIVATE_TREES, Base, SessionProject, Trust
from footplate.domain.running import PlacedTree, TreeGround, Trees
from footplate.trees import bringing
from footplate.trees.git import Git
from footplate.trees.locks import locked
from footplate.trees.mirrors import Mirrors
from footplate.trees.placing import HOST, Placement, host_git, is_placed, place

_LOCK: Final = "lock"
_MOST_BROUGHT: Final = 32


class SessionTrees(Trees):
    def __init__(self, data: Path, mirrors: Mirrors, *, seconds: float) -> None:
        self._data = data.resolve()
        self._mirrors = mirrors
        self._seconds = seconds
        self._brought: dict[tuple[str, str, str, Trust], Brought] = {}
        """A commit does not change: what was read last is not read again for every turn."""

    def private(self, organisation: str, session_id: str) -> Path:
        return self._data / PRIVATE_TREES / organisation / session_id

    async def base(self, organisation: str, project: SessionProject) -> Base:
        return await self._mirrors.refresh(organisation, project)

    async def place(
        self, organisation: str, session_id: str, projects: Sequence[SessionProject], ground: TreeGround
    ) -> Sequence[PlacedTree]:
        private = self.private(organisation, session_id)
        places = dict(host_git(private, [project.id for project in projects]))
        placed = [self._placed(organisation, project, ground, number) for number, project in enumerate(projects)]
        if all(map(is_placed, places.values())):
            for project in projects:  # whose objects they share; from a mirror nothing is ever removed
                if not self._mirrors.path(organisation, project.id).is_dir():
                    await self._ensure(organisation, project)
            return placed
        async with locked(private / _LOCK, seconds=self._seconds):
            for project, found in zip(projects, placed, strict=True):
                if is_placed(places[project.id]):
                    continue
                base = project.base or await self.base(organisation, project)
                mirror = await self._ensure(organisation, project)
                await place(
                    Placement(
                        project=project,
                        base=base,
                        mirror=mirror,
                        objects=found.objects_seen,
                        private=places[project.id],
                        tree=found.tree,
                        user=ground.user,
                    )
                )
        return placed

    async def brought(self, organisation: str, project: SessionProject) -> Brought:
        commit = project.base.commit if project.base is not None else None
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
        """The host's, on the tree of a session's first project."""
        return Git(git_dir=self.private(organisation, session_id) / HOST, work_tree=tree, user=user)

    async def _ensure(self, organisation: str, project: SessionProject) -> Path:
        path = self._mirrors.path(organisation, project.id)
        if project.base is not None and project.base.commit is not None:
            return await self._mirrors.ensure(organisation, project, project.base.commit)
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
