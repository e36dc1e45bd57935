"""Events of a session: send, list, and a stream that goes on after a lost connection.

The race that the stream prevents: a connection breaks, events happen, a new connection starts "now" and they are never
seen. Each frame carries its place, and a new connection begins behind the last one. Where no place is known yet, the
stream raises `StreamLost` rather than lose something in silence; `after="0"` (or a turn's `first_seq`) avoids that.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any, Final

import stamina

from footplate.client.errors import ApiError, ClientError, StreamLost, Unreachable, of_status
from footplate.client.listing import Pages
from footplate.client.models import Event
from footplate.client.transport import Frame, Transport, worth_another_try

DELETED: Final = "session.deleted"
MESSAGE: Final = "agent.message"
_HEALTHY_SECONDS: Final = 5.0
"""A connection that lived so long was a good one: when it breaks, patience begins anew."""

Heard = Callable[[ClientError | None], None]
"""Told of each connection that broke, and with None when another one took its place."""


class Events:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, session_id: str, events: Sequence[Mapping[str, Any]]) -> list[Event]:
        """All of them or none. Their ids come back; `processed_at` is set once the agent takes one up."""
        body = {"events": [dict(event) for event in events]}
        answer = await self._transport.post(f"/v1/sessions/{session_id}/events", body)
        return [Event.model_validate(item) for item in answer["data"]]

    async def send_text(self, session_id: str, text: str, **fields: Any) -> Event:
        """A `user.message`; `when_busy`, `overrides` and `context` go in as keywords."""
        message = {"type": "user.message", "content": [{"type": "text", "text": text}], **fields}
        return (await self.send(session_id, [message]))[0]

    async def interrupt(self, session_id: str) -> Event:
        return (await self.send(session_id, [{"type": "user.interrupt"}]))[0]

    def list(
        self, session_id: str, *, limit: int | None = None, order: str | None = None, types: Sequence[str] = ()
    ) -> Pages[Event]:
        """Oldest first, unless `order` is `desc`."""
        params = {"limit": limit, "order": order, "types[]": [*types] or None}
        return Pages(self._transport, f"/v1/sessions/{session_id}/events", Event, params)

    async def stream(
        self,
        session_id: str,
        *,
        after: str | None = None,
        deltas: Sequence[str] = (MESSAGE,),
        on_connection: Heard | None = None,
    ) -> AsyncIterator[Event]:
        """Each event once and in order, from behind `after` or from now, until the session is deleted.

        `deltas` names the types of which previews are wanted. `on_connection` hears of broken connections and new ones.
        """
        follower = _Follower(self._transport, session_id, after, deltas, on_connection)
        try:
            while not follower.ended:
                async for event in follower.connection():
                    yield event
        finally:
            await follower.aclose()


class _Follower:
    """What one stream knows across its connections."""

    def __init__(
        self, transport: Transport, session_id: str, after: str | None, deltas: Sequence[str], heard: Heard | None
    ) -> None:
        self._transport = transport
        self._path = f"/v1/sessions/{session_id}/events/stream"
        self._params = {"event_deltas[]": [*deltas]} if deltas else {}
        self._cursor = after
        self._heard = heard
        self._was_open = False
        self._preview: tuple[str, int] | None = None
        """The preview that is open here, and how much of its text was given."""
        self._open: AsyncExitStack | None = None
        self.ended = False

    async def connection(self) -> AsyncIterator[Event]:
        """The events of one connection, which is made with patience."""
        frames, event = await self._connected()
        while event is not None:
            if shown := self._shown(event):
                yield shown
            if event.type == DELETED:
                self.ended = True
                return
            try:
                event = await anext(frames)
            except (StopAsyncIteration, Unreachable, ApiError) as error:
                self._lost(error)
                return

    async def aclose(self) -> None:
        if self._open is not None:
            opened, self._open = self._open, None
            await opened.aclose()

    async def _connected(self) -> tuple[AsyncIterator[Event], Event | None]:
        """A new connection and its first event; none when it was quiet for a good while and then broke."""
        patience = self._transport.patience
        async for attempt in stamina.retry_context(
            on=worth_another_try, attempts=None, timeout=patience, wait_initial=0.1, wait_max=2, wait_jitter=0.1
        ):
            with attempt:
                frames = await self._connect()
                since = monotonic()
                try:
                    return frames, await anext(frames)
                except (StopAsyncIteration, Unreachable, ApiError) as error:
                    self._lost(error)
                    if monotonic() - since >= _HEALTHY_SECONDS:
                        return frames, None
                    raise Unreachable("The stream ended as soon as it was open.") from error
        raise AssertionError("the retries end with a result or an error")

    async def _connect(self) -> AsyncIterator[Event]:
        await self.aclose()
        if self._was_open and self._cursor is None:
            raise StreamLost(
                "The stream broke before its first event, so its place is not known.",
                help_text='Give a place to start from: after="0" for all, or a turn\'s first_seq.',
            )
        self._open = AsyncExitStack()
        frames = await self._open.enter_async_context(self._transport.frames(self._path, self._params, self._cursor))
        if self._was_open and self._heard is not None:
            self._heard(None)
        self._was_open = True
        return _events(frames)

    def _lost(self, error: Exception) -> None:
        if self._heard is not None:
            known = error if isinstance(error, ClientError) else Unreachable("The server closed the stream.")
            self._heard(known)

    def _shown(self, event: Event) -> Event | None:
        """Remember the place; leave out the start of a preview that goes on where an earlier connection broke."""
        if event.position:
            self._cursor = event.position
        if event.type == "event_start":
            started = str((event.event or {}).get("id")), _offset(event.position)
            repeated = started == self._preview
            self._preview = started
            return None if repeated else event
        if event.type == "event_delta" and self._preview is not None:
            self._preview = self._preview[0], _offset(event.position)
        return event if event.type else None


async def _events(frames: AsyncIterator[Frame]) -> AsyncIterator[Event]:
    async for frame in frames:
        if frame.event == "error":
            raise of_status(500, _decoded(frame.data))
        if frame.data and frame.event != "ping":
            yield Event.model_validate({**_decoded(frame.data), "position": frame.id or None})
        elif frame.id:
            # Nothing but a place: where a stream that starts now begins.
            yield Event(type="", position=frame.id)


def _offset(position: str | None) -> int:
    """How many characters of a preview are known once this frame is: the last part of its place."""
    return int((position or "0").rpartition(".")[2])


def _decoded(data: str) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise Unreachable("The stream holds something that is no event.")
    return value
