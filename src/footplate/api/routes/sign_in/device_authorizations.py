"""`/v1/device_authorizations`: lets programs such as `footplate login` sign in, after a person has approved it in the
dashboard.
"""

from typing import Final

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller, extract_secret
from footplate.api.openapi import describe_request
from footplate.api.requests.own_origin import own_base_url
from footplate.api.requests.parsing import read_body, read_query
from footplate.api.routes.sign_in.browser_sessions import describe_browser
from footplate.api.routes.sign_in.me import NO_STORE
from footplate.api.routing import OpenRoute, create_router
from footplate.api.service_container import get_services
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.device_authorizations import (
    DeviceAuthorizationCreate,
    DeviceAuthorizationResponse,
    DeviceDecision,
    DeviceKeyResponse,
    DeviceTokenRequest,
    NewDeviceAuthorizationResponse,
    serialize_authorization,
    serialize_issued_key,
)
from footplate.api.wire.json_responses import json_response
from footplate.domain.organisations.device_authorization import INTERVAL_SECONDS, LIFETIME_SECONDS, normalize_user_code

_PAGE: Final = "/device"

router = create_router("", "sign_in")
_programs = create_router("/v1/device_authorizations", "sign_in", OpenRoute)
_decisions = create_router("/v1/device_authorizations", "sign_in")


@_programs.post(
    "",
    response_model=NewDeviceAuthorizationResponse,
    openapi_extra=describe_request(body=DeviceAuthorizationCreate, needs_key=False),
)
async def begin(request: Request) -> Response:
    """Starts the sign-in of a program. The program shows `user_code` and asks for its key with `device_code`."""
    body, _ = await read_body(request, DeviceAuthorizationCreate)
    read_query(request, NoParameters)
    new = await get_services(request).device_authorizations.begin(body.visible_name, describe_browser(request))
    page = f"{own_base_url(request)}{_PAGE}"
    return json_response(
        {
            "type": "device_authorization_started",
            "device_code": new.device_code,
            "user_code": new.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={new.user_code}",
            "interval": INTERVAL_SECONDS,
            "expires_in": LIFETIME_SECONDS,
        },
        headers=NO_STORE,
    )


@_programs.post(
    "/token",
    response_model=DeviceKeyResponse,
    openapi_extra=describe_request(body=DeviceTokenRequest, needs_key=False),
)
async def fetch_key(request: Request) -> Response:
    """Fetches the key of an approved program, once. Until then, the error has the code `authorization_pending`."""
    body, _ = await read_body(request, DeviceTokenRequest)
    read_query(request, NoParameters)
    devices = get_services(request).device_authorizations
    issued = await devices.fetch_key(body.device_code, describe_browser(request))
    return json_response(serialize_issued_key(issued), headers=NO_STORE)


@_decisions.get("/{user_code}", response_model=DeviceAuthorizationResponse)
async def retrieve(request: Request, user_code: str, principal: Caller) -> Response:
    """Describes the program that shows this code, before a person decides. Needs a browser session."""
    read_query(request, NoParameters)
    devices = get_services(request).device_authorizations
    found = await devices.find(principal, extract_secret(request), user_code)
    address = describe_browser(request).address
    return json_response(serialize_authorization(normalize_user_code(user_code), found, address), headers=NO_STORE)


@_decisions.post(
    "/{user_code}", response_model=DeviceAuthorizationResponse, openapi_extra=describe_request(body=DeviceDecision)
)
async def decide(request: Request, user_code: str, principal: Caller) -> Response:
    """Lets the program sign in as the caller, with the caller's roles, or denies it. Needs a browser session."""
    body, _ = await read_body(request, DeviceDecision)
    read_query(request, NoParameters)
    devices = get_services(request).device_authorizations
    decided = await devices.decide(principal, extract_secret(request, changes=True), user_code, body.decision)
    address = describe_browser(request).address
    return json_response(serialize_authorization(normalize_user_code(user_code), decided, address), headers=NO_STORE)


router.routes.extend([*_programs.routes, *_decisions.routes])
