"""Extends uvicorn's HTTP/1.1 protocol with limits on headers, slow clients, pipelined requests and connections.

Plain uvicorn reads headers and trailers of any size, and waits forever for a request to become complete. When a
connection with pipelined requests is lost, it loses track of the running request. Clients can cause these problems
without an API key.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from footplate.api import errors
from footplate.api.server.connection_limits import ConnectionSlot, ConnectionSlots
from footplate.api.server.timer import Timer
from footplate.api.server.websocket_protocol import LimitedSocketProtocol
from footplate.domain import ids
from footplate.domain.errors import FootplateError
from footplate.domain.network.request_limits import RequestLimits

_BODY_CHECK_SECONDS: Final = 5.0
_LINGER_SECONDS: Final = 2.0
"""How long further input of a refused client is discarded. Closing the connection at once would lose the response."""

_MAX_DISCARDED: Final = 256 * 1024
_DISCARD_PAUSE: Final = 0.02
_SMALL_CHUNK: Final = 64


class LimitedConfig(uvicorn.Config):
    """A server configuration with its limits and connection counters."""

    def __init__(self, app: Callable[..., Any], limits: RequestLimits, **options: Any) -> None:
        super().__init__(
            app,
            http=LimitedHttpProtocol,
            ws=LimitedSocketProtocol,
            timeout_keep_alive=limits.idle_seconds,
            **options,
        )
        self.limits = limits
        self.slots = ConnectionSlots(limits)


class _StopParsing(Exception):
    """Raised in a parser callback to stop parsing. uvicorn then calls `send_400_response`."""


class LimitedHttpProtocol(HttpToolsProtocol):
    def __init__(
        self,
        config: LimitedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._slots = config.slots
        self._slot: ConnectionSlot | None = None
        self._active_cycle: RequestResponseCycle | None = None
        self._in_head = True
        self._head_begun = False
        self._head_size = 0
        self._unparsed = 0
        """Bytes since the parser last reported the end of the headers or a part of a body."""
        self._body_size = 0
        self._small_chunks = 0
        self._refusal: FootplateError | None = None
        self._ignores_input = False
        self._discarded = 0
        self._head_timer = Timer(self.loop, self._limits.header_seconds, self._on_header_timeout)
        self._body_timer = Timer(self.loop, _BODY_CHECK_SECONDS, self._check_body_rate)
        self._write_timer = Timer(self.loop, self._limits.write_seconds, self._abort)

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        try:
            self._slot = self._slots.acquire(self.client[0] if self.client else None)
        except errors.LimitExceeded as error:
            self._ignores_input = True
            self.transport.write(response_bytes(error))
            self._close()
            return
        self._head_timer.start()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._slot is not None:
            self._slot.release()
        for timer in (self._head_timer, self._body_timer, self._write_timer):
            timer.discard()
        self._disconnect_requests()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            self._discarded += len(data)
            if self._discarded > _MAX_DISCARDED and not self._is_responding():
                self.flow.pause_reading()
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self._ignores_input or self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # refused, closed, or upgraded to a WebSocket
        if self._unparsed > self._limits.header_bytes:
            self._refuse(self._headers_too_large())
            return
        self._start_timers()
        if not self._in_head and self.cycle.response_complete:
            self._slow_down(len(data))

    def _slow_down(self, size: int) -> None:
        """Reads the rest of a refused body at about 10 MB per second, so that its client sees the response and other
        clients do not wait.
        """
        self._discarded += size
        if self._discarded > _MAX_DISCARDED:
            self.flow.pause_reading()
            self.loop.call_later(_DISCARD_PAUSE, self._resume_reading)

    def _resume_reading(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def _start_timers(self) -> None:
        if not self._in_head:
            self._body_timer.start()
        elif self._head_begun or (not self._is_responding() and self.timeout_keep_alive_task is None):
            self._head_timer.start()

    # Parser callbacks

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_begun = True

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_timer.stop()
        self._in_head = self._head_begun = False
        self._unparsed = self._body_size = self._small_chunks = 0
        if self._ignores_input:
            raise _StopParsing
        app = self.app
        if len(self.pipeline) >= self._limits.pipelined_requests:
            self.app = self._refuse_pipelined
            self._ignores_input = True
        try:
            super().on_headers_complete()
        finally:
            self.app = app
        if self.pipeline:
            # uvicorn stops reading here and would not notice a disconnect.
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        self._body_size += len(body)
        # A large chunk compensates for small ones.
        self._small_chunks = max(0, self._small_chunks - len(body) // _SMALL_CHUNK)
        super().on_body(body)
        if self.pipeline and len(self.cycle.body) > HIGH_WATER_LIMIT:
            self._ignores_input = True
            self._abort()
            raise _StopParsing

    def on_chunk_header(self) -> None:
        self._unparsed = 0
        self._small_chunks += 1
        if self._small_chunks > self._limits.small_chunks:
            message = f"The body has more than {self._limits.small_chunks} chunks of less than {_SMALL_CHUNK} bytes."
            self._refusal = errors.LimitExceeded(413, "small_chunks", message)
            raise _StopParsing

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._body_timer.stop()
        self._in_head = True
        self._head_size = self._unparsed = self._discarded = 0

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the error has its own message
        """Called by uvicorn when the parser fails."""
        if not self._ignores_input:
            self._refuse(self._refusal or errors.MalformedRequest())

    def handle_websocket_upgrade(self) -> None:
        if not LimitedSocketProtocol.accepts_handshake(self.url, self.headers):
            self._refuse(self._headers_too_large())
            return
        self._stop_timers()
        slot, self._slot = self._slot, None
        try:
            super().handle_websocket_upgrade()
            protocol = self.transport.get_protocol()
            assert isinstance(protocol, LimitedSocketProtocol)
            protocol.slot = slot
        except BaseException:
            self._slot = slot
            raise

    # Server callbacks

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._write_timer.start()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._write_timer.stop()

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > self._limits.header_bytes:
            self._refusal = self._headers_too_large()
            raise _StopParsing
        if self.headers is not None and len(self.headers) >= self._limits.header_count:
            message = f"The request has more than {self._limits.header_count} headers."
            self._refusal = errors.LimitExceeded(431, "header_count", message)
            raise _StopParsing

    def _headers_too_large(self) -> FootplateError:
        limit = self._limits.header_bytes
        return errors.LimitExceeded(431, "header_bytes", f"The request's headers are larger than {limit} bytes.")

    def _on_header_timeout(self) -> None:
        if not self._head_begun:
            self._close()
            return
        seconds = self._limits.header_seconds
        message = f"The request's headers were not complete within {seconds:g} seconds."
        self._refuse(errors.LimitExceeded(408, "header_seconds", message))

    def _check_body_rate(self) -> None:
        if self.cycle.response_complete:
            self._abort()  # the client keeps sending a refused body
            return
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._body_size = 0
        elif self._body_size < self._limits.body_rate * _BODY_CHECK_SECONDS:
            message = f"The request body arrived at less than {self._limits.body_rate} bytes per second."
            self._refuse(errors.LimitExceeded(408, "body_rate", message))
            return
        self._body_size = 0
        self._body_timer.start()

    async def _refuse_pipelined(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limits.pipelined_requests
        message = f"More than {limit} pipelined requests are waiting on this connection."
        error = errors.LimitExceeded(429, "pipelined_requests", message)
        request_id = ids.new_id(ids.REQUEST)
        response = errors.error_response(error, request_id)
        response.headers.update({"request-id": request_id, "connection": "close"})
        await response(scope, receive, send)

    def _is_responding(self) -> bool:
        return self._active_cycle is not None and not self._active_cycle.response_complete

    def _refuse(self, error: FootplateError) -> None:
        """Sends an error response, if the application has not started one, and closes the connection."""
        self._ignores_input = True
        self._stop_timers()
        behind_another = bool(self.pipeline) or (self._is_responding() and self._in_head)
        started = self._active_cycle is not None and self._is_responding() and self._active_cycle.response_started
        if behind_another or started or self.transport.is_closing():
            self._abort()
            return
        self._disconnect_requests()
        self.flow.resume_reading()
        self.transport.write(response_bytes(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._write_timer.start(_LINGER_SECONDS)

    def _disconnect_requests(self) -> None:
        """Marks every request of the connection as disconnected. uvicorn marks only the last one, even if another is
        running.
        """
        for cycle in [self._active_cycle, *(waiting for waiting, _ in self.pipeline)]:
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def _close(self) -> None:
        """Closes the connection when all data is sent, without waiting for a client that does not read."""
        self.transport.close()
        self._write_timer.start()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _stop_timers(self) -> None:
        self._head_timer.stop()
        self._body_timer.stop()


def response_bytes(error: FootplateError) -> bytes:
    """Encodes a complete response to a request that never reaches the application."""
    request_id = ids.new_id(ids.REQUEST)
    response = errors.error_response(error, request_id)
    headers = [*response.raw_headers, (b"request-id", request_id.encode()), (b"connection", b"close")]
    lines = [STATUS_LINE[response.status_code], *(name + b": " + value + b"\r\n" for name, value in headers)]
    return b"".join([*lines, b"\r\n", bytes(response.body)])
