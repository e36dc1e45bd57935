"""Files of an organisation, uploaded by clients or left by agents. Messages and session resources refer to them by id.

A file is a database row and its bytes in the object store. An upload first writes a deletion record, then the bytes,
and then the row. The transaction that writes the row also removes the deletion record. If an upload is interrupted, the
record remains, and a background job removes the bytes.
"""

import unicodedata
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final, Protocol

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.pagination import Page

OBJECT_PART_BYTES: Final = 16 << 20
"""Bytes per object. A larger file is split, because a conditional write holds the whole object in memory."""
FILES_FOLDER: Final = "files"
"""The folder of uploaded files in an organisation's part of the object store."""
UNKNOWN_TYPE: Final = "application/octet-stream"
MAX_NAME_BYTES: Final = 255
UPLOADS_DIRECTORY: Final = ".footplate/uploads"
"""The directory for attached files, in a session's working directory."""
MAX_RESOURCES: Final = 100
"""Maximum number of resources of one session."""
_WORKSPACE_PREFIX: Final = "/workspace/"
_CONTROL_CHARACTERS: Final = dict.fromkeys((*range(32), 127))
_IGNORED_CHARACTERS: Final = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)
"""Characters that some file systems ignore in names."""


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
    """Always None: files are deleted, never archived."""
    audience: Audience = EVERYONE
    session_id: str | None = None
    """The session that it is an output of. The session then decides who can see it. None: a client uploaded it."""


Resources = Sequence[JsonObject]
"""The resources of a session, in the form that the API returns."""


class FileReads(Protocol):
    async def file(self, principal: Principal, file_id: str) -> StoredFile:
        """Raises `NotFound`, also if the file has expired."""

    async def files(
        self, principal: Principal, page: Page, *, ids: Sequence[str] | None = None, session_id: str | None = None
    ) -> Sequence[StoredFile]:
        """Return files, newest first. `ids`: only those that exist among these. `session_id`: only its outputs."""

    async def omitted_outputs(self, principal: Principal, session_id: str) -> Sequence[str]:
        """Return the paths in a session's output directory that are not stored, each with the reason. Empty if there is
        no such session.
        """


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
        audience: Audience = EVERYONE,
    ) -> StoredFile:
        """Create the row of a file whose bytes are in the object store. From then on the bytes are retained."""

    async def delete_file(self, principal: Principal, file_id: str) -> None: ...

    async def change_resources(
        self, principal: Principal, session_id: str, change: Callable[[Resources], Resources]
    ) -> Resources:
        """Change the resources of a session, under its lock. The next turn has the files in its tree."""


class FileBytes(Protocol):
    async def store(self, organisation: str, file_id: str, pieces: AsyncIterator[bytes]) -> None:
        """Store the bytes, in pieces of any size. They are removed if no row is committed within an hour."""

    def pieces(self, file: StoredFile) -> AsyncIterator[bytes]: ...


def object_prefix(organisation: str, file_id: str) -> str:
    """Return the location of the bytes in the object store."""
    return f"{organisation}/{FILES_FOLDER}/{file_id}"


def is_git_name(name: str) -> bool:
    """Whether git, on any file system, would treat this name as a repository. Its configuration can run programs."""
    normalized = unicodedata.normalize("NFKC", name.translate(_IGNORED_CHARACTERS)).casefold().rstrip(". ")
    return normalized.partition(":")[0] in {".git", "git~1"}


def safe_file_name(original: str, extension: str = "") -> str:
    """Return a safe file name: the last part of the client's name, without control characters."""
    name = PurePosixPath(original.replace("\\", "/")).name.translate(_CONTROL_CHARACTERS).strip()
    if name in {"", ".", ".."} or is_git_name(name):
        name = f"unnamed{extension}"
    while len(name.encode()) > MAX_NAME_BYTES:
        name = name[1:]
    return name


def resolve_mount_path(file: StoredFile, mount_path: str | None) -> str:
    """Return the path of a file relative to the session's working directory. Raises `InvalidRequest`."""
    if mount_path is None:
        return f"{UPLOADS_DIRECTORY}/{file.id}/{file.filename}"
    path = mount_path.removeprefix(_WORKSPACE_PREFIX)
    steps = path.split("/")
    if path.startswith("/") or any(step in {"", ".", ".."} or is_git_name(step) for step in steps):
        raise InvalidRequest(
            f"mount_path: {mount_path!r} is not a path in the session's working directory",
            field="mount_path",
            help_text=f"Use a path relative to that directory, or below {_WORKSPACE_PREFIX}. The default "
            f"is a path in {UPLOADS_DIRECTORY}.",
        )
    return path
