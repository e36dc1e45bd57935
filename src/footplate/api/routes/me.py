"""`/v1/me`: who the caller is, and what it may do."""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller, extract_secret
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import sign_in
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.sign_in import PrincipalResponse

router = create_router("/v1/me", "sign_in")
NO_STORE = {"cache-control": "no-store"}


@router.get("", response_model=PrincipalResponse)
async def retrieve_principal(request: Request, principal: Caller) -> Response:
    read_query(request, NoParameters)
    secret = extract_secret(request)
    profile = await get_services(request).browser_sessions.load_profile(principal, secret)
    return json_response(sign_in.serialize_principal(principal, profile, secret), headers=NO_STORE)
