"""`/v1/usage`: totals of tokens, cost and turns of the caller's organisation, computed from the log."""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.replies import json_response
from footplate.api.requests import read_query
from footplate.api.routing import router_of
from footplate.api.services import get_services
from footplate.api.wire import usage
from footplate.api.wire.usage import AskUsage, UsageListing

router = router_of("/v1/usage", "usage")


@router.get("", response_model=UsageListing, openapi_extra=describe_request(query=AskUsage))
async def read_usage(request: Request, principal: Caller) -> Response:
    """Returns one line for each group, or a single total without grouping. Turns of deleted sessions are not
    included.
    """
    query = read_query(request, AskUsage)
    usage_query = query.to_query()
    lines = list(await get_services(request).usage.usage(principal, usage_query))
    return json_response(usage.answer(usage_query, lines[: query.limit], has_more=len(lines) > query.limit))
