"""`/v1/sessions/{id}/events`: sends events to a session, and lists and streams its events."""

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_message_body, read_query
from footplate.api.requests.shell_modes import environment_of_session
from footplate.api.routes.files import check_input_references
from footplate.api.routing import create_router
from footplate.api.service_container import acquire_stream, get_services
from footplate.api.streams.key_revocation import wait_for_revocation
from footplate.api.streams.sse_response import EventStream
from footplate.api.wire import response_models
from footplate.api.wire.json_responses import list_response
from footplate.api.wire.session import events
from footplate.api.wire.session.events import ListEvents, SendEvents, StreamEvents
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import check_permission
from footplate.domain.pagination import Order
from footplate.domain.ports.api import Cursor, EventPage, UnitOfWork
from footplate.domain.sessions.events import to_wire
from footplate.domain.sessions.turns import Session
from footplate.stream.sse import parse_cursor

router = create_router("/v1/sessions/{session_id}/events", "events")


@router.post("", response_model=response_models.SentEvents, openapi_extra=describe_request(body=SendEvents))
async def send_events(request: Request, session_id: str, principal: Caller) -> Response:
    body, raw = await read_message_body(request, SendEvents)
    inputs = events.to_inputs(body.events)
    for sent in inputs:
        check_permission(principal, events.required_permission(sent.type))
    services = get_services(request)
    environment = environment_of_session(services, principal, session_id)
    await check_input_references(services, principal, inputs, environment)

    async def work(unit: UnitOfWork) -> ChangeResult:
        accepted = await unit.send(principal, session_id, inputs)
        return {"data": events.serialize_sent_events(accepted)}, accepted

    return await execute_change(request, principal, raw, work)


@router.get(
    "",
    response_model=response_models.Listing[response_models.Event],
    openapi_extra=describe_request(query=ListEvents),
)
async def list_events(request: Request, session_id: str, principal: Caller) -> Response:
    query = read_query(request, ListEvents)
    query.check_types()
    cursor = pagination.decode_number_cursor("events", query.page, query.order)
    order: Order = cursor[0] if cursor else query.order or "asc"
    page = EventPage(
        limit=query.limit + 1,
        order=order,
        after_seq=cursor[1] if cursor else None,
        types=query.types,
        created_gt=query.created_at_gt,
        created_gte=query.created_at_gte,
        created_lt=query.created_at_lt,
        created_lte=query.created_at_lte,
        with_extensions=query.extensions,
    )
    return await respond_with_page(request, principal, session_id, page)


async def respond_with_page(request: Request, principal: Principal, session_id: str, page: EventPage) -> Response:
    """Responds with one page. `page` must ask for one event more than the client wants."""
    rows = await get_services(request).reads.events(principal, session_id, page)
    limit = page.limit - 1
    next_page = (
        pagination.encode_number_cursor("events", page.order, rows[limit - 1].seq) if len(rows) > limit else None
    )
    data = [{**to_wire(row), "position": str(row.seq)} for row in rows[:limit]]
    return list_response(data, next_page=next_page)


@router.get(
    "/stream",
    response_class=Response,
    responses={200: {"description": "Server-sent events, one frame per event.", "content": {"text/event-stream": {}}}},
    openapi_extra=describe_request(query=StreamEvents),
)
async def stream_events(request: Request, session_id: str, principal: Caller) -> Response:
    """Streams new events. With `Last-Event-ID` or `after`, the stream starts after the frame with that ID."""
    query = read_query(request, StreamEvents)
    get_services(request).quotas.check_streams(principal.id)  # before any database query
    return await open_event_stream(
        request, principal, await get_services(request).reads.session(principal, session_id), query
    )


async def open_event_stream(
    request: Request, principal: Principal, session: Session, query: StreamEvents, *, thread_id: str | None = None
) -> EventStream:
    cursor = parse_start_cursor(request.headers.get("last-event-id"), query.after)
    frames = get_services(request).tails.frames(
        principal.organisation,
        session.id,
        cursor=cursor,
        deltas=frozenset(query.event_deltas),
        thread_id=thread_id,
        with_extensions=query.extensions,
    )
    return await respond_with_stream(request, principal, frames, partial(wait_for_revocation, request, principal))


async def respond_with_stream(
    request: Request,
    principal: Principal,
    frames: AsyncIterator[bytes],
    until_revoked: Callable[[], Coroutine[None, None, None]],
) -> EventStream:
    slot = await acquire_stream(get_services(request), principal)
    # The first frame shows that the start position is fixed. The response must not start before: a client sends its
    # message as soon as the stream is open, and expects to see it.
    try:
        first_frame = await anext(frames, b"")
    except BaseException:
        slot.release()
        raise
    return EventStream(frames, slot, first_frame=first_frame, until_revoked=until_revoked)


def parse_start_cursor(header: str | None, after: str | None) -> Cursor | None:
    """Returns the start position. The header wins: a reconnecting browser sends it, while its URL still has the old
    `after`.
    """
    if header:
        return parse_cursor(header)
    return parse_cursor(after, field="after") if after else None
