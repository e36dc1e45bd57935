"""`/v1/sessions/{id}/threads`: lists the threads of a session and their events. A session has one primary thread and
one thread for each subagent.
"""

from dataclasses import dataclass

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_empty_body, read_query
from footplate.api.routes.session.events import open_event_stream, respond_with_page
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.streams.sse_response import EventStream
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.session import threads
from footplate.api.wire.session.events import MAX_EVENTS, StreamEvents
from footplate.api.wire.session.threads import ListThreadEvents, ListThreads
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import EventPage
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.threads import LIFECYCLE_EVENTS, Thread, load_threads, primary_id
from footplate.domain.sessions.turns import Session

router = create_router("/v1/sessions/{session_id}/threads", "threads")


@dataclass(frozen=True, slots=True)
class _ThreadInSession:
    session: Session
    thread: Thread | None
    """None for the primary thread."""

    @property
    def id(self) -> str | None:
        return self.thread.id if self.thread is not None else None

    def serialize(self) -> JsonObject:
        if self.thread is None:
            return threads.serialize_primary_thread(self.session)
        return threads.serialize_subagent_thread(self.session, self.thread)


@router.get(
    "",
    response_model=response_models.Listing[response_models.Thread],
    openapi_extra=describe_request(query=ListThreads),
)
async def list_threads(request: Request, session_id: str, principal: Caller) -> Response:
    """Lists the primary thread first, then the threads of subagents, oldest first."""
    query = read_query(request, ListThreads)
    after = pagination.decode_id_cursor("threads", query.page)
    session = await get_services(request).reads.session(principal, session_id)
    serialized = [threads.serialize_primary_thread(session)]
    serialized += [
        threads.serialize_subagent_thread(session, one)
        for one in await _load_subagent_threads(request, principal, session)
    ]
    thread_ids = [str(one["id"]) for one in serialized]
    remaining = (
        serialized[thread_ids.index(after) + 1 :] if after in thread_ids else serialized if after is None else []
    )
    matching = [one for one in remaining if not query.statuses or one["status"] in query.statuses]
    page = matching[: query.limit]
    has_more = len(matching) > query.limit
    return list_response(
        page, next_page=pagination.encode_id_cursor("threads", str(page[-1]["id"])) if has_more else None
    )


@router.get("/{thread_id}", response_model=response_models.Thread)
async def retrieve_thread(request: Request, session_id: str, thread_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response((await _find_thread(request, principal, session_id, thread_id)).serialize())


@router.post("/{thread_id}/archive", include_in_schema=False)
async def archive_thread(request: Request, session_id: str, thread_id: str, principal: Caller) -> Response:
    """Always returns an error: a thread is archived only together with its session."""
    await read_empty_body(request)
    await _find_thread(request, principal, session_id, thread_id)
    raise InvalidRequest(
        "thread_id: a thread cannot be archived by itself",
        field="thread_id",
        help_text="Archive the session: this also archives its threads.",
    )


@router.get(
    "/{thread_id}/events",
    response_model=response_models.Listing[response_models.Event],
    openapi_extra=describe_request(query=ListThreadEvents),
)
async def list_thread_events(request: Request, session_id: str, thread_id: str, principal: Caller) -> Response:
    """Lists the events of a thread, oldest first."""
    query = read_query(request, ListThreadEvents)
    found = await _find_thread(request, principal, session_id, thread_id)
    cursor = pagination.decode_number_cursor("events", query.page, "asc")
    page = EventPage(limit=query.limit + 1, after_seq=cursor[1] if cursor else None, thread_id=found.id)
    return await respond_with_page(request, principal, session_id, page)


@router.get(
    "/{thread_id}/stream",
    response_class=Response,
    responses={200: {"description": "Server-sent events, one frame per event.", "content": {"text/event-stream": {}}}},
    openapi_extra=describe_request(query=StreamEvents),
)
async def stream_thread_events(request: Request, session_id: str, thread_id: str, principal: Caller) -> EventStream:
    """Streams the events of a thread, in the same format as the stream of a session. A subagent's message is sent when
    it is complete, without previews.
    """
    query = read_query(request, StreamEvents)
    found = await _find_thread(request, principal, session_id, thread_id)
    return await open_event_stream(request, principal, found.session, query, thread_id=found.id)


async def _find_thread(request: Request, principal: Principal, session_id: str, thread_id: str) -> _ThreadInSession:
    session = await get_services(request).reads.session(principal, session_id)
    if thread_id == primary_id(session.id):
        return _ThreadInSession(session, None)
    for thread in await _load_subagent_threads(request, principal, session):
        if thread.id == thread_id:
            return _ThreadInSession(session, thread)
    raise NotFound("thread", thread_id)


async def _load_subagent_threads(request: Request, principal: Principal, session: Session) -> list[Thread]:
    """Finds subagent threads in the log, their only record. Most sessions cannot have any and are not searched."""
    if session.agent.get("multiagent") is None and session.forked_from is None:
        return []
    reads = get_services(request).reads
    life_events: list[Position] = []
    while True:
        after = life_events[-1].seq if life_events else None
        page = EventPage(limit=MAX_EVENTS, types=LIFECYCLE_EVENTS, after_seq=after)
        life_events += (page_events := await reads.events(principal, session.id, page))
        if len(page_events) < MAX_EVENTS:
            return load_threads(life_events)
