"""`/v1/approvals`: lists the tool calls of all sessions that wait for a person's decision. The decision is sent to the
session as a `user.tool_confirmation` event.
"""

import asyncio
from typing import Final

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.policy import approvals, policy_response_models
from footplate.api.wire.policy.approvals import ListApprovals
from footplate.domain.pagination import Page

_MAX_DISPLAYED_CHARS: Final = 2000
"""Characters of each input that a list escapes, so that a list costs no more than other pages."""

router = create_router("/v1/approvals", "approvals")


@router.get(
    "",
    response_model=response_models.Listing[policy_response_models.Approval],
    openapi_extra=describe_request(query=ListApprovals),
)
async def list_approvals(request: Request, principal: Caller) -> Response:
    """Lists pending approvals, the oldest first. Decided approvals are not listed."""
    query = read_query(request, ListApprovals)
    cursor = pagination.decode_row_cursor("approvals", query.page, "asc")
    page = Page(limit=query.limit + 1, order="asc", after=cursor.position if cursor else None)
    rows = await get_services(request).reads.approvals(principal, page, session_id=query.session_id)
    page_rows, page_cursors = pagination.cut_page(
        "approvals", rows, lambda row: (row.created_at, row.id), limit=query.limit, order="asc", cursor=cursor
    )
    serialized = await asyncio.to_thread(
        lambda: [approvals.serialize_approval(row, max_displayed_chars=_MAX_DISPLAYED_CHARS) for row in page_rows]
    )
    return list_response(serialized, next_page=page_cursors.next_page)


@router.get("/{approval_id}", response_model=policy_response_models.Approval)
async def retrieve_approval(request: Request, approval_id: str, principal: Caller) -> Response:
    """Retrieves an approval, pending or decided, by the ID of the event that requested it."""
    read_query(request, NoParameters)
    approval = await get_services(request).reads.approval(principal, approval_id)
    return json_response(await asyncio.to_thread(approvals.serialize_approval, approval))
