"""`/v1/sessions/{id}/turns`: lists the turns of a session, with the status, configuration, usage and result of each
turn.
"""

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.session import turns
from footplate.api.wire.session.turns import ListTurns

router = create_router("/v1/sessions/{session_id}/turns", "turns")


@router.get(
    "",
    response_model=response_models.Listing[response_models.Turn],
    openapi_extra=describe_request(query=ListTurns),
)
async def list_turns(request: Request, session_id: str, principal: Caller) -> Response:
    """Lists turns, newest first."""
    query = read_query(request, ListTurns)
    before = pagination.decode_id_cursor("turns", query.page)
    rows = await get_services(request).reads.turns(principal, session_id, limit=query.limit + 1, before=before)
    page_rows = rows[: query.limit]
    next_page = pagination.encode_id_cursor("turns", page_rows[-1].id) if len(rows) > query.limit else None
    return list_response([turns.serialize_turn(row) for row in page_rows], next_page=next_page)


@router.get("/{turn_id}", response_model=response_models.Turn)
async def retrieve_turn(request: Request, session_id: str, turn_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(turns.serialize_turn(await get_services(request).reads.turn(principal, session_id, turn_id)))
