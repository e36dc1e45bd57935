"""`/v1/limits`: lists the limits of the organisation and its members with their use, and changes them."""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import limits, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import list_response
from footplate.api.wire.limits import LimitResponse, LimitUpdate
from footplate.domain.organisations.limits import LimitName, LimitUse
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/limits", "limits")


@router.get("", response_model=response_models.Listing[LimitResponse])
async def list_limits(request: Request, principal: Caller) -> Response:
    """Lists all limits of the organisation, those of members that have their own, and those of the caller."""
    read_query(request, NoParameters)
    found = await get_services(request).limit_guard.read_limits(principal)
    return list_response([limits.serialize_limit(limit) for limit in found], next_page=None)


@router.post("", response_model=LimitResponse, openapi_extra=describe_request(body=LimitUpdate))
async def set_limit(request: Request, principal: Caller) -> Response:
    """Sets or removes a limit. It takes effect within 5 seconds on every replica, and cannot exceed the operator's."""
    body, raw = await read_body(request, LimitUpdate)
    name, scope = LimitName(body.name), body.stored_scope
    body.check_value()

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.set_limit(principal, name, scope, body.value)
        return limits.serialize_limit(LimitUse(name, scope, body.value, own_value=body.value)), None

    return await execute_change(request, principal, raw, work)
