"""The outermost ASGI middleware of the API. It assigns an id to each request, adds the id to the response, and turns
uncaught exceptions into error responses.

The middleware uses ASGI directly, so that streams pass through unbuffered. Starlette's own exception handler runs
outside of all middleware and would respond without the request id.
"""

from typing import Final

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from footplate.api import errors
from footplate.api.middleware.request_telemetry import RequestTelemetry
from footplate.domain import ids

REQUEST_ID_HEADER: Final = b"request-id"

log = structlog.get_logger(__name__)


class RequestContextMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = ids.new_id(ids.REQUEST)
        scope["request_id"] = request_id
        if scope["type"] != "http":
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                await self._app(scope, receive, send)
            return
        header = (REQUEST_ID_HEADER, request_id.encode())
        started = False
        telemetry = RequestTelemetry(scope, request_id)

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                telemetry.record_response(message["status"])
                message["headers"] = [*message["headers"], header]
            await send(message)

        with telemetry.bind_context():
            try:
                if "\x00" in scope["path"]:
                    error = errors.UnknownRoute(
                        404, "This path does not exist.", "Remove the NUL character from the path."
                    )
                    await errors.error_response(error, request_id)(scope, receive, send_with_id)
                else:
                    await self._app(scope, receive, send_with_id)
            except ClientDisconnect:
                log.info(
                    "client disconnected while sending the request", action="api.client_left", request_id=request_id
                )
            except Exception:
                log.exception(
                    "unexpected error",
                    action="api.failed",
                    request_id=request_id,
                    method=scope["method"],
                    path=scope["path"],
                )
                if started:
                    raise
                await errors.internal_error_response(request_id)(scope, receive, send_with_id)
