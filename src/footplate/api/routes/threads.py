"""`/v1/sessions/{id}/threads`: the primary one, whose events are the session's own. There are no others yet."""

from fastapi import Request
from starlette.responses import Response

from footplate.api import cursors
from footplate.api.auth import Asking
from footplate.api.event_stream import EventStream
from footplate.api.openapi import takes
from footplate.api.replies import listing, reply
from footplate.api.requests import read_nothing, read_query
from footplate.api.routes.events import page_of, stream_of
from footplate.api.routing import router_of
from footplate.api.services import services_of
from footplate.api.wire import answers, threads
from footplate.api.wire.events import StreamEvents
from footplate.api.wire.lists import NoParameters
from footplate.api.wire.threads import ListThreadEvents, ListThreads
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.principals import Principal
from footplate.domain.services import EventPage
from footplate.domain.threads import primary_id
from footplate.domain.turns import Session

router = router_of("/v1/sessions/{session_id}/threads", "threads")


@router.get("", response_model=answers.Listing[answers.Thread], openapi_extra=takes(query=ListThreads))
async def list_threads(request: Request, session_id: str, principal: Asking) -> Response:
    query = read_query(request, ListThreads)
    cursors.read_id("threads", query.page)  # there is never a second page, hence no cursor of this list
    session = await services_of(request).reads.session(principal, session_id)
    wanted = not query.statuses or session.status.value in query.statuses
    return listing([threads.answer(session)] if wanted and query.page is None else [], next_page=None)


@router.get("/{thread_id}", response_model=answers.Thread)
async def retrieve_thread(request: Request, session_id: str, thread_id: str, principal: Asking) -> Response:
    read_query(request, NoParameters)
    return reply(threads.answer(await _session(request, principal, session_id, thread_id)))


@router.post("/{thread_id}/archive", include_in_schema=False)
async def archive_thread(request: Request, session_id: str, thread_id: str, principal: Asking) -> Response:
    """Refused by its name, as the reference has it: a primary thread goes with its session."""
    await read_nothing(request)
    await _session(request, principal, session_id, thread_id)
    raise InvalidRequest(
        "thread_id: the primary thread is archived with its session",
        field="thread_id",
        help_text="Archive the session instead.",
    )


@router.get(
    "/{thread_id}/events", response_model=answers.Listing[answers.Event], openapi_extra=takes(query=ListThreadEvents)
)
async def list_thread_events(request: Request, session_id: str, thread_id: str, principal: Asking) -> Response:
    """Oldest first."""
    query = read_query(request, ListThreadEvents)
    session = await _session(request, principal, session_id, thread_id)
    cursor = cursors.read_number("events", query.page, "asc")
    page = EventPage(limit=query.limit + 1, order="asc", after_seq=cursor[1] if cursor else None)
    return await page_of(request, principal, session.id, page)


@router.get(
    "/{thread_id}/stream",
    response_class=Response,
    responses={200: {"description": "Server-sent events, one frame each.", "content": {"text/event-stream": {}}}},
    openapi_extra=takes(query=StreamEvents),
)
async def stream_thread_events(request: Request, session_id: str, thread_id: str, principal: Asking) -> EventStream:
    """As the stream of the session's events."""
    query = read_query(request, StreamEvents)
    session = await _session(request, principal, session_id, thread_id)
    return await stream_of(request, principal, session, query)


async def _session(request: Request, principal: Principal, session_id: str, thread_id: str) -> Session:
    """The session, if the thread is its own."""
    session = await services_of(request).reads.session(principal, session_id)
    if thread_id != primary_id(session.id):
        raise NotFound("thread", thread_id)
    return session
