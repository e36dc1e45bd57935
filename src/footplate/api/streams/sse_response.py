"""An ASGI response that sends server-sent events.

The response starts only after the start position of the stream is fixed. A client may send a message as soon as the
response starts, and expects to see that message in the stream. A slow client never delays a turn: events that do not
fit into the client's queue are read from the log later. Closing the stream ends only the tasks of this response.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Final, cast

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from footplate.api import errors
from footplate.api.stream_and_body_quotas import StreamSlot
from footplate.api.streams import key_revocation
from footplate.domain.errors import FootplateError
from footplate.stream.sse import KEEP_ALIVE, encode_json_line

HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

_LARGE_FRAME_BYTES: Final = 64 * 1024
"""Bytes that the server buffers for a client."""

log = structlog.get_logger(__name__)


class EventStream(Response):
    def __init__(
        self,
        frames: AsyncIterator[bytes],
        slot: StreamSlot,
        *,
        first_frame: bytes = b"",
        until_revoked: Callable[[], Coroutine[None, None, None]] | None = None,
    ) -> None:
        """The slot is released when the stream ends. The stream also ends when the optional callback reports that the
        key was revoked.
        """
        super().__init__()
        self._until_revoked = until_revoked
        self._frames = frames
        self._slot = slot
        self._first_frame = first_frame

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        revoked = asyncio.create_task((self._until_revoked or _wait_forever)())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            if self._first_frame:
                await send({"type": "http.response.body", "body": self._first_frame, "more_body": True})
            pump = asyncio.create_task(self._pump(scope, send))
            disconnected = asyncio.create_task(_wait_for_disconnect(receive))
            try:
                await asyncio.wait((pump, disconnected, revoked), return_when=asyncio.FIRST_COMPLETED)
            finally:
                only_revoked = revoked.done() and not pump.done() and not disconnected.done()
                pump.cancel()
                disconnected.cancel()
                await asyncio.gather(pump, disconnected, return_exceptions=True)
            if only_revoked:
                last_frame = error_frame(key_revocation.revoked_key_error(), scope["request_id"])
                with suppress(OSError):
                    await send({"type": "http.response.body", "body": last_frame, "more_body": False})
        finally:
            revoked.cancel()
            await asyncio.gather(revoked, return_exceptions=True)

    async def _pump(self, scope: Scope, send: Send) -> None:
        try:
            async with aclosing(cast("ClosableFrames", self._frames)) as frames:
                async for frame in frames:
                    await send({"type": "http.response.body", "body": frame or KEEP_ALIVE, "more_body": True})
                    if len(frame) >= _LARGE_FRAME_BYTES:
                        # The server waits for a full connection before the next write, not after this one. Without this
                        # empty write, a client that does not read would hold two chunks and a queue.
                        await send({"type": "http.response.body", "body": b"", "more_body": True})
        except Exception as error:  # noqa: BLE001 - any failure is reported to the client
            last_frame = failure_frame(scope, error)
        else:
            last_frame = b""
        with suppress(OSError):
            await send({"type": "http.response.body", "body": last_frame, "more_body": False})


class ClosableFrames(AsyncIterator[bytes]):
    """Frames from an async generator, which is closed when the client disconnects."""

    async def aclose(self) -> None: ...


async def _wait_forever() -> None:
    await asyncio.get_running_loop().create_future()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def failure_frame(scope: Scope, error: Exception) -> bytes:
    """Builds the last frame of a stream that failed. SDKs raise on it, and a client can resume from its cursor."""
    request_id: str = scope["request_id"]
    log.warning("event stream failed", action="api.stream_broke", request_id=request_id, exc_info=error)
    return error_frame(error if isinstance(error, FootplateError) else FootplateError("The stream failed."), request_id)


def error_frame(error: FootplateError, request_id: str) -> bytes:
    body = errors.error_envelope(error, errors.http_status(error), request_id)
    return b"event: error\ndata: " + encode_json_line(body) + b"\n\n"
