"""A route that calls its function directly.

FastAPI describes our routes; it does not have to serve them. Its parameter machinery costs ten times what the
function itself does, and all there is to inject is who asks: the functions read bodies and queries by hand.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from footplate.api.auth import authenticate
from footplate.api.openapi import ERRORS
from footplate.api.services import services_of


class DirectRoute(APIRoute):
    """Its function takes the request, the principal, and the path's parameters by name."""

    endpoint: Callable[..., Coroutine[Any, Any, Response]]

    def __init__(self, *described: Any, **more: Any) -> None:
        super().__init__(*described, **more)
        self.app = self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        principal = await authenticate(request)
        reservation = services_of(request).quotas.open_reservation(principal.id)
        scope["body_reservation"] = reservation
        try:
            response = await self.endpoint(request=request, principal=principal, **request.path_params)
            await response(scope, receive, send)
        finally:
            reservation.release()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As Starlette does it: we have no routers within routers, which FastAPI would look for each time."""
        match, child_scope = Route.matches(self, scope)
        child_scope["route"] = self
        return match, child_scope


def router_of(prefix: str, tag: str) -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], route_class=DirectRoute, responses=ERRORS)
