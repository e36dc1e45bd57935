"""`/v1/sessions/{id}/terminal`: opens the terminal of a session, connects people to it over WebSocket, and returns
recordings.

All who can see the session may watch. Only callers with the permission `operate` can open the terminal and type. Both
are in the audit trail.
"""

from functools import partial
from typing import Final

from fastapi import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from footplate.api.auth import Caller
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_empty_body, read_query
from footplate.api.requests.route_permissions import check_route
from footplate.api.routes.session.websocket import (
    TERMINAL_PATH,
    accept_socket,
    authenticate_socket,
    refuse_plain_http,
    serve_socket,
)
from footplate.api.routing import create_router
from footplate.api.service_container import acquire_stream, get_services
from footplate.api.streams.key_revocation import wait_for_revocation
from footplate.api.streams.terminal_stream import TerminalConnection
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import list_response
from footplate.api.wire.session import steps
from footplate.api.wire.session.terminals import AttachTerminal, serialize_recording
from footplate.domain import audit
from footplate.domain.errors import Forbidden
from footplate.domain.ports.api import UnitOfWork
from footplate.domain.text.asciicast import MEDIA_TYPE

router = create_router("/v1/sessions/{session_id}", "terminal")
_WRITE_ROUTE: Final = ("POST", "/v1/sessions/{session_id}/terminal")
"""Who may use this route may type."""


@router.post("/terminal", response_model=response_models.Step)
async def open_terminal(request: Request, session_id: str, principal: Caller) -> Response:
    """Opens a shell for a person on the session's terminal, as a step at the front of the queue. Returns the step, or
    the one that is already pending or running.
    """
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        step, accepted = await unit.open_terminal(principal, session_id)
        return steps.serialize_step(step), accepted

    return await execute_change(request, principal, raw, work)


@router.get("/terminal/recordings", response_model=response_models.Listing[response_models.TerminalRecording])
async def list_recordings(request: Request, session_id: str, principal: Caller) -> Response:
    """Lists what people's shells on the session's terminal have shown, oldest first."""
    read_query(request, NoParameters)
    found = await get_services(request).recordings.list(principal.organisation, session_id)
    return list_response([serialize_recording(recording) for recording in found], next_page=None)


@router.get(
    "/terminal/recordings/{recording_id}",
    response_class=Response,
    responses={200: {"description": "The recording, in asciicast format (version 2).", "content": {MEDIA_TYPE: {}}}},
)
async def read_recording(request: Request, session_id: str, recording_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    recordings = get_services(request).recordings
    recording = await recordings.find(principal.organisation, session_id, recording_id)
    headers = {
        "content-length": str(recording.size_bytes),
        "content-disposition": f'attachment; filename="{recording.id}.cast"',
        "x-content-type-options": "nosniff",
    }
    pieces = recordings.pieces(principal.organisation, recording)
    return StreamingResponse(pieces, media_type=MEDIA_TYPE, headers=headers)


async def terminal_socket(socket: WebSocket) -> None:
    await serve_socket(socket, _attach)


async def _attach(socket: WebSocket, request_id: str) -> None:
    services = get_services(socket)
    principal, secret, session_id = await authenticate_socket(socket, TERMINAL_PATH)
    may_write = read_query(socket, AttachTerminal).write
    if may_write:
        try:
            check_route(principal, *_WRITE_ROUTE)
        except Forbidden as error:
            path = socket.scope["path"]
            async with services.units.unit(principal, None) as unit:
                await unit.record(
                    principal, audit.build_refusal_entry("GET", path, error.message, session_id=session_id)
                )
            raise
    with await acquire_stream(services, principal):
        if may_write:  # recorded before a key can have an effect
            async with services.units.unit(principal, None) as unit:
                await unit.record(principal, audit.build_terminal_entry("write", session_id, {}))
        try:
            await accept_socket(socket, request_id)
        except OSError:
            return  # the client disconnected
        until_revoked = partial(
            wait_for_revocation, socket, principal, secret, route=_WRITE_ROUTE if may_write else None
        )
        connection = TerminalConnection(
            socket, services.terminals, principal.organisation, session_id, may_write=may_write
        )
        await connection.serve(until_revoked())


socket_routes: Final[list[BaseRoute]] = [
    Route(TERMINAL_PATH, refuse_plain_http, methods=["GET"], include_in_schema=False),
    WebSocketRoute(TERMINAL_PATH, terminal_socket),
]
