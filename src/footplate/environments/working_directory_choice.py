"""Chooses the working directory of a session: its own, or one that the client names, if the operator allows it."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from footplate.domain.errors import InvalidRequest
from footplate.domain.projects.allowed_directories import CONTEXT_FIELD, CONTEXT_KEY, AllowedRoots
from footplate.domain.projects.project import read_subdirectory


def choose_working_directory(
    session_dir: Path, organisation: str, variables: Mapping[str, str], allowed_roots: AllowedRoots | None
) -> Path:
    """Returns the real path of the working directory. This is the path that was checked, because a symbolic
    link below an allowed root may lead anywhere.

    `session_dir` is created if it is missing. A named directory must exist: creating one for a misspelt path
    would hide the mistake. `allowed_roots` is None if sessions may not name a directory; then a name is
    ignored.
    """
    session_dir.mkdir(parents=True, exist_ok=True)
    requested = json.loads(variables.get("FOOTPLATE_CONTEXT", "{}")).get(CONTEXT_KEY)
    if allowed_roots is None or not allowed_roots.roots or not isinstance(requested, str):
        return session_dir
    if not Path(requested).is_absolute() or not Path(requested).is_dir():
        raise InvalidRequest(
            f"The session's {CONTEXT_FIELD} {requested!r} is not a directory on the worker's machine.",
            field=CONTEXT_FIELD,
            help_text="Use the absolute path of a directory that exists where the workers run, or omit it.",
        )
    allowed_roots.check_directory(organisation, requested)
    resolved = Path(requested).resolve()
    allowed_roots.check_directory(organisation, str(resolved))
    if any(map(_is_git_directory, (resolved, *resolved.parents))):
        raise InvalidRequest(
            f"The session's {CONTEXT_FIELD} {requested!r} is inside a git directory.",
            field=CONTEXT_FIELD,
            help_text="Use a directory outside it. Otherwise an agent could add git hooks that run as another user.",
        )
    return resolved


def find_subdirectory(tree: Path, variables: Mapping[str, str]) -> str:
    """Returns the directory below the first project's tree in which programs start. Returns an empty string if the
    session names none, or if it does not exist now, because the agent may have removed it. Links are not followed.
    """
    subdirectory = read_subdirectory(json.loads(variables.get("FOOTPLATE_CONTEXT", "{}")))
    path = PurePosixPath(subdirectory)
    steps = [tree / step for step in (path, *path.parents)]
    return "" if any(step.is_symlink() or not step.is_dir() for step in steps) else subdirectory


def _is_git_directory(directory: Path) -> bool:
    """Returns whether the directory is a bare repository, or the git directory of a checkout, whatever its name is."""
    return (directory / "HEAD").is_file() and (directory / "objects").is_dir() and (directory / "refs").is_dir()
