"""Files of an organisation (K8): uploaded once, named in inputs by their id. Pure.

A file is a row and its bytes in the object store. The bytes are there before the row is, and a note that they have to
go stands before the bytes do: whoever is killed in between leaves nothing that nobody removes.
"""

import unicodedata
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final, Protocol

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.pages import Page
from footplate.domain.principals import Principal

PART: Final = 16 << 20
"""A larger file is several objects: a conditional write is one request, with all of it in memory."""
FILES: Final = "files"
"""Of an organisation in the object store: a folder for each."""
UNKNOWN_TYPE: Final = "application/octet-stream"
LONGEST_NAME: Final = 255
UPLOADS: Final = ".footplate/uploads"
"""In a session's working directory: what it is given as a file."""
MOST_RESOURCES: Final = 100
"""Of one session."""
_SEEN: Final = "/workspace/"
_UNPRINTABLE: Final = dict.fromkeys((*range(32), 127))
_IGNORED: Final = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
"""Characters that some file systems leave out of names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    id: str
    organisation: str
    filename: str
    mime_type: str
    size_bytes: int
    created_at: datetime
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    """Never: a file is there, or it is deleted."""


Resources = Sequence[JsonObject]
"""Of a session, as the api tells them."""


class FileReads(Protocol):
    async def file(self, principal: Principal, file_id: str) -> StoredFile:
        """Raises `NotFound`, for one that has expired too."""

    async def files(
        self, principal: Principal, page: Page, *, ids: Sequence[str] | None = None
    ) -> Sequence[StoredFile]:
        """Newest first. `ids`: those of them that there are."""


class FileUnit(Protocol):
    async def create_file(
        self,
        principal: Principal,
        *,
        file_id: str,
        filename: str,
        mime_type: str,
        size_bytes: int,
        expires_in: int | None,
    ) -> StoredFile:
        """The bytes are in the object store by now; from here on they stay."""

    async def delete_file(self, principal: Principal, file_id: str) -> None: ...

    async def change_resources(
        self, principal: Principal, session_id: str, change: Callable[[Resources], Resources]
    ) -> Resources:
        """Those of a session, under its lock. Its next turn finds them in its tree."""


class FileBytes(Protocol):
    async def store(self, organisation: str, file_id: str, pieces: AsyncIterator[bytes]) -> None:
        """Pieces of any size. Unless a row for them is committed within the hour, they are removed again."""

    def pieces(self, file: StoredFile) -> AsyncIterator[bytes]: ...


def prefix_of(organisation: str, file_id: str) -> str:
    """Where the bytes are in the object store."""
    return f"{organisation}/{FILES}/{file_id}"


def is_git_name(name: str) -> bool:
    """Whether git takes a file of that name, here or on another file system, for a repository: it may name programs."""
    seen = unicodedata.normalize("NFKC", name.translate(_IGNORED)).casefold().rstrip(". ")
    return seen.partition(":")[0] in {".git", "git~1"}


def name_of(given: str, extension: str = "") -> str:
    """The last step of what a client calls it, and nothing that a path or a terminal would take for something else."""
    name = PurePosixPath(given.replace("\\", "/")).name.translate(_UNPRINTABLE).strip()
    if name in {"", ".", ".."} or is_git_name(name):
        name = f"unnamed{extension}"
    while len(name.encode()) > LONGEST_NAME:
        name = name[1:]
    return name


def place_of(file: StoredFile, mount_path: str | None) -> str:
    """Where a file lies in a session's working directory, relative to it. Raises `InvalidRequest`."""
    if mount_path is None:
        return f"{UPLOADS}/{file.id}/{file.filename}"
    path = mount_path.removeprefix(_SEEN)
    steps = path.split("/")
    if path.startswith("/") or any(step in {"", ".", ".."} or is_git_name(step) for step in steps):
        raise InvalidRequest(
            f"mount_path: {mount_path!r} is no place in the session's working directory",
            field="mount_path",
            help_text=f"Name it relative to that directory, or below {_SEEN}; without it, it is in {UPLOADS}.",
        )
    return path
