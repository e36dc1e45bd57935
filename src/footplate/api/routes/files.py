"""`/v1/files`: uploads, lists, downloads and deletes files, including the outputs of sessions. Messages and session
resources refer to files by id.
"""

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.file_upload import read_declared_size, receive_upload
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_empty_body, read_query
from footplate.api.requests.shell_modes import EnvironmentLoader, check_shell_modes
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import files_and_resources, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.files_and_resources import MAX_IDS, ListFiles
from footplate.api.wire.json_responses import json_response, list_response
from footplate.domain import ids
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json
from footplate.domain.organisations.limits import OrganisationLimitExceeded
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import Input, UnitOfWork

router = create_router("/v1/files", "files")

_UPLOAD_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "additionalProperties": False,
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "expires_in_seconds": {"type": "integer", "minimum": 3600, "maximum": 7_776_000},
                        "visibility": {"type": "string", "enum": ["private", "team", "organisation"]},
                        "team_id": {"type": "string"},
                    },
                }
            }
        },
    }
}
_DEFAULT_LIMIT: Final = 20


@router.post("", response_model=response_models.File, openapi_extra=_UPLOAD_BODY)
async def upload_file(request: Request, principal: Caller) -> Response:
    read_query(request, NoParameters)
    services = get_services(request)
    if declared_size := read_declared_size(request):
        await services.limit_guard.check_stored_bytes(principal, declared_size)
    async with receive_upload(request) as upload:
        file_id, refusal = ids.new_id(ids.FILE), None
        try:
            await services.limit_guard.check_stored_bytes(principal, upload.size)
        except OrganisationLimitExceeded as error:
            refusal = error
        else:
            # Stored before the transaction opens. If it does not commit, the bytes are removed again.
            await services.files.store(principal.organisation, file_id, upload.chunks())

        async def work(unit: UnitOfWork) -> ChangeResult:
            if refusal is not None:  # not for a retry, which gets the response of its first attempt
                raise refusal
            file = await unit.create_file(
                principal,
                file_id=file_id,
                filename=upload.filename,
                mime_type=upload.mime_type,
                size_bytes=upload.size,
                expires_in=upload.expires_in,
                audience=upload.audience,
            )
            return files_and_resources.serialize_file(file), None

        return await execute_change(request, principal, upload.identity, work)


@router.get(
    "",
    response_model=response_models.FileListing,
    openapi_extra=describe_request(query=ListFiles),
)
async def list_files(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListFiles)
    reads = get_services(request).reads
    requested_ids = [*dict.fromkeys(query.ids)]
    if requested_ids and (query.page is not None or query.limit is not None):
        raise InvalidRequest(
            "ids: cannot be combined with page or limit", field="ids", help_text="Use either ids or page and limit."
        )
    if len(requested_ids) > MAX_IDS:
        raise InvalidRequest(f"ids: accepts at most {MAX_IDS} ids", field="ids")
    cursor = pagination.decode_row_cursor("files", query.page, "desc")
    scope_id = query.scope_id
    omitted: list[Json] | None = None if scope_id is None else [*await reads.omitted_outputs(principal, scope_id)]
    if requested_ids:
        rows = await reads.files(principal, Page(limit=MAX_IDS), ids=requested_ids, session_id=scope_id)
        return list_response([files_and_resources.serialize_file(row) for row in rows], next_page=None, omitted=omitted)
    limit = query.limit or _DEFAULT_LIMIT
    page = Page(limit=limit + 1, after=cursor.position if cursor else None)
    rows = await reads.files(principal, page, session_id=scope_id)
    page_rows, page_cursors = pagination.cut_page(
        "files", rows, lambda row: (row.created_at, row.id), limit=limit, order="desc", cursor=cursor
    )
    return list_response(
        [files_and_resources.serialize_file(row) for row in page_rows],
        next_page=page_cursors.next_page,
        omitted=omitted,
    )


@router.get("/{file_id}", response_model=response_models.File)
async def retrieve_file(request: Request, file_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(files_and_resources.serialize_file(await get_services(request).reads.file(principal, file_id)))


@router.get(
    "/{file_id}/content",
    response_class=Response,
    responses={200: {"description": "The content of the file, as it was uploaded.", "content": {"*/*": {}}}},
)
async def read_file(request: Request, file_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    services = get_services(request)
    file = await services.reads.file(principal, file_id)
    chunks = services.files.pieces(file)
    first = await anext(chunks, b"")  # a missing file must fail before the response starts
    headers = {
        "content-length": str(file.size_bytes),
        "content-disposition": f"attachment; filename*=utf-8''{quote(file.filename, safe='')}",
        "x-content-type-options": "nosniff",
    }
    return StreamingResponse(_chain(first, chunks), media_type=file.mime_type, headers=headers)


@router.delete("/{file_id}", response_model=response_models.Deleted)
async def delete_file(request: Request, file_id: str, principal: Caller) -> Response:
    """Deletes the file. Copies that sessions received earlier remain until their sessions are deleted."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.delete_file(principal, file_id)
        return {"id": file_id, "type": "file_deleted"}, None

    return await execute_change(request, principal, raw, work)


async def check_input_references(
    services: ApiServices,
    principal: Principal,
    inputs: list[Input],
    load_environment: EnvironmentLoader | None = None,
) -> None:
    """Raises `NotFound` for a file that the organisation does not have, and `InvalidRequest` for a directory that the
    caller may not name, or a shell mode that the server does not have or the environment does not allow.
    """
    modes = [("overrides.shell_mode", entry.overrides.get("shell_mode")) for entry in inputs]
    await check_shell_modes(services, modes, load_environment)
    for entry in inputs:
        services.named_roots.check_context(principal.organisation, entry.context)
    file_ids = [file_id for entry in inputs for file_id in _referenced_file_ids(entry.body.get("content"))]
    for file_id in dict.fromkeys(file_ids):
        await services.reads.file(principal, file_id)


def _referenced_file_ids(content: Json) -> list[str]:
    blocks = content if isinstance(content, list) else []
    sources = [block.get("source") for block in blocks if isinstance(block, dict)]
    return [str(source["file_id"]) for source in sources if isinstance(source, dict) and source.get("type") == "file"]


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk
