"""A FastAPI route that calls its endpoint function directly, without FastAPI's parameter injection.

The injection costs ten times as much as the endpoint itself. Endpoints need only the principal (the authenticated
caller), and read the body and the query string themselves. FastAPI is used only to describe the routes in the OpenAPI
document.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from footplate.api.auth import authenticate
from footplate.api.openapi import ERROR_RESPONSES
from footplate.api.requests.route_permissions import check_route
from footplate.api.service_container import get_services


class DirectRoute(APIRoute):
    """Calls its endpoint with the request, the principal, and the path parameters by name."""

    endpoint: Callable[..., Coroutine[Any, Any, Response]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app = self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        principal = await authenticate(request)
        services = get_services(request)
        await services.limit_guard.check_request(principal)
        if "session_id" in request.path_params:
            # Before the role, so that a session that is hidden looks like one that does not exist.
            await services.reads.check_session_visible(principal, request.path_params["session_id"])
        check_route(principal, request.method, self.path)
        await self._call(request, send, principal.id, principal=principal)

    async def _call(self, request: Request, send: Send, reservation_key: str, **arguments: Any) -> None:
        """Calls the endpoint. The memory for the body counts for `reservation_key`."""
        reservation = get_services(request).quotas.open_reservation(reservation_key)
        request.scope["body_reservation"] = reservation
        try:
            response = await self.endpoint(request=request, **arguments, **request.path_params)
            await response(request.scope, request.receive, send)
        finally:
            reservation.release()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Matches as Starlette does. FastAPI would search for nested routers on every request, and there are none."""
        match, child_scope = Route.matches(self, scope)
        child_scope["route"] = self
        return match, child_scope


class SignedRoute(DirectRoute):
    """Calls its endpoint without a principal: the endpoint verifies the signature of the request. All such requests
    share the memory for the bodies of one API key.
    """

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._call(Request(scope, receive, send), send, "signed requests")


class OpenRoute(DirectRoute):
    """Calls its endpoint without a principal: everyone may call it, for example to sign in."""

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._call(Request(scope, receive, send), send, "open requests")


def create_router(prefix: str, tag: str, route_class: type[DirectRoute] = DirectRoute) -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], route_class=route_class, responses=ERROR_RESPONSES)
