"""Determines the paths of a session's working trees, both on this host and inside the session's environment, and checks
out the session's projects there.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import SCRATCH_TREE
from footplate.domain.ports.engine import CheckedOutTree, CheckoutTarget, OpenRequest, Trees
from footplate.domain.projects.project import SessionProject
from footplate.environments.isolation.filesystem_view import HOME, WORKSPACE_MOUNT

ADDITIONAL_PROJECTS: Final = "projects"
"""The subdirectory of the session's state that contains its further projects, by name."""
ADDITIONAL_PROJECTS_INSIDE: Final = "/projects"
OBJECTS_INSIDE: Final = "/run/footplate-objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLocation:
    """The directories of a session on this host, and the user that its commands run as."""

    tree: Path
    state: Path
    named: bool
    """The tree is a directory that a user named. It is not owned by the session and stays as it is."""
    user: tuple[int, int]


async def check_out_trees(
    trees: Trees | None,
    request: OpenRequest,
    location: SessionLocation,
    *,
    enclosed: bool,
    path_inside: Callable[[str], str] = str,
) -> Sequence[CheckedOutTree]:
    """Restores HOME and checks out the session's projects, the working directory first. With `enclosed`, processes
    inside see the trees at fixed paths. Otherwise they see them at the host's paths, or where `path_inside` says.
    """
    if trees is not None:
        await trees.restore_home(
            *(request.organisation, request.session_id, location.state / HOME, location.user, request.files),
            deadline=request.deadline,
        )
    if not request.projects and (trees is None or location.named):
        return ()
    if trees is None:
        raise Permanent("This worker does not support projects.", help_text="Create the session without projects.")
    additional_dir = location.state / ADDITIONAL_PROJECTS
    target = CheckoutTarget(
        tree=location.tree,
        inside_path=WORKSPACE_MOUNT if enclosed else path_inside(str(location.tree)),
        additional_directory=additional_dir,
        additional_inside_path=ADDITIONAL_PROJECTS_INSIDE if enclosed else path_inside(str(additional_dir)),
        objects_inside_path=OBJECTS_INSIDE if enclosed else lambda objects: path_inside(str(objects)),
        owner=location.user,
    )
    return await trees.check_out(
        *(request.organisation, request.session_id, request.projects, target, request.files), deadline=request.deadline
    )


def session_trees(checked_out: Sequence[CheckedOutTree], tree: Path, *, named: bool) -> Mapping[str, Path]:
    """Returns the session's own trees by project id. Without projects this is the working directory, unless a user
    named it.
    """
    if checked_out or named:
        return {entry.project_id: entry.tree for entry in checked_out}
    return {SCRATCH_TREE: tree}


def paths_inside(checked_out: Sequence[CheckedOutTree]) -> Mapping[str, str]:
    """Returns the path of each project inside the environment."""
    return {entry.project_id: entry.inside_path for entry in checked_out}


def project_variables(projects: Sequence[SessionProject], checked_out: Sequence[CheckedOutTree]) -> Mapping[str, str]:
    """Returns the environment variable that tells every command the paths of the projects, in their order."""
    if not checked_out:
        return {}
    pairs = zip(projects, checked_out, strict=True)
    descriptions = [{"id": project.id, "name": project.name, "path": entry.inside_path} for project, entry in pairs]
    return {"FOOTPLATE_PROJECTS": json.dumps(descriptions)}
