"""The locations of a session's trees: on this host, and as processes inside the environment see them."""

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
"""The subdirectory of the session's state that contains its further projects, by name."""
BESIDE_SEEN: Final = "/projects"
OBJECTS_SEEN: Final = "/run/footplate-objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The directories of a session on this host, and the user that its commands run as."""

    tree: Path
    state: Path
    named: bool
    """The tree is a directory that a user named. It is not owned by the session and stays as it is."""
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
    """Checks out the session's projects, the working directory first. With `enclosed`, processes inside see the trees
    at fixed paths instead of the host's paths.
    """
    if not projects and (trees is None or at.named):
        return ()
    if trees is None:
        raise Permanent("This worker does not support projects.", help_text="Create the session without projects.")
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
    """Returns the session's own trees by project id. Without projects this is the working directory, unless a user
    named it.
    """
    if placed or named:
        return {found.project_id: found.tree for found in placed}
    return {SCRATCH: tree}


def seen(placed: Sequence[PlacedTree]) -> Mapping[str, str]:
    """Returns the path of each project inside the environment."""
    return {found.project_id: found.seen for found in placed}


def variables(projects: Sequence[SessionProject], placed: Sequence[PlacedTree]) -> Mapping[str, str]:
    """Returns the environment variable that tells every command the paths of the projects, in their order."""
    if not placed:
        return {}
    named = zip(projects, placed, strict=True)
    told = [{"id": project.id, "name": project.name, "path": found.seen} for project, found in named]
    return {"FOOTPLATE_PROJECTS": json.dumps(told)}
