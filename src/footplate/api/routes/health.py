"""Liveness and readiness checks of the API process. The routes need no API key and reveal nothing confidential."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from footplate.api.json_responses import json_response
from footplate.api.openapi import NO_AUTHENTICATION
from footplate.api.service_container import get_services
from footplate.api.wire.response_models import Health

router = APIRouter(tags=["operations"])


@router.get("/livez", response_model=Health, openapi_extra=NO_AUTHENTICATION)
async def livez() -> Response:
    """Reports that the process is running, without checking its dependencies."""
    return json_response({"status": "ok"})


@router.get("/readyz", response_model=Health, openapi_extra=NO_AUTHENTICATION, responses={503: {"model": Health}})
async def readyz(request: Request) -> Response:
    services = await get_services(request).health.check()
    if all(state == "ok" for state in services.values()):
        return json_response({"status": "ok", "parts": {**services}})
    return json_response({"status": "unavailable", "parts": {**services}}, status=503, headers={"retry-after": "1"})
