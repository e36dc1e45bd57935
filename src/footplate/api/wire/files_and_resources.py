"""Wire models of files and session resources: request bodies, list filters and responses."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from footplate.api.wire.request_base import Body, Id, Parameters, Text, optional_timestamp, timestamp
from footplate.api.wire.visibility import serialize_audience
from footplate.domain import ids
from footplate.domain.errors import InvalidRequest
from footplate.domain.files.uploaded_files import MAX_RESOURCES, Resources, StoredFile, resolve_mount_path
from footplate.domain.json import JsonObject

MAX_IDS: Final = 100


class FileResourceParams(Body):
    """An uploaded file of the organisation, to be placed in the session's tree."""

    type: Literal["file"]
    file_id: Id
    mount_path: Annotated[
        Annotated[Text, StringConstraints(min_length=1, max_length=1024)] | None,
        Field(description="Path in the working directory; default: a path below `.footplate/uploads`."),
    ] = None


FileResources = Annotated[list[FileResourceParams], Field(max_length=MAX_RESOURCES)]


class ListResources(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000
    page: Text | None = None


class ListFiles(Parameters):
    ids: Annotated[list[Id], Field(alias="ids[]", default_factory=list)]
    limit: Annotated[int | None, Field(ge=1, le=1000)] = None
    page: Text | None = None
    scope_id: Annotated[
        Id | None,
        Field(description="A session ID: lists the files that its agent has left in `/mnt/session/outputs`."),
    ] = None


def serialize_file(file: StoredFile) -> JsonObject:
    return {
        "id": file.id,
        "type": "file",
        "filename": file.filename,
        "mime_type": file.mime_type,
        "size_bytes": file.size_bytes,
        "created_at": timestamp(file.created_at),
        "expires_at": optional_timestamp(file.expires_at),
        "downloadable": True,
        "scope": None if file.session_id is None else {"type": "session", "id": file.session_id},
        **serialize_audience(file.audience),
    }


def build_resource(file: StoredFile, params: FileResourceParams) -> JsonObject:
    now = timestamp(datetime.now(UTC))
    return {
        "id": ids.new_id(ids.RESOURCE),
        "type": "file",
        "file_id": file.id,
        "mount_path": resolve_mount_path(file, params.mount_path),
        "created_at": now,
        "updated_at": now,
    }


def add_resources(existing: Resources, new: Sequence[JsonObject]) -> Resources:
    """Adds resources. Raises `InvalidRequest` if two mount paths collide or there are too many resources."""
    combined = [*existing, *new]
    mount_paths: list[str] = []
    for mount_path in (str(one["mount_path"]) for one in combined):
        if any(f"{mount_path}/".startswith(f"{other}/") or other.startswith(f"{mount_path}/") for other in mount_paths):
            raise InvalidRequest(
                f"mount_path: {mount_path!r} collides with another resource of the session",
                field="mount_path",
                help_text="Choose another mount_path. It must not be equal to or inside another one.",
            )
        mount_paths.append(mount_path)
    if len(combined) > MAX_RESOURCES:
        raise InvalidRequest(f"resources: a session can have at most {MAX_RESOURCES} resources", field="resources")
    return combined
