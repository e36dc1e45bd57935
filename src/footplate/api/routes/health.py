"""Liveness and readiness checks of the API process. The routes need no API key and reveal nothing confidential."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from footplate.api.openapi import NO_AUTHENTICATION
from footplate.api.service_container import get_services
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.response_models import Health
from footplate.domain.json import JsonObject
from footplate.domain.ports.api import OK

router = APIRouter(tags=["operations"])


@router.get("/livez", response_model=Health, openapi_extra=NO_AUTHENTICATION)
async def livez() -> Response:
    """Reports that the process is running, without checking its dependencies."""
    return json_response({"status": "ok"})


@router.get("/readyz", response_model=Health, openapi_extra=NO_AUTHENTICATION, responses={503: {"model": Health}})
async def readyz(request: Request) -> Response:
    """Reports whether the process can serve requests, and the state of each service that it uses: `ok`, or `degraded`
    if some functions are missing, both with 200; `unavailable` with 503.
    """
    report = await get_services(request).health.check()
    parts: JsonObject = {**report.parts}
    if not report.is_ready:
        return json_response({"status": "unavailable", "parts": parts}, status=503, headers={"retry-after": "1"})
    is_complete = all(state == OK for state in report.parts.values())
    return json_response({"status": "ok" if is_complete else "degraded", "parts": parts})
