"""Who asks. Official SDKs send a bearer token; curl examples and older clients an `x-api-key`: both are welcome."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from footplate.api.services import services_of
from footplate.domain.errors import Unauthenticated
from footplate.domain.principals import Principal


async def authenticate(request: Request) -> Principal:
    principal = await services_of(request).keys.authenticate(secret_of(request))
    request.state.principal = principal
    return principal


def secret_of(request: HTTPConnection) -> str:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        secret = request.headers.get("x-api-key", "")
    if not secret.strip():
        raise Unauthenticated(
            "The request carries no API key.",
            help_text="Send it as `Authorization: Bearer …` or as `x-api-key`.",
        )
    return secret.strip()


Asking = Annotated[Principal, Depends(authenticate)]
