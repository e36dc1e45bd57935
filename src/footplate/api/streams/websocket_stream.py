"""Streams events over an open WebSocket, only from the server to the client.

One task sends events, one waits for the client to disconnect or to send a message, and one waits until the API key is
revoked. When one of them ends, the others are cancelled and the connection is closed. The close code tells the client
how to continue; `docs/streams.md` lists the codes.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from footplate.api.streams import key_revocation
from footplate.api.streams.sse_response import error_frame, failure_frame
from footplate.domain.errors import InvalidRequest
from footplate.domain.sessions import events
from footplate.stream.sse import to_websocket_messages

CLOSE_DELETED: Final = 1000
CLOSE_UNEXPECTED_MESSAGE: Final = 1003
CLOSE_REVOKED: Final = 1008
CLOSE_FAILED: Final = 1011
CLOSE_RESTARTING: Final = 1012

_RESUME_REASON: Final = "reconnect and resume after the last ID"
_MESSAGE_REFUSED: Final = InvalidRequest(
    "This WebSocket accepts no messages from the client.",
    field="message",
    help_text="Send events with POST /v1/sessions/{id}/events, which is safe to retry.",
)


@dataclass(frozen=True, slots=True)
class StreamEnd:
    code: int
    reason: str
    frame: bytes = b""
    """Sent to the client before the connection is closed."""


async def stream_to_socket(
    socket: WebSocket, frames: AsyncIterator[bytes], *, first_frame: bytes, until_revoked: Coroutine[None, None, None]
) -> None:
    """Streams until the client disconnects, the session is deleted, the server stops, or the API key is revoked."""
    revoked = asyncio.create_task(_wait_until_revoked(socket, until_revoked))
    sending = asyncio.create_task(_send_frames(socket, frames, first_frame))
    receiving = asyncio.create_task(_wait_for_client(socket))
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
            await _send_chunk(socket, stream_end.frame)
            await socket.close(stream_end.code, stream_end.reason)


async def _wait_until_revoked(socket: WebSocket, until_revoked: Coroutine[None, None, None]) -> StreamEnd:
    await until_revoked
    return StreamEnd(
        CLOSE_REVOKED,
        "the API key was revoked",
        error_frame(key_revocation.revoked_key_error(), socket.scope["request_id"]),
    )


async def _send_frames(socket: WebSocket, frames: AsyncIterator[bytes], first_frame: bytes) -> StreamEnd:
    last_event = await _send_chunk(socket, first_frame)
    while True:
        try:
            chunk = await anext(frames)
        except StopAsyncIteration:
            deleted = last_event == events.SESSION_DELETED
            return (
                StreamEnd(CLOSE_DELETED, "the session was deleted")
                if deleted
                else StreamEnd(CLOSE_RESTARTING, _RESUME_REASON)
            )
        except Exception as error:  # noqa: BLE001 - any failure is reported to the client
            return StreamEnd(CLOSE_FAILED, _RESUME_REASON, failure_frame(socket.scope, error))
        last_event = await _send_chunk(socket, chunk) or last_event


async def _send_chunk(socket: WebSocket, chunk: bytes) -> str:
    """Sends each frame of a chunk. Returns the event type of the last one."""
    last_event = ""
    for event, message in to_websocket_messages(chunk):
        await socket.send({"type": "websocket.send", "text": message})
        last_event = event
    return last_event


async def _wait_for_client(socket: WebSocket) -> StreamEnd | None:
    """Returns None if the client disconnected, and the reason to close the stream if it sent a message."""
    if (await socket.receive())["type"] == "websocket.disconnect":
        return None
    return StreamEnd(
        CLOSE_UNEXPECTED_MESSAGE,
        "this stream accepts no messages",
        error_frame(_MESSAGE_REFUSED, socket.scope["request_id"]),
    )
