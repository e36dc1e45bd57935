"""Where a session's commands work: in a directory of its own or, where the operator allows it, in one that it names."""

import json
from collections.abc import Mapping
from pathlib import Path

from footplate.domain.errors import InvalidRequest
from footplate.domain.named_directories import FIELD, KEY, NamedRoots


def working_directory(own: Path, organisation: str, variables: Mapping[str, str], named: NamedRoots | None) -> Path:
    """`own` is made if need be; a named one has to be there, because a misspelt one would be worked in for nothing.

    `named`: None where nobody may name one; then what is named is ignored. Returns the real path, which is what was
    checked: a link below a root may lead anywhere.
    """
    own.mkdir(parents=True, exist_ok=True)
    wanted = json.loads(variables.get("FOOTPLATE_CONTEXT", "{}")).get(KEY)
    if named is None or not named.roots or not isinstance(wanted, str):
        return own
    if not Path(wanted).is_absolute() or not Path(wanted).is_dir():
        raise InvalidRequest(
            f"The session's {FIELD} {wanted!r} is no directory on the worker's machine.",
            field=FIELD,
            help_text="Give the absolute path of one that exists where the workers run, or leave it out.",
        )
    named.check(organisation, wanted)
    found = Path(wanted).resolve()
    named.check(organisation, str(found))
    if any(map(_is_repository, (found, *found.parents))):
        raise InvalidRequest(
            f"The session's {FIELD} {wanted!r} is inside a git repository's own files.",
            field=FIELD,
            help_text="Name a checkout of it instead: what is written there could run as somebody else.",
        )
    return found


def _is_repository(directory: Path) -> bool:
    """A bare repository, or the git directory of a checkout under another name."""
    return (directory / "HEAD").is_file() and (directory / "objects").is_dir() and (directory / "refs").is_dir()
