"""Times of a session's start on a project, and of `git worktree add` in the same repository, in turns.

A start is all that comes before the first tool: the mirror is brought up to date, and the tree is placed with a git
directory for the agent and one for the host. The mirror itself is there: it is made once for a project. Nothing is
removed in between: a filesystem is slow to use again what was given free a moment ago.
"""

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bench.prove.changes.repositories import fill, place, program, timed
from footplate.domain.addresses import Reach
from footplate.domain.projects import SessionProject
from footplate.domain.running import KeptTree, TreeGround
from footplate.store.objects import Objects
from footplate.trees.keeping import Keeper
from footplate.trees.mirrors import Mirrors
from footplate.trees.sessions import SessionTrees

_ORGANISATION: Final = "default"
_SECONDS: Final = 600
_AGENT: Final = (65_520, 65_520)
"""Whose the files are where the worker is root, as in a sandbox."""


@dataclass(slots=True)
class Started:
    start: list[float] = field(default_factory=list)
    worktree: list[float] = field(default_factory=list)
    first_snapshot: list[float] = field(default_factory=list)


async def measure_starts(files: int, rounds: int) -> Started:
    with place() as root:
        repository, data = root / "projects" / "app", root / "data"
        await asyncio.to_thread(fill, repository, files)
        data.mkdir()
        mirrors = Mirrors(data, root=str(root / "projects"), reach=Reach(), seconds=_SECONDS)
        trees = SessionTrees(data, mirrors, Keeper(Objects.open(None, data)), seconds=_SECONDS)
        project = SessionProject(id="proj_app", name="app", path="app")
        await trees.base(_ORGANISATION, project)
        found = Started()
        for number in range(rounds):
            turns = [_session(trees, project, data, number, found), _worktree(repository, root, number, found)]
            for turn in turns if number % 2 else reversed(turns):
                await turn
    return found


async def _session(trees: SessionTrees, project: SessionProject, data: Path, number: int, found: Started) -> None:
    session_id = f"sesn_{number}"
    tree = data / "workspaces" / _ORGANISATION / session_id
    ground = TreeGround(
        tree=tree,
        seen=str(tree),
        beside=tree.with_name(f"{session_id}.state"),
        beside_seen="",
        objects_seen=None,
        user=_AGENT if os.geteuid() == 0 else (os.geteuid(), os.getegid()),
    )
    based = await timed(_start(trees, project, session_id, ground), found.start)
    kept = KeptTree(organisation=_ORGANISATION, session_id=session_id, project=based, files=tree)
    await timed(trees.keep(kept, None), found.first_snapshot)


async def _start(trees: SessionTrees, project: SessionProject, session_id: str, ground: TreeGround) -> SessionProject:
    based = replace(project, base=await trees.base(_ORGANISATION, project))
    await trees.place(_ORGANISATION, session_id, [based], ground)
    return based


async def _worktree(repository: Path, root: Path, number: int, found: Started) -> None:
    """Without a branch, so that what a session is offered stays the same."""
    tree = root / "worktrees" / f"{number}"
    await timed(program(repository, "git", "worktree", "add", "--detach", str(tree)), found.worktree)
