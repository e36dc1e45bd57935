"""A stream of events over an open WebSocket: messages go out, and nothing comes in.

Two tasks: one sends, one hears whether the client has left or said something. Whichever ends first ends the other, and
the connection is closed with a code that tells the client what to do next; `docs/streams.md` lists them. As with
server-sent events, a client that does not read costs a bounded queue and slows nobody.
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

_GO_ON: Final = "go on after the last id"
_SPOKE: Final = InvalidRequest(
    "This WebSocket takes no messages: it shows what happens in the session.",
    field="message",
    help_text="Send events with POST /v1/sessions/{id}/events, which may be repeated without being done twice.",
)


@dataclass(frozen=True, slots=True)
class Ending:
    code: int
    reason: str
    frame: bytes = b""
    """What the client is told before."""


async def serve(
    socket: WebSocket, frames: AsyncIterator[bytes], *, first: bytes, until: Coroutine[None, None, None]
) -> None:
    """Until the client leaves, the session is deleted, the server stops or `until` returns: the key was revoked."""
    revoked = asyncio.create_task(_end_revoked(socket, until))
    sending = asyncio.create_task(_send(socket, frames, first))
    hearing = asyncio.create_task(_hear(socket))
    try:
        await asyncio.wait((sending, hearing, revoked), return_when=asyncio.FIRST_COMPLETED)
    finally:
        first_done = next((task for task in (hearing, revoked) if task.done()), sending)
        tasks = (sending, hearing, revoked)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    with suppress(WebSocketDisconnect, OSError, RuntimeError):  # the client has left, whoever noticed first
        if (ending := first_done.result()) is not None:
            await _tell(socket, ending.frame)
            await socket.close(ending.code, ending.reason)


async def _end_revoked(socket: WebSocket, until: Coroutine[None, None, None]) -> Ending:
    await until
    return Ending(REVOKED, "the API key was revoked", error_frame(key_watch.revoked(), socket.scope["request_id"]))


async def _send(socket: WebSocket, frames: AsyncIterator[bytes], first: bytes) -> Ending:
    last = await _tell(socket, first)
    while True:
        try:
            chunk = await anext(frames)
        except StopAsyncIteration:
            deleted = last == events.SESSION_DELETED
            return Ending(OVER, "the session was deleted") if deleted else Ending(RESTARTING, _GO_ON)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told that the stream broke
            return Ending(BROKEN, _GO_ON, broken(socket.scope, error))
        last = await _tell(socket, chunk) or last


async def _tell(socket: WebSocket, chunk: bytes) -> str:
    """Send each frame of a chunk; the event of the last."""
    last = ""
    for event, message in messages(chunk):
        await socket.send({"type": "websocket.send", "text": message})
        last = event
    return last


async def _hear(socket: WebSocket) -> Ending | None:
    """None: the client has left."""
    if (await socket.receive())["type"] == "websocket.disconnect":
        return None
    return Ending(UNWANTED, "nothing may be sent here", error_frame(_SPOKE, socket.scope["request_id"]))
