"""Outputs: the files that an agent leaves in `/mnt/session/outputs`, which clients list and download.

The rows of a session's outputs say what its directory contains. A row is staged when a tool call has written the file,
and listed when the turn ends, so that clients never see a file that a program is still writing. If the host is lost,
the directory is restored from the rows.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

MAX_PATH_BYTES: Final = 1024
MAX_OMITTED: Final = 100
"""How many omitted files are reported one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """Limits for the outputs of one session."""

    max_files: int = 1000
    max_bytes: int = 1 << 30
    max_file_bytes: int = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A file in a session's output directory whose content is in the object store."""

    path: str
    """Relative to the directory, with forward slashes. It is the file's name in the API."""
    file_id: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SessionOutputs:
    """The outputs of a session according to the log."""

    files: Mapping[str, OutputFile] = field(default_factory=dict)
    """By path."""
    omitted: Sequence[str] = ()
    """Paths in the directory that are not stored, each with the reason."""
    is_published: bool = True
    """Whether clients see this state. Otherwise they see that of the last turn, until this turn ends."""


NO_OUTPUTS: Final = SessionOutputs()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChanges:
    """Changes of a session's outputs in an append to the log. Their bytes are already in the object store."""

    added: Sequence[OutputFile] = ()
    removed: Sequence[str] = ()
    """Ids of files that are replaced, or no longer in the directory."""
    omitted: Sequence[str] | None = ()
    """As in `SessionOutputs`. None: as before."""


class OutputBytes(Protocol):
    async def store(self, organisation: str, file_id: str, pieces: AsyncIterator[bytes]) -> None:
        """Store the bytes of a new file. They are removed if no row is committed within an hour."""

    def read_parts(self, organisation: str, file_id: str, size_bytes: int) -> AsyncIterator[bytes]:
        """Read the bytes of a file. Raises `NotFound`."""


def check_path(path: bytes) -> str | None:
    """Return why a file with this path cannot be stored. None: it can."""
    if len(path) > MAX_PATH_BYTES:
        return f"its path has more than {MAX_PATH_BYTES} bytes"
    try:
        path.decode()
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    return None


def shorten_omitted(omitted: Sequence[str]) -> Sequence[str]:
    if len(omitted) <= MAX_OMITTED:
        return tuple(omitted)
    return (*omitted[: MAX_OMITTED - 1], f"and {len(omitted) - MAX_OMITTED + 1} more")
