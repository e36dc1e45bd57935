"""`/v1/sessions/{id}/comments`: comments on lines of a session's diff, which are sent to its agent as one message."""

from dataclasses import replace

from fastapi import Request
from starlette.responses import Response

from footplate import failpoints
from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.session import comments as wire
from footplate.api.wire.session import events as event_wire
from footplate.api.wire.session.comments import (
    CommentCreate,
    CommentsSend,
    CommentUpdate,
    DeletedComment,
    ListComments,
    SentComments,
    SessionComment,
)
from footplate.api.wire.session.diffs import require_single_diff
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs, DiffRequest, Input, UnitOfWork
from footplate.domain.sessions import comments, events
from footplate.domain.sessions.comments import NewComment
from footplate.domain.sessions.turns import WhenBusy

router = create_router("/v1/sessions/{session_id}/comments", "comments")


@router.post("", response_model=SessionComment, openapi_extra=describe_request(body=CommentCreate))
async def add_comment(request: Request, session_id: str, principal: Caller) -> Response:
    """Adds a comment on lines that the diff shows, as a draft. The response has the code of the lines."""
    body, raw = await read_body(request, CommentCreate)
    service = get_services(request).diffs
    diff_request = DiffRequest(turn_id=body.turn_id, project_id=body.project_id)
    diff = require_single_diff(await service.find_diffs(principal, session_id, diff_request))
    code = await service.quote_lines(diff, body.lines)
    comment = NewComment(turn_id=body.turn_id, tree=diff.tree, lines=body.lines, code=code, body=body.body)

    async def work(unit: UnitOfWork) -> ChangeResult:
        added = await unit.add_comment(principal, session_id, comment)
        return wire.serialize_comment(added), _announce(principal, session_id)

    return await execute_change(request, principal, raw, work)


@router.get(
    "", response_model=response_models.Listing[SessionComment], openapi_extra=describe_request(query=ListComments)
)
async def list_comments(request: Request, session_id: str, principal: Caller) -> Response:
    """Lists the comments of a session, drafts of all members included, the oldest first."""
    query = read_query(request, ListComments)
    cursor = pagination.decode_row_cursor("comments", query.page, "asc")
    rows = await get_services(request).reads.comments(
        principal,
        session_id,
        limit=query.limit + 1,
        after=cursor.position if cursor else None,
        is_sent=query.sent,
    )
    page_rows, cursors = pagination.cut_page(
        "comments", rows, lambda row: (row.created_at, row.id), limit=query.limit, order="asc", cursor=cursor
    )
    return list_response([wire.serialize_comment(row) for row in page_rows], next_page=cursors.next_page)


@router.post("/send", response_model=SentComments, openapi_extra=describe_request(body=CommentsSend))
async def send_comments(request: Request, session_id: str, principal: Caller) -> Response:
    """Sends drafts to the agent, all in one message with files, lines and code. Each comment is sent once, however
    often this is repeated.
    """
    body, raw = await read_body(request, CommentsSend)

    async def work(unit: UnitOfWork) -> ChangeResult:
        drafts = await unit.lock_drafts(principal, session_id, body.comment_ids)
        if not drafts:
            return {"data": [], "comments": []}, None
        message = Input(
            type=events.USER_MESSAGE, body=comments.build_message(drafts), when_busy=WhenBusy(body.when_busy)
        )
        accepted = await unit.send(principal, session_id, [message])
        await failpoints.hit("comments_sent")
        sent = await unit.mark_comments_sent(principal, session_id, drafts, accepted.positions[0])
        response: JsonObject = {
            "data": event_wire.serialize_sent_events(accepted),
            "comments": [wire.serialize_comment(one) for one in sent],
        }
        return response, replace(accepted, changes_feed=True)

    return await execute_change(request, principal, raw, work)


@router.get("/{comment_id}", response_model=SessionComment)
async def retrieve_comment(request: Request, session_id: str, comment_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    found = await get_services(request).reads.comment(principal, session_id, comment_id)
    return json_response(wire.serialize_comment(found))


@router.post("/{comment_id}", response_model=SessionComment, openapi_extra=describe_request(body=CommentUpdate))
async def update_comment(request: Request, session_id: str, comment_id: str, principal: Caller) -> Response:
    """Replaces the text of a draft of yours."""
    body, raw = await read_body(request, CommentUpdate)

    async def work(unit: UnitOfWork) -> ChangeResult:
        updated = await unit.update_comment(principal, session_id, comment_id, lambda _: body.body)
        return wire.serialize_comment(updated), _announce(principal, session_id)

    return await execute_change(request, principal, raw, work)


@router.delete("/{comment_id}", response_model=DeletedComment)
async def delete_comment(request: Request, session_id: str, comment_id: str, principal: Caller) -> Response:
    """Deletes a draft of yours. Repeating it has no effect."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.delete_comment(principal, session_id, comment_id)
        return {"id": comment_id, "type": "session_comment_deleted"}, _announce(principal, session_id)

    return await execute_change(request, principal, raw, work)


def _announce(principal: Principal, session_id: str) -> AcceptedInputs:
    return AcceptedInputs(organisation=principal.organisation, session_id=session_id, changes_feed=True)
