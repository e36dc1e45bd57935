"""Where a session's trees lie beside what else it has on this machine, and where they are seen from inside."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.projects import SessionProject
from footplate.domain.running import PlacedTree, TreeGround, Trees
from footplate.domain.snapshots import SCRATCH, Files
from footplate.environments.sandbox.view import WORKSPACE

BESIDE: Final = "projects"
"""In what a session keeps beside its tree: its further projects, by name."""
BESIDE_SEEN: Final = "/projects"
OBJECTS_SEEN: Final = "/run/footplate-objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a session works on this machine, and as whom."""

    tree: Path
    state: Path
    named: bool
    """It is no tree of the session's, but a directory that a user named, and left as it is."""
    user: tuple[int, int]


async def place(
    trees: Trees | None,
    organisation: str,
    session_id: str,
    projects: Sequence[SessionProject],
    files: Files,
    at: Places,
    *,
    enclosed: bool,
) -> Sequence[PlacedTree]:
    """The working directory first. `enclosed`: what is inside sees places of its own, and not the host's."""
    if not projects and (trees is None or at.named):
        return ()
    if trees is None:
        raise Permanent("This worker has no place for projects.", help_text="Leave out the session's projects.")
    beside = at.state / BESIDE
    ground = TreeGround(
        tree=at.tree,
        seen=WORKSPACE if enclosed else str(at.tree),
        beside=beside,
        beside_seen=BESIDE_SEEN if enclosed else str(beside),
        objects_seen=OBJECTS_SEEN if enclosed else None,
        user=at.user,
    )
    return await trees.place(organisation, session_id, projects, ground, files)


def own(placed: Sequence[PlacedTree], tree: Path, *, named: bool) -> Mapping[str, Path]:
    """A session's own, by project; without projects it is the directory that it works in, unless a user named that."""
    if placed or named:
        return {found.project_id: found.tree for found in placed}
    return {SCRATCH: tree}


def seen(placed: Sequence[PlacedTree]) -> Mapping[str, str]:
    """Where each project is inside."""
    return {found.project_id: found.seen for found in placed}


def variables(projects: Sequence[SessionProject], placed: Sequence[PlacedTree]) -> Mapping[str, str]:
    """For every command: where each project is, in their order."""
    if not placed:
        return {}
    named = zip(projects, placed, strict=True)
    told = [{"id": project.id, "name": project.name, "path": found.seen} for project, found in named]
    return {"FOOTPLATE_PROJECTS": json.dumps(told)}
