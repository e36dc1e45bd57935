"""Connects one person's WebSocket to the terminal of a session, for watching only or also for typing.

Output is sent as bytes, and everything else as JSON. Keys of a connection that only watches are dropped here, before
they reach any stream.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Final

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from footplate.api import errors
from footplate.api.streams import key_revocation
from footplate.api.streams.websocket_stream import CLOSE_FAILED, CLOSE_REVOKED, CLOSE_UNEXPECTED_MESSAGE, StreamEnd
from footplate.api.wire.session.terminals import parse_message, serialize_frame
from footplate.domain.errors import FootplateError, InvalidRequest
from footplate.domain.ports.terminals import TerminalViews
from footplate.stream import redis_connections

_CLOSE_SECONDS: Final = 3.0
_READ_ONLY: Final = InvalidRequest(
    "This connection only watches the terminal, so what it sends has no effect.",
    field="message",
    help_text="Connect with ?write=true. This needs the permission operate.",
)


class TerminalConnection:
    def __init__(
        self, socket: WebSocket, views: TerminalViews, organisation: str, session_id: str, *, may_write: bool
    ) -> None:
        self._socket = socket
        self._views = views
        self._organisation = organisation
        self._session_id = session_id
        self._may_write = may_write
        self._terminal_id: str | None = None
        """The program that is on the terminal. None: the terminal is not open."""

    async def serve(self, until_revoked: Coroutine[None, None, None]) -> None:
        """Serves until the client disconnects, its API key is revoked, or Redis fails."""
        await self._send_text(orjson.dumps({"type": "attached", "writable": self._may_write}).decode())
        revoked = asyncio.create_task(self._wait_until_revoked(until_revoked))
        sending = asyncio.create_task(self._send_frames())
        receiving = asyncio.create_task(self._receive())
        tasks = (receiving, revoked, sending)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            first_done = next((task for task in tasks if task.done()), sending)
            await redis_connections.cancel_tasks(*tasks)
        with suppress(WebSocketDisconnect, OSError, RuntimeError, TimeoutError):  # the client has disconnected
            if (end := first_done.result()) is not None:
                async with asyncio.timeout(_CLOSE_SECONDS):  # a client that reads nothing cannot stay connected
                    await self._send_text(end.frame.decode())
                    await self._socket.close(end.code, end.reason)

    async def _wait_until_revoked(self, until_revoked: Coroutine[None, None, None]) -> StreamEnd:
        await until_revoked
        return StreamEnd(CLOSE_REVOKED, "the API key was revoked", self._error(key_revocation.revoked_key_error()))

    async def _send_frames(self) -> StreamEnd:
        try:
            async for frame in self._views.frames(self._organisation, self._session_id):
                if frame is None:
                    continue
                if frame.kind == "opened" or (self._terminal_id is None and frame.kind != "closed"):
                    self._terminal_id = frame.terminal_id
                    if frame.kind != "opened":  # its announcement is older than what the stream still has
                        await self._send_text(serialize_frame(replace(frame, kind="opened")))
                elif frame.kind == "closed" and frame.terminal_id == self._terminal_id:
                    self._terminal_id = None
                if frame.kind == "output":
                    await self._socket.send({"type": "websocket.send", "bytes": frame.data})
                else:
                    await self._send_text(serialize_frame(frame))
        except FootplateError as error:
            return StreamEnd(CLOSE_FAILED, "reconnect", self._error(error))
        raise AssertionError("unreachable: the frames have no end")

    async def _receive(self) -> StreamEnd | None:
        """Returns None if the client disconnected, and the reason to close the connection otherwise."""
        is_refused = False
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            if not self._may_write:
                if not is_refused:
                    await self._send_text(self._error(_READ_ONLY).decode())
                is_refused = True
                continue
            try:
                sent = parse_message(message.get("bytes"), message.get("text"))
                if self._terminal_id is not None:
                    await self._views.send(self._organisation, self._session_id, self._terminal_id, sent)
            except InvalidRequest as error:
                return StreamEnd(CLOSE_UNEXPECTED_MESSAGE, "invalid message", self._error(error))
            except FootplateError as error:
                return StreamEnd(CLOSE_FAILED, "reconnect", self._error(error))

    async def _send_text(self, text: str) -> None:
        await self._socket.send({"type": "websocket.send", "text": text})

    def _error(self, error: FootplateError) -> bytes:
        return orjson.dumps(errors.error_envelope(error, errors.http_status(error), self._socket.scope["request_id"]))
