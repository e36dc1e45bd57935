"""`/v1/sessions/{id}/turns`: the status, configuration, usage and result of each turn."""

from fastapi import Request
from starlette.responses import Response

from footplate.api import cursors
from footplate.api.auth import Asking
from footplate.api.openapi import takes
from footplate.api.replies import listing, reply
from footplate.api.requests import read_query
from footplate.api.routing import router_of
from footplate.api.services import services_of
from footplate.api.wire import answers, turns
from footplate.api.wire.lists import NoParameters
from footplate.api.wire.turns import ListTurns

router = router_of("/v1/sessions/{session_id}/turns", "turns")


@router.get("", response_model=answers.Listing[answers.Turn], openapi_extra=takes(query=ListTurns))
async def list_turns(request: Request, session_id: str, principal: Asking) -> Response:
    """Lists turns, newest first."""
    query = read_query(request, ListTurns)
    before = cursors.read_id("turns", query.page)
    rows = await services_of(request).reads.turns(principal, session_id, limit=query.limit + 1, before=before)
    kept = rows[: query.limit]
    next_page = cursors.write_id("turns", kept[-1].id) if len(rows) > query.limit else None
    return listing([turns.answer(row) for row in kept], next_page=next_page)


@router.get("/{turn_id}", response_model=answers.Turn)
async def retrieve_turn(request: Request, session_id: str, turn_id: str, principal: Asking) -> Response:
    read_query(request, NoParameters)
    return reply(turns.answer(await services_of(request).reads.turn(principal, session_id, turn_id)))
