"""`/v1/events/stream`: streams the changes of all sessions of the organisation that the caller can see."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_query
from footplate.api.routes.session.events import parse_start_cursor, respond_with_stream
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.streams.key_revocation import update_viewer_until_revoked
from footplate.api.wire.session.events import StreamFeed
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.sessions.feed import FeedPositionUnusable, FeedViewer

router = create_router("/v1/events", "events")


@router.get(
    "/stream",
    response_class=Response,
    responses={200: {"description": "Server-sent events, one frame per change.", "content": {"text/event-stream": {}}}},
    openapi_extra=describe_request(query=StreamFeed),
)
async def stream_feed(request: Request, principal: Caller) -> Response:
    """Streams new changes of sessions: created, updated and deleted sessions, their status, errors, approvals, pending
    calls of custom tools, steps, questions and batches. With `Last-Event-ID` or `after`, the stream starts after the
    frame with that ID.
    """
    query = read_query(request, StreamFeed)
    cursor = parse_start_cursor(request.headers.get("last-event-id"), query.after)
    if cursor is not None and cursor.preview_id is not None:
        raise FeedPositionUnusable(cursor.seq)
    viewer = FeedViewer(
        organisation=principal.organisation,
        view=ViewFilter.of(principal),
        types=frozenset(query.types),
        session_id=query.session_id,
        project_id=query.project_id,
    )
    frames = get_services(request).feeds.frames(viewer, after=None if cursor is None else cursor.seq)
    until_revoked = partial(update_viewer_until_revoked, request, principal, viewer)
    return await respond_with_stream(request, principal, frames, until_revoked)
