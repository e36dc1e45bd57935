"""In-memory fakes of files and their bytes."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from footplate.domain.errors import NotFound
from footplate.domain.files.uploaded_files import Resources, StoredFile
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.sessions.turns import Session


@dataclass
class FileWorld:
    files: dict[str, StoredFile] = field(default_factory=dict)
    content: dict[str, bytes] = field(default_factory=dict)

    def file(self, principal: Principal, file_id: str) -> StoredFile:
        found = self.files.get(file_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("file", file_id)
        return found

    async def store(self, organisation: str, file_id: str, pieces: AsyncIterator[bytes]) -> None:
        del organisation
        self.content[file_id] = b"".join([piece async for piece in pieces])

    async def pieces(self, file: StoredFile) -> AsyncIterator[bytes]:
        yield self.content[file.id]


class HasFiles(Protocol):
    files: FileWorld
    sessions: dict[str, Session]

    def now(self) -> datetime: ...


class FakeFileUnit:
    _files: HasFiles

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
        now = self._files.now()
        file = StoredFile(
            id=file_id,
            organisation=principal.organisation,
            filename=filename,
            mime_type=mime_type,
            size_bytes=size_bytes,
            created_at=now,
            expires_at=None if expires_in is None else now + timedelta(seconds=expires_in),
            audience=audience,
        )
        self._files.files.files[file_id] = file
        return file

    async def change_resources(
        self, principal: Principal, session_id: str, change: Callable[[Resources], Resources]
    ) -> Resources:
        session = self._files.sessions.get(session_id)
        if session is None or session.organisation != principal.organisation:
            raise NotFound("session", session_id)
        new = change(session.resources)
        self._files.sessions[session_id] = replace(session, resources=new)
        return new

    async def delete_file(self, principal: Principal, file_id: str) -> None:
        self._files.files.file(principal, file_id)
        del self._files.files.files[file_id]
