"""Client methods for files: those that messages refer to by id, and the outputs of sessions."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import Deleted, File
from footplate.client.transport import Transport


class Files:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def upload(
        self, filename: str, content: bytes, *, mime_type: str | None = None, **fields: str | int | None
    ) -> File:
        """Uploads a file. Without a `mime_type`, the server infers it from the file name. Pass `expires_in_seconds`,
        `visibility` and `team_id` as keywords.
        """
        file = (filename, content) if mime_type is None else (filename, content, mime_type)
        data = {key: str(value) for key, value in drop_none(**fields).items()}
        form: dict[str, Any] = {"files": {"file": file}, "data": data}
        return File.model_validate(await self._transport.post_form("/v1/files", form))

    async def retrieve(self, file_id: str) -> File:
        return File.model_validate(await self._transport.get(f"/v1/files/{file_id}"))

    def list(self, *, limit: int | None = None, ids: Sequence[str] = (), scope_id: str | None = None) -> Pages[File]:
        """Newest first. `scope_id` is the id of a session: lists only its outputs."""
        params = {"limit": limit, "ids[]": [*ids] or None, "scope_id": scope_id}
        return Pages(self._transport, "/v1/files", File, params)

    async def omitted_outputs(self, session_id: str) -> Sequence[str]:
        """Returns the files in a session's output directory that are not stored, each with the reason."""
        found = await self._transport.get("/v1/files", {"scope_id": session_id, "limit": 1})
        return [str(line) for line in found.get("omitted") or ()]

    def content(self, file_id: str) -> AsyncIterator[bytes]:
        """Yields the file's bytes in chunks."""
        return self._transport.stream_bytes(f"/v1/files/{file_id}/content")

    async def delete(self, file_id: str) -> Deleted:
        return Deleted.model_validate(await self._transport.delete(f"/v1/files/{file_id}"))
