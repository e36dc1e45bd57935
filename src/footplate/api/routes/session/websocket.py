"""`/v1/sessions/{id}/ws`: streams a session's events over WebSocket, for clients that prefer it to server-sent events.

A request is rejected during the handshake, with the same status and error body as on other routes. A browser cannot set
headers in a WebSocket handshake, so it sends its API key as a subprotocol.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Final, cast

import structlog
from fastapi import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketState

from footplate.api import errors
from footplate.api.auth import authenticate, check_is_api_key, extract_secret
from footplate.api.middleware.request_context import REQUEST_ID_HEADER
from footplate.api.requests.parsing import read_query
from footplate.api.requests.route_permissions import check_route
from footplate.api.routes.session.events import parse_start_cursor
from footplate.api.service_container import acquire_stream, get_services
from footplate.api.streams.key_revocation import wait_for_revocation
from footplate.api.streams.sse_response import ClosableFrames
from footplate.api.streams.websocket_stream import stream_to_socket
from footplate.api.wire.session.events import StreamEvents
from footplate.domain.errors import FootplateError, InvalidRequest, NotFound
from footplate.domain.organisations.principals import Principal

PATH: Final = "/v1/sessions/{session_id}/ws"
TERMINAL_PATH: Final = "/v1/sessions/{session_id}/terminal/ws"
PROTOCOL: Final = "footplate.v1"
KEY_PREFIX: Final = "footplate.key."
"""Prefix of an API key that is sent as a subprotocol."""

log = structlog.get_logger(__name__)


async def stream_socket(socket: WebSocket) -> None:
    await serve_socket(socket, _stream)


async def serve_socket(socket: WebSocket, serve: Callable[[WebSocket, str], Coroutine[None, None, None]]) -> None:
    """Serves a WebSocket with the function, which receives the id of the request. Errors reject the handshake."""
    request_id: str = socket.scope["request_id"]
    try:
        await serve(socket, request_id)
    except FootplateError as error:
        errors.count_refusal(error)
        await refuse_socket(socket, errors.error_response(error, request_id), request_id)
    except Exception:
        log.exception("unexpected error", action="api.failed", request_id=request_id, path=socket.scope["path"])
        if socket.application_state is WebSocketState.CONNECTING:
            await refuse_socket(socket, errors.internal_error_response(request_id), request_id)


async def authenticate_socket(socket: WebSocket, path: str) -> tuple[Principal, str, str]:
    """Checks that the caller may read the route. Returns the caller, its API key, and the id of the session."""
    services = get_services(socket)
    secret = extract_socket_key(socket)
    principal = await services.keys.authenticate(secret)
    await services.limit_guard.check_request(principal)
    session_id: str = socket.path_params["session_id"]
    if "\x00" in session_id:
        raise NotFound("session", session_id)
    await services.reads.check_session_visible(principal, session_id)
    check_route(principal, "GET", path)
    services.quotas.check_streams(principal.id)
    return principal, secret, session_id


async def _stream(socket: WebSocket, request_id: str) -> None:
    services = get_services(socket)
    principal, secret, session_id = await authenticate_socket(socket, PATH)
    query = read_query(socket, StreamEvents)
    cursor = parse_start_cursor(socket.headers.get("last-event-id"), query.after)
    frames = services.tails.frames(
        principal.organisation,
        session_id,
        cursor=cursor,
        deltas=frozenset(query.event_deltas),
        with_extensions=query.extensions,
    )
    with await acquire_stream(services, principal):
        await _serve_frames(socket, frames, request_id, partial(wait_for_revocation, socket, principal, secret))


async def _serve_frames(
    socket: WebSocket,
    frames: AsyncIterator[bytes],
    request_id: str,
    until_revoked: Callable[[], Coroutine[None, None, None]],
) -> None:
    async with aclosing(cast("ClosableFrames", frames)):
        first_frame = await anext(frames, b"")  # as for SSE: open only when the start position is fixed
        try:
            await accept_socket(socket, request_id)
        except OSError:
            return  # the client disconnected
        await stream_to_socket(socket, frames, first_frame=first_frame, until_revoked=until_revoked())


async def accept_socket(socket: WebSocket, request_id: str) -> None:
    offered = socket.scope.get("subprotocols", ())
    await socket.accept(PROTOCOL if PROTOCOL in offered else None, [(REQUEST_ID_HEADER, request_id.encode())])


def extract_socket_key(socket: WebSocket) -> str:
    for offered in socket.scope.get("subprotocols", ()):
        if offered.startswith(KEY_PREFIX):
            return check_is_api_key(str(offered).removeprefix(KEY_PREFIX))
    return extract_secret(socket, changes=True)


async def refuse_unknown_socket(socket: WebSocket) -> None:
    path = socket.scope["path"]
    known = f"WebSockets are at {PATH} and {TERMINAL_PATH}."
    error = errors.UnknownRoute(404, f"There is no WebSocket at {path}.", known)
    request_id: str = socket.scope["request_id"]
    await refuse_socket(socket, errors.error_response(error, request_id), request_id)


async def refuse_socket(socket: WebSocket, response: Response, request_id: str) -> None:
    response.headers[REQUEST_ID_HEADER.decode()] = request_id
    await socket.send_denial_response(response)


async def refuse_plain_http(request: Request) -> Response:
    """Refuses a plain HTTP request. It authenticates first, so that strangers cannot find out which sessions exist."""
    principal = await authenticate(request)
    await get_services(request).limit_guard.check_request(principal)
    await get_services(request).reads.check_session_visible(principal, request.path_params["session_id"])
    check_route(principal, "GET", PATH)
    raise InvalidRequest(
        "This route is a WebSocket, but the request is not a WebSocket handshake.",
        field="upgrade",
        help_text="Connect with ws:// or wss://, or use /events/stream for server-sent events.",
    )


routes: Final[list[BaseRoute]] = [
    Route(PATH, refuse_plain_http, methods=["GET"], include_in_schema=False),
    WebSocketRoute(PATH, stream_socket),
    WebSocketRoute("/{path:path}", refuse_unknown_socket),
]
