"""Chooses a session's working directory: its own, or one that the session names if the operator allows that."""

import json
from collections.abc import Mapping
from pathlib import Path

from footplate.domain.errors import InvalidRequest
from footplate.domain.named_directories import FIELD, KEY, NamedRoots


def working_directory(own: Path, organisation: str, variables: Mapping[str, str], named: NamedRoots | None) -> Path:
    """Returns the real path of the working directory. This is the path that was checked, because a symbolic
    link below an allowed root may lead anywhere.

    `session_dir` is created if it is missing. A named directory must exist: creating one for a misspelt path
    would hide the mistake. `allowed_roots` is None if sessions may not name a directory; then a name is
    ignored.
    """
    own.mkdir(parents=True, exist_ok=True)
    wanted = json.loads(variables.get("FOOTPLATE_CONTEXT", "{}")).get(KEY)
    if named is None or not named.roots or not isinstance(wanted, str):
        return own
    if not Path(wanted).is_absolute() or not Path(wanted).is_dir():
        raise InvalidRequest(
            f"The session's {FIELD} {wanted!r} is not a directory on the worker's machine.",
            field=FIELD,
            help_text="Use the absolute path of a directory that exists where the workers run, or omit it.",
        )
    named.check(organisation, wanted)
    found = Path(wanted).resolve()
    named.check(organisation, str(found))
    if any(map(_is_repository, (found, *found.parents))):
        raise InvalidRequest(
            f"The session's {FIELD} {wanted!r} is inside a git directory.",
            field=FIELD,
            help_text="Name a checkout instead. Files that are written to a git directory can run as another user.",
        )
    return found


def _is_repository(directory: Path) -> bool:
    """Returns whether the directory is a bare repository, or the git directory of a checkout, whatever its name is."""
    return (directory / "HEAD").is_file() and (directory / "objects").is_dir() and (directory / "refs").is_dir()
