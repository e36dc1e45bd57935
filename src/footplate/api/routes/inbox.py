"""`/v1/inbox`: what waits for a person, across all sessions: approvals, questions, failures and merge conflicts.

Decisions are sent to the session, as events. Here, items are assigned, snoozed and dismissed.
"""

import asyncio

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import inbox as wire
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.inbox import (
    DismissedInboxItem,
    InboxCountsResponse,
    InboxItemResponse,
    InboxItemUpdate,
    ListInbox,
)
from footplate.api.wire.json_responses import json_response, list_response
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs, UnitOfWork
from footplate.domain.sessions.inbox import InboxKind, InboxQuery, InboxView

router = create_router("/v1/inbox", "inbox")


@router.get(
    "", response_model=response_models.Listing[InboxItemResponse], openapi_extra=describe_request(query=ListInbox)
)
async def list_inbox(request: Request, principal: Caller) -> Response:
    """Lists what waits for a person, the oldest first. An item has what is needed to decide, such as the whole input
    of a call.
    """
    query = read_query(request, ListInbox)
    cursor = pagination.decode_row_cursor("inbox", query.page, "asc")
    rows = await get_services(request).reads.inbox(
        principal,
        InboxQuery(
            view=InboxView(query.view),
            kind=None if query.kind is None else InboxKind(query.kind),
            project_id=query.project_id,
            after=cursor.position if cursor else None,
            limit=query.limit + 1,
        ),
    )
    page_rows, cursors = pagination.cut_page(
        "inbox", rows, lambda row: (row.created_at, row.id), limit=query.limit, order="asc", cursor=cursor
    )
    serialized = await asyncio.to_thread(lambda: [wire.serialize_item(row) for row in page_rows])
    return list_response(serialized, next_page=cursors.next_page)


@router.get("/counts", response_model=InboxCountsResponse)
async def count_inbox(request: Request, principal: Caller) -> Response:
    """Returns the number of items in each view."""
    read_query(request, NoParameters)
    return json_response(wire.serialize_counts(await get_services(request).reads.inbox_counts(principal)))


@router.get("/{item_id}", response_model=InboxItemResponse)
async def retrieve_item(request: Request, item_id: str, principal: Caller) -> Response:
    """Retrieves an item by its ID: that of the event that asks, of the turn that failed, or of the merge conflict."""
    read_query(request, NoParameters)
    item = await get_services(request).reads.inbox_item(principal, item_id)
    return json_response(await asyncio.to_thread(wire.serialize_item, item))


@router.post("/{item_id}", response_model=InboxItemResponse, openapi_extra=describe_request(body=InboxItemUpdate))
async def update_item(request: Request, item_id: str, principal: Caller) -> Response:
    """Assigns an item to a member, or snoozes it for everyone. Repeating it has no effect."""
    body, raw = await read_body(request, InboxItemUpdate)
    update = body.to_update()

    async def work(unit: UnitOfWork) -> ChangeResult:
        item = await unit.update_inbox_item(principal, item_id, update)
        return wire.serialize_item(item), _announce(principal, item.session.id)

    return await execute_change(request, principal, raw, work)


@router.post("/{item_id}/dismiss", response_model=DismissedInboxItem)
async def dismiss_item(request: Request, item_id: str, principal: Caller) -> Response:
    """Dismisses a failure or a merge conflict for everyone. Repeating it has no effect."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        session_id = await unit.dismiss_inbox_item(principal, item_id)
        return {"id": item_id, "type": "inbox_item_dismissed"}, _announce(principal, session_id)

    return await execute_change(request, principal, raw, work)


def _announce(principal: Principal, session_id: str) -> AcceptedInputs:
    return AcceptedInputs(organisation=principal.organisation, session_id=session_id, changes_feed=True)
