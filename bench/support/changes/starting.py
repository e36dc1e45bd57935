"""Times of a session's start on a project, and of `git worktree add` in the same repository, in turns.

A start is all that comes before the first tool: the mirror is brought up to date, and the tree is placed with a git
directory for the agent and one for the host. The mirror itself is there: it is made once for a project. Nothing is
removed in between: a filesystem is slow to use again what was given free a moment ago.
"""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.support.changes.in_process import ORGANISATION, ground_of, open_trees
from bench.support.changes.repositories import fill, program, space, timed
from footplate.domain.projects import SessionProject
from footplate.domain.running import KeptTree, TreeGround
from footplate.trees.sessions import SessionTrees


@dataclass(slots=True)
class Started:
    start: list[float] = field(default_factory=list)
    worktree: list[float] = field(default_factory=list)
    first_snapshot: list[float] = field(default_factory=list)


async def measure_starts(files: int, rounds: int) -> Started:
    with space() as root:
        repository, data = root / "projects" / "app", root / "data"
        await asyncio.to_thread(fill, repository, files)
        data.mkdir()
        trees = open_trees(data, projects=root / "projects")
        project = SessionProject(id="proj_app", name="app", path="app")
        await trees.base(ORGANISATION, project)
        found = Started()
        for number in range(rounds):
            turns = [_session(trees, project, data, number, found), _worktree(repository, root, number, found)]
            for turn in turns if number % 2 else reversed(turns):
                await turn
    return found


async def _session(trees: SessionTrees, project: SessionProject, data: Path, number: int, found: Started) -> None:
    session_id = f"sesn_{number}"
    tree = data / "workspaces" / ORGANISATION / session_id
    ground = ground_of(tree)
    based = await timed(_start(trees, project, session_id, ground), found.start)
    kept = KeptTree(organisation=ORGANISATION, session_id=session_id, project=based, files=tree)
    await timed(trees.keep(kept, None), found.first_snapshot)


async def _start(trees: SessionTrees, project: SessionProject, session_id: str, ground: TreeGround) -> SessionProject:
    based = replace(project, base=await trees.base(ORGANISATION, project))
    await trees.place(ORGANISATION, session_id, [based], ground)
    return based


async def _worktree(repository: Path, root: Path, number: int, found: Started) -> None:
    """Without a branch, so that what a session is offered stays the same."""
    tree = root / "worktrees" / f"{number}"
    await timed(program(repository, "git", "worktree", "add", "--detach", str(tree)), found.worktree)
