"""Converts exceptions into error responses. A request that the caller has no permission for is also recorded in the
audit trail.
"""

from http import HTTPStatus

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from footplate.api import errors
from footplate.api.service_container import get_services
from footplate.domain import audit
from footplate.domain.errors import FootplateError, Forbidden
from footplate.domain.organisations.principals import Principal

log = structlog.get_logger(__name__)


async def on_footplate_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, FootplateError)
    request_id: str = request.scope["request_id"]
    if errors.http_status(error) == HTTPStatus.INTERNAL_SERVER_ERROR:
        # The caller sees only refusals and temporary failures.
        raise error
    if isinstance(error, Forbidden):
        await _record_refusal(request, error)
    errors.count_refusal(error)
    return errors.error_response(error, request_id)


async def _record_refusal(request: Request, error: Forbidden) -> None:
    """Uses its own transaction, because the request's transaction was rolled back."""
    principal: Principal | None = getattr(request.state, "principal", None)
    if principal is None:
        return
    session_id = request.path_params.get("session_id")
    entry = audit.build_refusal_entry(request.method, request.url.path, error.message, session_id=session_id)
    try:
        async with get_services(request).units.unit(principal, None) as unit:
            await unit.record(principal, entry)
    except FootplateError as failure:  # the request is refused all the same, and the log line remains
        log.warning(
            "refused request could not be recorded in the audit trail",
            action="audit.refusal_lost",
            reason=failure.message,
        )


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Handles the router's exceptions: an unknown path, or a method that the path does not support."""
    assert isinstance(error, HTTPException)
    operation = f"{request.method} {request.url.path}"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        route_error = errors.UnknownRoute(
            405, f"The server does not support {operation}.", "/openapi.json lists the methods of this path."
        )
    else:
        route_error = errors.UnknownRoute(404, f"There is no route for {operation}.", "/openapi.json lists all routes.")
    response = errors.error_response(route_error, request.scope["request_id"])
    response.headers.update(error.headers or {})
    return response
