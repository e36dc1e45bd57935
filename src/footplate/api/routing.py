"""A route that calls its function directly.

FastAPI describes our routes; it does not have to serve them. Its parameter machinery costs ten times what the
function itself does, and all there is to inject is who asks: the functions read bodies and queries by hand.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from footplate.api.auth import authenticate
from footplate.api.openapi import ERRORS


class DirectRoute(APIRoute):
    """Its function takes the request, the principal, and the path's parameters by name."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Callable[..., Coroutine[Any, Any, Response]] = self.endpoint

        async def handle(request: Request) -> Response:
            principal = await authenticate(request)
            return await endpoint(request=request, principal=principal, **request.path_params)

        return handle


def router_of(prefix: str, tag: str) -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], route_class=DirectRoute, responses=ERRORS)
