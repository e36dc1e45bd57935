"""Stores files: a row in the database, and the bytes in the object store.

An upload first writes a deletion record, then the bytes, so that a crash leaves no orphaned bytes. One transaction then
inserts the row and removes the deletion record. A deletion removes the row and adds a deletion record in one
transaction. A background job removes the bytes of all due deletion records.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import fields
from datetime import timedelta
from typing import Final

import structlog

from footplate import failpoints
from footplate.domain.errors import InvalidRequest, NotFound, Permanent, Unavailable
from footplate.domain.files.uploaded_files import OBJECT_PART_BYTES, FileUnit, Resources, StoredFile, object_prefix
from footplate.domain.organisations.limits import LimitName
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience, ViewFilter
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.object_store import Objects
from footplate.store.resources.limits import LimitUnitOfWork
from footplate.store.resources.members import check_audience
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

_MAX_UPLOAD_TIME: Final = timedelta(hours=1)
_BATCH_SIZE: Final = 100


def view_arguments(principal: Principal) -> tuple[list[str] | None, list[str] | None, list[str] | None]:
    """Returns the arguments of queries that say which files the principal can see."""
    view = ViewFilter.of(principal)
    return view.file_audiences, view.audiences, view.project_ids


def load_file(row: Row) -> StoredFile:
    values = {field.name: row[field.name] for field in fields(StoredFile) if field.name != "audience"}
    return StoredFile(**values, audience=Audience.load(row["visible_to"]))


class FileUnitOfWork(LimitUnitOfWork, FileUnit):
    """The methods of a unit of work that change files."""

    _connection: Connection

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
        await check_audience(self._connection, principal, audience)
        pending_deletion = await self._connection.fetchval(SQL["take_note_away"], file_id, principal.organisation)
        if pending_deletion is None:  # the deletion record is due: the bytes are removed, or about to be
            raise Unavailable("The upload took longer than an hour.", help_text="Upload the file again.")
        await self.check_limit(principal, LimitName.STORED_BYTES, adding=size_bytes)
        row = await self._connection.fetchrow(
            *bind(
                "insert_file",
                id=file_id,
                organisation=principal.organisation,
                filename=filename,
                mime_type=mime_type,
                size_bytes=size_bytes,
                expires_in=expires_in,
                owner=principal.id,
                visible_to=audience.dump(),
            )
        )
        assert row is not None
        return load_file(row)

    async def delete_file(self, principal: Principal, file_id: str) -> None:
        arguments = view_arguments(principal)
        if await self._connection.fetchval(SQL["delete_file"], file_id, principal.organisation, *arguments) is None:
            raise NotFound("file", file_id)

    async def change_resources(
        self, principal: Principal, session_id: str, change: Callable[[Resources], Resources]
    ) -> Resources:
        row = await self._connection.fetchrow(SQL["lock_resources"], session_id, principal.organisation)
        if row is None:
            raise NotFound("session", session_id)
        if row["archived_at"] is not None or row["ended_at"] is not None:
            has_ended = row["ended_at"] is not None
            raise InvalidRequest(
                f"Session {session_id!r} {'has ended' if has_ended else 'is archived'} and cannot be changed.",
                help_text=f"Fork it to go on: `footplate fork {session_id}`." if has_ended else "Create a new session.",
            )
        new = change(row["resources"])
        await self._connection.execute(SQL["update_resources"], session_id, [*new])
        return new


class FileContents:
    """Reads and writes the bytes of files in the object store. Each part of a file is written under a unique key."""

    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects

    async def store(self, organisation: str, file_id: str, pieces: AsyncIterator[bytes]) -> None:
        await self._database.fetch("note_upload", file_id, organisation, _MAX_UPLOAD_TIME)
        await failpoints.hit("upload_noted")
        number, buffer = 0, bytearray()
        async for chunk in pieces:
            buffer += chunk
            while len(buffer) >= OBJECT_PART_BYTES:
                await self._create_part(organisation, file_id, number, bytes(buffer[:OBJECT_PART_BYTES]))
                del buffer[:OBJECT_PART_BYTES]
                number += 1
        if buffer or not number:
            await self._create_part(organisation, file_id, number, bytes(buffer))
        await failpoints.hit("upload_stored")

    async def _create_part(self, organisation: str, file_id: str, number: int, content: bytes) -> None:
        if not await self._objects.create(_part_key(organisation, file_id, number), content):
            raise Permanent(f"Part {number} of the new file {file_id!r} already exists in the object store.")

    async def pieces(self, file: StoredFile) -> AsyncIterator[bytes]:
        async for piece in self.read_parts(file.organisation, file.id, file.size_bytes):
            yield piece

    async def read_parts(self, organisation: str, file_id: str, size_bytes: int) -> AsyncIterator[bytes]:
        for number in range(max(1, -(-size_bytes // OBJECT_PART_BYTES))):
            try:
                async for piece in self._objects.read_chunks(_part_key(organisation, file_id, number)):
                    yield piece
            except FileNotFoundError:  # deleted since its row was read
                raise NotFound("file", file_id) from None

    async def read(self, organisation: str, file_id: str) -> tuple[StoredFile, bytes]:
        """Reads a whole file. The file must belong to `organisation`, the organisation of the turn."""
        file = await self.find(organisation, file_id)
        return file, b"".join([piece async for piece in self.pieces(file)])

    async def find(self, organisation: str, file_id: str) -> StoredFile:
        row = await self._database.fetchrow("file", file_id, organisation, None, None, None)
        if row is None:
            raise NotFound("file", file_id)
        return load_file(row)


class FileCleanup:
    """Background job that deletes expired files and removes the bytes of deleted ones."""

    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects

    async def run(self) -> None:
        await self._database.fetch("expire_files", _BATCH_SIZE)
        for row in await self._database.fetch("removals_due", _BATCH_SIZE):
            try:
                await self._objects.delete_folder(object_prefix(row["organisation"], row["file_id"]))
                await self._database.fetch("removed", row["file_id"])
            except (Unavailable, OSError) as error:  # the next sweep retries; continue with the others
                log.warning(
                    "content of a deleted file could not be removed; will retry",
                    action="file.late",
                    file=row["file_id"],
                    reason=repr(error),
                )


def _part_key(organisation: str, file_id: str, number: int) -> str:
    return f"{object_prefix(organisation, file_id)}/{number:04d}"
