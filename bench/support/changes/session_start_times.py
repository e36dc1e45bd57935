"""Measures the start of a session on a project alternately with `git worktree add` in the same repository.

A start is everything before the first tool call: the mirror is updated, and the tree is checked out with a git
directory for the agent and one for the host. The mirror itself exists already: it is made once for a project. Nothing
is deleted between rounds, because a filesystem is slow to reuse space that was just freed.
"""

import asyncio
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.support.changes.large_repositories import (
    create_repository,
    measure_time,
    open_scratch_directory,
    run_program,
)
from bench.support.changes.session_trees import ORGANISATION, make_checkout_target, open_trees
from footplate.domain.ports.engine import CheckoutTarget, SessionTree
from footplate.domain.projects.project import SessionProject
from footplate.trees.session_trees import SessionTrees


@dataclass(slots=True)
class StartTimes:
    start: list[float] = field(default_factory=list)
    worktree: list[float] = field(default_factory=list)
    first_snapshot: list[float] = field(default_factory=list)


async def measure_starts(files: int, rounds: int) -> StartTimes:
    with open_scratch_directory() as root:
        repository, data = root / "projects" / "app", root / "data"
        await asyncio.to_thread(create_repository, repository, files)
        data.mkdir()
        trees = open_trees(data, projects=root / "projects")
        project = SessionProject(id="proj_app", name="app", path="app")
        await trees.resolve_base(ORGANISATION, project)
        found = StartTimes()
        for number in range(rounds):
            turns = [
                _measure_session(trees, project, data, number, found),
                _measure_worktree(repository, root, number, found),
            ]
            for turn in turns if number % 2 else reversed(turns):
                await turn
    return found


async def _measure_session(
    trees: SessionTrees, project: SessionProject, data: Path, number: int, found: StartTimes
) -> None:
    session_id = f"sesn_{number}"
    tree = data / "workspaces" / ORGANISATION / session_id
    target = make_checkout_target(tree)
    based = await measure_time(_start(trees, project, session_id, target), found.start)
    session_tree = SessionTree(organisation=ORGANISATION, session_id=session_id, project=based, files=tree)
    await measure_time(trees.store_snapshot(session_tree, None), found.first_snapshot)


async def _start(
    trees: SessionTrees, project: SessionProject, session_id: str, target: CheckoutTarget
) -> SessionProject:
    based = replace(project, base=await trees.resolve_base(ORGANISATION, project))
    await trees.check_out(ORGANISATION, session_id, [based], target, deadline=math.inf)
    return based


async def _measure_worktree(repository: Path, root: Path, number: int, found: StartTimes) -> None:
    """Adds a worktree without a branch, so that the branches a session sees stay the same."""
    tree = root / "worktrees" / f"{number}"
    await measure_time(run_program(repository, "git", "worktree", "add", "--detach", str(tree)), found.worktree)
