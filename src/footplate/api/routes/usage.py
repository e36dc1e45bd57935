"""`/v1/usage`: returns the tokens, cost and turns of the caller's organisation, computed from the session logs."""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import usage
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.usage import UsageListing, UsageParameters

router = create_router("/v1/usage", "usage")


@router.get("", response_model=UsageListing, openapi_extra=describe_request(query=UsageParameters))
async def read_usage(request: Request, principal: Caller) -> Response:
    """Returns one line for each group, or a single total if no grouping is requested. Turns of deleted sessions are
    not included.
    """
    query = read_query(request, UsageParameters)
    usage_query = query.to_query()
    lines = list(await get_services(request).usage.query_usage(principal, usage_query))
    return json_response(
        usage.serialize_usage_report(usage_query, lines[: query.limit], has_more=len(lines) > query.limit)
    )
