"""`/v1/sessions/{id}/resources`: attaches uploaded files to a session. The files are written to the session's working
tree at its next turn.
"""

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import files_and_resources, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.files_and_resources import FileResourceParams, ListResources
from footplate.api.wire.json_responses import json_response, list_response
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.files.uploaded_files import Resources
from footplate.domain.json import JsonObject
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/sessions/{session_id}/resources", "sessions")


@router.post("", response_model=response_models.FileResource, openapi_extra=describe_request(body=FileResourceParams))
async def add_resource(request: Request, session_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, FileResourceParams)
    added = files_and_resources.build_resource(await get_services(request).reads.file(principal, body.file_id), body)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.change_resources(
            principal, session_id, lambda known: files_and_resources.add_resources(known, [added])
        )
        return added, None

    return await execute_change(request, principal, raw, work)


@router.get(
    "",
    response_model=response_models.Listing[response_models.FileResource],
    openapi_extra=describe_request(query=ListResources),
)
async def list_resources(request: Request, session_id: str, principal: Caller) -> Response:
    query = read_query(request, ListResources)
    cursor = pagination.decode_number_cursor("resources", query.page, "asc")
    start = cursor[1] if cursor else 0
    found = (await get_services(request).reads.session(principal, session_id)).resources
    end = start + query.limit
    next_page = pagination.encode_number_cursor("resources", "asc", end) if end < len(found) else None
    return list_response([*found[start:end]], next_page=next_page)


@router.get("/{resource_id}", response_model=response_models.FileResource)
async def retrieve_resource(request: Request, session_id: str, resource_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    session = await get_services(request).reads.session(principal, session_id)
    return json_response(_find_resource(session.resources, resource_id))


@router.post("/{resource_id}", include_in_schema=False)
async def update_resource(request: Request, session_id: str, resource_id: str, principal: Caller) -> Response:
    """Always returns an error: a file resource has no fields to update. The reference API updates only repository
    resources, for which this server uses projects instead.
    """
    session = await get_services(request).reads.session(principal, session_id)
    _find_resource(session.resources, resource_id)
    raise InvalidRequest(
        "authorization_token: is not supported by this server",
        field="authorization_token",
        help_text="A file resource cannot be updated. Delete it and add another one.",
    )


@router.delete("/{resource_id}", response_model=response_models.Deleted)
async def delete_resource(request: Request, session_id: str, resource_id: str, principal: Caller) -> Response:
    """Removes the resource. If its file is already in the working tree, the file is not removed."""
    raw = await read_empty_body(request)

    def remove_resource(known: Resources) -> Resources:
        removed = _find_resource(known, resource_id)
        return [one for one in known if one != removed]

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.change_resources(principal, session_id, remove_resource)
        return {"id": resource_id, "type": "session_resource_deleted"}, None

    return await execute_change(request, principal, raw, work)


def _find_resource(known: Resources, resource_id: str) -> JsonObject:
    for resource in known:
        if resource["id"] == resource_id:
            return resource
    raise NotFound("resource", resource_id)
