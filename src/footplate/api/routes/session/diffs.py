"""`/v1/sessions/{id}/diff`: returns the changes to a session's files in one turn, between two events, or since its
start.
"""

import asyncio

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.streams.resource_stream_response import stream_resource
from footplate.api.wire import response_models
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.session import diffs
from footplate.api.wire.session.diffs import PATCH_MEDIA_TYPE, ReadDiff

router = create_router("/v1/sessions/{session_id}/diff", "sessions")


@router.get(
    "",
    response_model=response_models.Diff,
    responses={200: {"content": {PATCH_MEDIA_TYPE: {}}}},
    openapi_extra=describe_request(query=ReadDiff),
)
async def read_diff(request: Request, session_id: str, principal: Caller) -> Response:
    """Compares the snapshots that were taken at two events. Returns a summary of each tree, or streams the patch of one
    tree.
    """
    query = read_query(request, ReadDiff)
    service = get_services(request).diffs
    found = await service.find_diffs(principal, session_id, diffs.parse_diff_request(query))
    if query.format == "json":
        changes = [(diff, await service.list_changes(diff)) for diff in found]
        return await asyncio.to_thread(lambda: json_response(diffs.serialize_diff(session_id, changes)))
    diff = diffs.require_single_diff(found)
    return await stream_resource(service.stream_patch(diff, query.state), media_type=PATCH_MEDIA_TYPE)
