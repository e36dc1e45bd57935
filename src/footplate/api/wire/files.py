"""Files on the wire: the list's filters, the answer."""

from typing import Annotated, Final

from pydantic import Field

from footplate.api.wire.base import Id, Parameters, Text, optional_timestamp, timestamp
from footplate.domain.files import StoredFile
from footplate.domain.json import JsonObject

MOST_IDS: Final = 100


class ListFiles(Parameters):
    ids: Annotated[list[Id], Field(alias="ids[]", default_factory=list)]
    limit: Annotated[int | None, Field(ge=1, le=1000)] = None
    page: Text | None = None
    scope_id: Annotated[Id | None, Field(description="Of a session. No file belongs to one: the list is empty.")] = None


def answer(file: StoredFile) -> JsonObject:
    return {
        "id": file.id,
        "type": "file",
        "filename": file.filename,
        "mime_type": file.mime_type,
        "size_bytes": file.size_bytes,
        "created_at": timestamp(file.created_at),
        "expires_at": optional_timestamp(file.expires_at),
        "downloadable": True,
        "scope": None,
    }
