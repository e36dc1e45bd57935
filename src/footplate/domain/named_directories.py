"""Which directories of a worker's machine a session may name as its working directory (`context.directory`).

The operator gives roots to an organisation. Checked twice: by the api on the text when a request names one, and by the
worker on the real path, with all links followed, before anything works there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json

KEY: Final = "directory"
"""In a session's context, or in that of a message."""
FIELD: Final = f"context.{KEY}"


@dataclass(frozen=True, slots=True)
class NamedRoots:
    roots: Mapping[str, Sequence[str]]
    """By organisation. A directory that is named lies below one of them, or is one."""
    homes: Sequence[str] = ()
    """Home directories of people: their dot files, and whatever contains those, are never worked in."""

    def check_context(self, organisation: str, context: Mapping[str, Json]) -> None:
        """Raises `InvalidRequest`. Where no organisation has roots, workers ignore the field."""
        named = context.get(KEY)
        if self.roots and isinstance(named, str):
            self.check(organisation, named)

    def check(self, organisation: str, directory: str) -> None:
        path = PurePosixPath(directory)
        if not path.is_absolute() or ".." in path.parts:
            raise _refused(directory, "it is not an absolute path without `..`")
        if not any(path.is_relative_to(root) for root in self.roots.get(organisation, ())):
            raise _refused(directory, "it is not below a directory that the operator gives to this organisation")
        if ".git" in {part.lower() for part in path.parts}:
            raise _refused(directory, "it leads into a git directory")
        for home in self.homes:
            inside = path.parts[len(PurePosixPath(home).parts) :] if path.is_relative_to(home) else None
            if PurePosixPath(home).is_relative_to(path) or (inside and inside[0].startswith(".")):
                raise _refused(directory, f"it is, contains, or holds dot files of the home directory {home}")


def _refused(directory: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"{FIELD}: {directory!r} cannot be worked in: {why}",
        field=FIELD,
        help_text="Name a directory below FOOTPLATE_NAMED_ROOTS of your organisation, or leave it out.",
    )
