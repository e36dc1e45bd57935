"""`/v1/me`: who the caller is, what it may do, and the end of its own API key."""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller, extract_api_key, extract_secret
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import members, sign_in
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.members import ApiKeyResponse
from footplate.api.wire.sign_in import PrincipalResponse
from footplate.domain.errors import InvalidRequest

router = create_router("/v1/me", "sign_in")
NO_STORE = {"cache-control": "no-store"}


@router.get("", response_model=PrincipalResponse)
async def retrieve_principal(request: Request, principal: Caller) -> Response:
    read_query(request, NoParameters)
    secret = extract_secret(request)
    profile = await get_services(request).browser_sessions.load_profile(principal, secret)
    return json_response(sign_in.serialize_principal(principal, profile, secret), headers=NO_STORE)


@router.delete("/api_key", response_model=ApiKeyResponse)
async def revoke_own_key(request: Request, principal: Caller) -> Response:
    """Revokes the API key of the request, for `footplate logout`. It stops working within 5 seconds."""
    read_query(request, NoParameters)
    services, api_key = get_services(request), extract_api_key(request)
    profile = None if api_key is None else await services.browser_sessions.load_profile(principal, api_key)
    if profile is None or profile.key_id is None:
        raise InvalidRequest(
            "This request was authenticated by a browser session, so there is no API key to revoke.",
            help_text="End the session with `DELETE /v1/browser_sessions/current`.",
        )
    async with services.units.unit(principal, None) as unit:
        revoked = await unit.revoke_api_key(principal, profile.key_id)
    return json_response(members.serialize_key(revoked))
