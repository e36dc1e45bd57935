"""Checks which directories of a worker's machine a session may use as its working directory (`context.directory`).

The operator assigns root directories to an organisation. The API checks the path as text when a request names it. The
worker checks it again before any command runs, with all symbolic links resolved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json

CONTEXT_KEY: Final = "directory"
"""The key in the context of a session or a message."""
CONTEXT_FIELD: Final = f"context.{CONTEXT_KEY}"


@dataclass(frozen=True, slots=True)
class AllowedRoots:
    roots: Mapping[str, Sequence[str]]
    """By organisation. An allowed directory is one of these or below one of them."""
    homes: Sequence[str] = ()
    """Home directories of users. Their dot directories, and every directory that contains a home, are refused."""

    def check_context(self, organisation: str, context: Mapping[str, Json]) -> None:
        """Raise `InvalidRequest` if the context names a directory that is not allowed. If no organisation has roots,
        the field is ignored.
        """
        directory = context.get(CONTEXT_KEY)
        if self.roots and isinstance(directory, str):
            self.check_directory(organisation, directory)

    def check_directory(self, organisation: str, directory: str) -> None:
        path = PurePosixPath(directory)
        if not path.is_absolute() or ".." in path.parts:
            raise _refusal(directory, "it is not an absolute path without `..`")
        if not any(path.is_relative_to(root) for root in self.roots.get(organisation, ())):
            raise _refusal(directory, "it is not below a directory that the operator assigned to this organisation")
        if ".git" in {part.lower() for part in path.parts}:
            raise _refusal(directory, "it is inside a git directory")
        for home in self.homes:
            relative_parts = path.parts[len(PurePosixPath(home).parts) :] if path.is_relative_to(home) else None
            if PurePosixPath(home).is_relative_to(path):
                raise _refusal(directory, f"it is or contains the home directory {home}")
            if relative_parts and relative_parts[0].startswith("."):
                raise _refusal(directory, f"it is inside a hidden directory of the home directory {home}")


def _refusal(directory: str, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"{CONTEXT_FIELD}: {directory!r} cannot be used: {reason}",
        field=CONTEXT_FIELD,
        help_text="Use a directory below your organisation's roots in FOOTPLATE_NAMED_ROOTS, or omit the field.",
    )
