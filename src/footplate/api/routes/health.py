"""Liveness and readiness checks. They need no API key and reveal nothing confidential."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from footplate.api.openapi import OPEN
from footplate.api.replies import reply
from footplate.api.services import services_of
from footplate.api.wire.answers import Health

router = APIRouter(tags=["operations"])


@router.get("/livez", response_model=Health, openapi_extra=OPEN)
async def livez() -> Response:
    """Reports that the process is running, without checking its dependencies."""
    return reply({"status": "ok"})


@router.get("/readyz", response_model=Health, openapi_extra=OPEN, responses={503: {"model": Health}})
async def readyz(request: Request) -> Response:
    parts = await services_of(request).health.check()
    if all(state == "ok" for state in parts.values()):
        return reply({"status": "ok", "parts": {**parts}})
    return reply({"status": "unavailable", "parts": {**parts}}, status=503, headers={"retry-after": "1"})
