"""Streams events over an open WebSocket. Messages go only from the server to the client.

Two tasks run: one sends events, the other detects that the client disconnected or sent a message. When either ends, the
other is cancelled, and the connection is closed with a code that tells the client what to do next; `docs/streams.md`
lists the codes. As with server-sent events, a client that does not read costs a bounded queue and slows down no other
client.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from footplate.api import key_watch
from footplate.api.event_stream import broken, error_frame
from footplate.domain import events
from footplate.domain.errors import InvalidRequest
from footplate.stream.messages import messages

OVER: Final = 1000
UNWANTED: Final = 1003
REVOKED: Final = 1008
BROKEN: Final = 1011
RESTARTING: Final = 1012

_GO_ON: Final = "reconnect and resume after the last id"
_SPOKE: Final = InvalidRequest(
    "This WebSocket accepts no messages from the client.",
    field="message",
    help_text="Send events with POST /v1/sessions/{id}/events, which is safe to retry.",
)


@dataclass(frozen=True, slots=True)
class Ending:
    code: int
    reason: str
    frame: bytes = b""
    """Sent to the client before the connection is closed."""


async def serve(
    socket: WebSocket, frames: AsyncIterator[bytes], *, first_frame: bytes, until_revoked: Coroutine[None, None, None]
) -> None:
    """Streams until the client disconnects, the session is deleted, the server stops, or the API key is revoked."""
    revoked = asyncio.create_task(_end_revoked(socket, until_revoked))
    sending = asyncio.create_task(_send(socket, frames, first_frame))
    receiving = asyncio.create_task(_hear(socket))
    try:
        await asyncio.wait((sending, receiving, revoked), return_when=asyncio.FIRST_COMPLETED)
    finally:
        first_done = next((task for task in (receiving, revoked) if task.done()), sending)
        tasks = (sending, receiving, revoked)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    with suppress(WebSocketDisconnect, OSError, RuntimeError):  # the client has disconnected
        if (stream_end := first_done.result()) is not None:
            await _tell(socket, stream_end.frame)
            await socket.close(stream_end.code, stream_end.reason)


async def _end_revoked(socket: WebSocket, until_revoked: Coroutine[None, None, None]) -> Ending:
    await until_revoked
    return Ending(REVOKED, "the API key was revoked", error_frame(key_watch.revoked(), socket.scope["request_id"]))


async def _send(socket: WebSocket, frames: AsyncIterator[bytes], first_frame: bytes) -> Ending:
    last_event = await _tell(socket, first_frame)
    while True:
        try:
            chunk = await anext(frames)
        except StopAsyncIteration:
            deleted = last_event == events.SESSION_DELETED
            return Ending(OVER, "the session was deleted") if deleted else Ending(RESTARTING, _GO_ON)
        except Exception as error:  # noqa: BLE001 - any failure is reported to the client
            return Ending(BROKEN, _GO_ON, broken(socket.scope, error))
        last_event = await _tell(socket, chunk) or last_event


async def _tell(socket: WebSocket, chunk: bytes) -> str:
    """Sends each frame of a chunk. Returns the event type of the last one."""
    last_event = ""
    for event, message in messages(chunk):
        await socket.send({"type": "websocket.send", "text": message})
        last_event = event
    return last_event


async def _hear(socket: WebSocket) -> Ending | None:
    """Returns None if the client disconnected, and the reason to close the stream if it sent a message."""
    if (await socket.receive())["type"] == "websocket.disconnect":
        return None
    return Ending(UNWANTED, "this stream accepts no messages", error_frame(_SPOKE, socket.scope["request_id"]))
