"""Routes of the reference API (Anthropic's managed agents) that this server does not support. Each returns an error
that names the missing feature.

Without these routes, an SDK would receive "not found", as for an object that does not exist. The routes are not in the
OpenAPI document.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from footplate.api.auth import authenticate
from footplate.domain.errors import InvalidRequest

UNSUPPORTED_ROUTES: Final = {
    "work": "/v1/environments/{environment_id}/work",
    "dreams": "/v1/dreams",
    "memory_stores": "/v1/memory_stores",
    "skills": "/v1/skills",
    "tunnels": "/v1/tunnels",
    "user_profiles": "/v1/user_profiles",
    "vaults": "/v1/vaults",
}
"""The unsupported features, and their paths in the reference API."""
_METHODS: Final = ["GET", "POST", "DELETE"]


def _make_refusal(feature: str) -> Callable[[Request], Awaitable[Response]]:
    async def refuse(request: Request) -> Response:
        await authenticate(request)
        raise InvalidRequest(
            f"{feature}: is not supported by this server",
            field=feature,
            help_text="docs/compatibility.md lists the supported parts of the reference API.",
        )

    return refuse


router = Router(
    routes=[
        Route(path, _make_refusal(part), methods=_METHODS, include_in_schema=False)
        for part, root in UNSUPPORTED_ROUTES.items()
        for path in (root, f"{root}/{{rest:path}}")
    ]
)
