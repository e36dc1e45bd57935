"""Authenticates requests by API key. The key is sent as a bearer token (official SDKs) or in the header `x-api-key`
(curl examples, older clients).
"""

from typing import Annotated

import structlog
from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from footplate.api.service_container import get_services
from footplate.domain.errors import Unauthenticated
from footplate.domain.organisations.principals import Principal


async def authenticate(request: Request) -> Principal:
    principal = await get_services(request).keys.authenticate(extract_api_key(request))
    request.state.principal = principal
    structlog.contextvars.bind_contextvars(principal=principal.id)
    return principal


def extract_api_key(request: HTTPConnection) -> str:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        secret = request.headers.get("x-api-key", "")
    if not secret.strip():
        raise Unauthenticated(
            "The request has no API key.",
            help_text="Send an API key as `Authorization: Bearer …` or as `x-api-key`.",
        )
    return secret.strip()


Caller = Annotated[Principal, Depends(authenticate)]
