"""Client methods for events: send, list, and streams that resume after a lost connection: of one session, and of the
changes of all sessions of the organisation.

Each frame of the stream has a position, and a new connection starts after the last position received, so no event is
skipped. If no position is known yet, the stream raises `StreamLost` instead of skipping events silently. To avoid that,
start with `after="0"` or a turn's `first_seq`.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any, Final, Generic, TypeVar

import stamina

from footplate.client.errors import ApiError, ClientError, StreamLost, Unreachable, error_for_status
from footplate.client.pagination import Pages
from footplate.client.response_models import Change, Event
from footplate.client.transport import Frame, Transport, should_retry

E = TypeVar("E", bound=Event)

DELETED: Final = "session.deleted"
MESSAGE: Final = "agent.message"
_HEALTHY_CONNECTION_SECONDS: Final = 5.0
"""A connection that lasted this long was healthy: when it breaks, the retry time starts over."""

ConnectionListener = Callable[[ClientError | None], None]
"""Called with the error when a connection breaks, and with None when a new connection replaces it."""


class Events:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, session_id: str, events: Sequence[Mapping[str, Any]]) -> list[Event]:
        """Sends all events or none, and returns them with their ids. `processed_at` is None while an event waits."""
        body = {"events": [dict(event) for event in events]}
        response = await self._transport.post(f"/v1/sessions/{session_id}/events", body)
        return [Event.model_validate(item) for item in response["data"]]

    async def send_text(self, session_id: str, text: str, **fields: Any) -> Event:
        """Sends a `user.message`. Pass `when_busy`, `overrides` and `context` as keywords."""
        message = {"type": "user.message", "content": [{"type": "text", "text": text}], **fields}
        return (await self.send(session_id, [message]))[0]

    async def interrupt(self, session_id: str) -> Event:
        return (await self.send(session_id, [{"type": "user.interrupt"}]))[0]

    def list(
        self,
        session_id: str,
        *,
        limit: int | None = None,
        order: str | None = None,
        types: Sequence[str] = (),
        extensions: bool = False,
    ) -> Pages[Event]:
        """Oldest first, unless `order` is `desc`. `extensions`: as in `stream`."""
        params = {
            "limit": limit,
            "order": order,
            "types[]": [*types] or None,
            "extensions": "true" if extensions else None,
        }
        return Pages(self._transport, f"/v1/sessions/{session_id}/events", Event, params)

    async def stream(
        self,
        session_id: str,
        *,
        after: str | None = None,
        deltas: Sequence[str] = (MESSAGE,),
        on_connection: ConnectionListener | None = None,
        extensions: bool = False,
    ) -> AsyncIterator[Event]:
        """Yields each event once and in order until the session is deleted. Starts after position `after`, or now.

        `deltas` lists the event types to preview. `on_connection` is called when a connection breaks or is replaced.
        `extensions` includes types that the reference API does not have, such as `step.ended`.
        """
        params: dict[str, str | list[str]] = {"event_deltas[]": [*deltas]} if deltas else {}
        if extensions:
            params["extensions"] = "true"
        path = f"/v1/sessions/{session_id}/events/stream"
        follower = StreamFollower(self._transport, Event, path, params, after, on_connection, last_type=DELETED)
        async for event in follower.follow():
            yield event

    async def changes(
        self,
        *,
        after: str | None = None,
        types: Sequence[str] = (),
        session_id: str | None = None,
        project_id: str | None = None,
        on_connection: ConnectionListener | None = None,
    ) -> AsyncIterator[Change]:
        """Yields each change of the organisation's sessions that the caller can see once and in order, without end.
        Starts after position `after` of the feed, or now.
        """
        filters = {"types[]": [*types] or None, "session_id": session_id, "project_id": project_id}
        params = {name: value for name, value in filters.items() if value is not None}
        follower = StreamFollower(self._transport, Change, "/v1/events/stream", params, after, on_connection)
        async for change in follower.follow():
            yield change


class StreamFollower(Generic[E]):
    """The state of one stream across its connections."""

    def __init__(
        self,
        transport: Transport,
        model: type[E],
        path: str,
        params: Mapping[str, Any],
        after: str | None,
        listener: ConnectionListener | None,
        *,
        last_type: str | None = None,
    ) -> None:
        """`last_type`: the event that ends the stream."""
        self._transport = transport
        self._model = model
        self._path = path
        self._params = params
        self._cursor = after
        self._listener = listener
        self._last_type = last_type
        self._connected_before = False
        self._preview: tuple[str, int] | None = None
        """The id of the open preview, and how many characters of its text were yielded."""
        self._exit_stack: AsyncExitStack | None = None
        self._ended = False

    async def follow(self) -> AsyncIterator[E]:
        try:
            while not self._ended:
                async for event in self._events_of_next_connection():
                    yield event
        finally:
            await self.aclose()

    async def _events_of_next_connection(self) -> AsyncIterator[E]:
        """Connects, with retries, and yields the events of that connection."""
        frames, event = await self._connect_with_retries()
        while event is not None:
            if visible := self._track_position(event):
                yield visible
            if event.type == self._last_type:
                self._ended = True
                return
            try:
                event = await anext(frames)
            except (StopAsyncIteration, Unreachable, ApiError) as error:
                self._report_lost_connection(error)
                return

    async def aclose(self) -> None:
        if self._exit_stack is not None:
            opened, self._exit_stack = self._exit_stack, None
            await opened.aclose()

    async def _connect_with_retries(self) -> tuple[AsyncIterator[E], E | None]:
        """Returns a new connection and its first event; None if a healthy connection broke before any event."""
        patience = self._transport.patience
        async for attempt in stamina.retry_context(
            on=should_retry, attempts=None, timeout=patience, wait_initial=0.1, wait_max=2, wait_jitter=0.1
        ):
            with attempt:
                frames = await self._connect()
                opened_at = monotonic()
                try:
                    return frames, await anext(frames)
                except (StopAsyncIteration, Unreachable, ApiError) as error:
                    self._report_lost_connection(error)
                    if monotonic() - opened_at >= _HEALTHY_CONNECTION_SECONDS:
                        return frames, None
                    raise Unreachable("The server closed the stream as soon as it was opened.") from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _connect(self) -> AsyncIterator[E]:
        await self.aclose()
        if self._connected_before and self._cursor is None:
            raise StreamLost(
                "The stream broke before its first event, so the position to resume from is unknown.",
                help_text='Pass a start position: after="0" for all events, or a turn\'s first_seq minus 1.',
            )
        self._exit_stack = AsyncExitStack()
        frames = await self._exit_stack.enter_async_context(
            self._transport.open_event_stream(self._path, self._params, self._cursor)
        )
        if self._connected_before and self._listener is not None:
            self._listener(None)
        self._connected_before = True
        return _parse_events(frames, self._model)

    def _report_lost_connection(self, error: Exception) -> None:
        if self._listener is not None:
            client_error = error if isinstance(error, ClientError) else Unreachable("The server closed the stream.")
            self._listener(client_error)

    def _track_position(self, event: E) -> E | None:
        """Records the position. Drops an `event_start` that repeats a preview already open on an earlier connection."""
        if event.position:
            self._cursor = event.position
        if event.type == "event_start":
            started = str((event.event or {}).get("id")), _preview_offset(event.position)
            repeated = started == self._preview
            self._preview = started
            return None if repeated else event
        if event.type == "event_delta" and self._preview is not None:
            self._preview = self._preview[0], _preview_offset(event.position)
        return event if event.type else None


async def _parse_events(frames: AsyncIterator[Frame], model: type[E]) -> AsyncIterator[E]:
    async for frame in frames:
        if frame.event == "error":
            raise error_for_status(500, _decode_object(frame.data))
        if frame.data and frame.event != "ping":
            yield model.model_validate({**_decode_object(frame.data), "position": frame.id or None})
        elif frame.id:
            # A frame with only a position: the start of a stream that begins "now", or a feed without changes.
            yield model(type="", position=frame.id)


def _preview_offset(position: str | None) -> int:
    """Returns how many characters of a preview have arrived with this frame: the last part of its position."""
    return int((position or "0").rpartition(".")[2])


def _decode_object(data: str) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise Unreachable("The stream contains data that is not an event.")
    return value
