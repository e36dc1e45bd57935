"""Adds two limits per client to uvicorn's WebSocket protocol: how many frames a client may send per second, and how
long it may stop reading. The connection of a client that exceeds a limit is closed.
"""

import asyncio
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame

from footplate.api.server.connection_limits import ConnectionSlot
from footplate.api.server.timer import Timer

TOO_MANY_FRAMES: Final = 1008
_PARSER_SLICE_BYTES: Final = 4 * 1024
"""Bytes passed to the parser at once, because it is slow with many small frames."""
_MAX_LINE: Final = 8_000
_MAX_HEADERS: Final = 120
"""Both limits are those of the WebSocket library, which fails without a response to a larger handshake."""


class LimitedSocketProtocol(WebSocketsSansIOProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.slot: ConnectionSlot | None = None
        limits = config.limits  # pyrefly: ignore[missing-attribute]  # LimitedConfig, which imports this module
        self._frames_per_second: int = limits.socket_frames
        self._write_timer = Timer(self.loop, limits.write_seconds, self._abort)
        self._second_started = 0.0
        self._frames_in_second = 0

    @staticmethod
    def accepts_handshake(url: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
        """Returns whether the WebSocket library accepts a handshake of this size."""
        longest = max((len(name) + len(value) for name, value in headers), default=0)
        return len(headers) <= _MAX_HEADERS and max(longest, len(url)) <= _MAX_LINE

    def connection_lost(self, exc: Exception | None) -> None:
        if self.slot is not None:
            self.slot.release()
        self._write_timer.discard()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PARSER_SLICE_BYTES):
            if self.close_sent and self.transport.is_closing():
                return
            super().data_received(data[start : start + _PARSER_SLICE_BYTES])

    def handle_cont(self, event: Frame) -> None:
        if self._count_frame():
            super().handle_cont(event)

    def handle_text(self, event: Frame) -> None:
        if self._count_frame():
            super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        if self._count_frame():
            super().handle_bytes(event)

    def handle_ping(self) -> None:
        if self._count_frame():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        if self._count_frame():
            super().handle_pong(event)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._write_timer.stop()

    def _count_frame(self) -> bool:
        """Counts a frame from the client. Over the limit, closes the connection and returns False."""
        if self.transport.is_closing():
            return False
        now = self.loop.time()
        if now - self._second_started >= 1:
            self._second_started, self._frames_in_second = now, 0
        self._frames_in_second += 1
        if self._frames_in_second <= self._frames_per_second:
            return True
        reason = f"more than {self._frames_per_second} frames per second (FOOTPLATE_SOCKET_FRAMES)"
        if not self.close_sent:
            self.conn.fail(TOO_MANY_FRAMES, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.queue.put_nowait({"type": "websocket.disconnect", "code": TOO_MANY_FRAMES, "reason": reason})
        self.close_sent = True
        self.transport.close()
        self._write_timer.start()
        return False

    def _abort(self) -> None:
        self.transport.abort()
