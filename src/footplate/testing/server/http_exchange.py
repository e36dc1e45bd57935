"""Handles one HTTP request and its response over ASGI, and stops when the client disconnects."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

import orjson

from footplate.testing import reply_steps as s
from footplate.testing.server import reply_playback
from footplate.testing.server.reply_playback import ReplyPlayback
from footplate.testing.server.request_journal import Outcome, Record
from footplate.testing.wire import anthropic_messages
from footplate.testing.wire.wire_format_interface import WireFormat

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

_FLUSH_BYTES: Final = 64 * 1024
_JSON_HEADER: Final = (b"content-type", b"application/json")
_NO_CACHE_HEADER: Final = (b"cache-control", b"no-cache")


class ClientGone(Exception):
    """The client disconnected, or the server is shutting down."""


async def read_body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


class HttpExchange:
    def __init__(self, receive: Receive, send: Send, record: Record) -> None:
        self._receive = receive
        self._send = send
        self._record = record
        self._disconnect_task: asyncio.Task[None] | None = None
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._started = False
        self._stream_type = ""

    def abort(self) -> None:
        if self._disconnect_task is not None:
            self._disconnect_task.cancel()

    def close(self) -> None:
        self.abort()
        if self._record.outcome == "open":
            self._record_outcome("gone")

    async def send_json(self, status: int, body: object) -> None:
        await self.send_response(status, orjson.dumps(body))

    async def send_response(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        await self._start(status, [_JSON_HEADER, (b"content-length", str(len(body)).encode()), *(headers or [])])
        await self._send({"type": "http.response.body", "body": body})
        self._record_outcome("complete" if status < 400 else "error")  # noqa: PLR2004 - HTTP error statuses start here

    async def send_error(self, error: s.HttpError, wire: WireFormat = anthropic_messages.FORMAT) -> None:
        named = {**wire.error_headers(error), **error.headers}
        headers = [(name.lower().encode(), value.encode()) for name, value in named.items()]
        if error.retry_after is not None:
            headers.append((b"retry-after", f"{error.retry_after:g}".encode()))
        await self.send_response(
            error.http_error, orjson.dumps(wire.error_body(error, self._record.request_id)), headers
        )

    async def send_stream(self, playback: ReplyPlayback) -> None:
        """Sends a streamed reply. Frames without a pause between them share one write."""
        due = time.monotonic()
        self._stream_type = playback.wire.stream_type
        for piece in playback.play():
            if isinstance(piece, bytes):
                await self._write(piece)
            elif isinstance(piece, reply_playback.Pause):
                due = time.monotonic() + piece.seconds
                await self._wait_until(due)
            elif isinstance(piece, reply_playback.Pace):
                due += piece.seconds
                await self._wait_until(due)
            elif isinstance(piece, s.Cut):
                await self._flush(last=piece.quiet)
                self._record_outcome("cut")
                return
            elif self._started or self._buffer:
                await self._write(playback.error_frame(piece, self._record.request_id))
                await self._finish("error")
                return
            else:
                await self.send_error(piece, playback.wire)
                return
        await self._finish("complete")

    async def send_full(self, playback: ReplyPlayback) -> None:
        """Sends a reply in one piece, with the same timing and faults as `send_stream`."""
        for piece in playback.play():
            if isinstance(piece, reply_playback.Pause | reply_playback.Pace):
                await self._wait_until(time.monotonic() + piece.seconds)
            elif isinstance(piece, s.Cut):
                message = playback.full_response()
                await self._start(200, [_JSON_HEADER, (b"content-length", str(len(message)).encode())])
                await self._send(
                    {"type": "http.response.body", "body": message[: len(message) // 2], "more_body": True}
                )
                self._record_outcome("cut")
                return
            elif isinstance(piece, s.HttpError):
                await self.send_error(piece, playback.wire)
                return
        await self.send_response(200, playback.full_response())

    async def _wait_until(self, due: float) -> None:
        seconds = due - time.monotonic()
        if seconds <= 0:
            return
        await self._flush()
        if self._disconnect_task is None:
            self._disconnect_task = asyncio.create_task(self._wait_for_disconnect())
        done, _ = await asyncio.wait({self._disconnect_task}, timeout=None if math.isinf(seconds) else seconds)
        if done:
            raise ClientGone

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _write(self, frame: bytes) -> None:
        self._buffer.append(frame)
        self._buffered += len(frame)
        if self._buffered >= _FLUSH_BYTES:
            await self._flush()

    async def _flush(self, *, last: bool = False) -> None:
        if not self._buffer and not last:
            return
        if not self._started:
            await self._start(200, [(b"content-type", self._stream_type.encode()), _NO_CACHE_HEADER])
        body = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        await self._send({"type": "http.response.body", "body": body, "more_body": not last})

    async def _finish(self, outcome: Outcome) -> None:
        await self._flush(last=True)
        self._record_outcome(outcome)

    async def _start(self, status: int, headers: Headers) -> None:
        self._started = True
        self._record.status = status
        self._record.answered_at = time.time()
        request_id = self._record.request_id.encode()
        # Anthropic's header name, and OpenAI's.
        named = [(b"request-id", request_id), (b"x-request-id", request_id), *headers]
        await self._send({"type": "http.response.start", "status": status, "headers": named})

    def _record_outcome(self, outcome: Outcome) -> None:
        self._record.outcome = outcome
        self._record.ended_at = time.time()
