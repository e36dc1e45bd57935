"""An ASGI application that forwards one model request from a turn to its provider and streams the response back.

Each chunk of the response is forwarded as it arrives. If the client or the provider closes its connection, the other
connection is closed as well. Both are closed when the turn ends or loses its lease. If the provider's response is cut
off, the client's response is cut off too, so that the client does not take it for complete.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from footplate.proxy.hop_by_hop_headers import Headers
from footplate.proxy.model_grants import Grant
from footplate.proxy.provider_client import ModelRequest
from footplate.proxy.provider_gateway import ModelRequestRefused, ProviderGateway, turn_ended_refusal

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

GRANT_STATE_KEY: Final = "grant"
"""Key in the state of a connection that belongs to one turn. The tokens of other turns are rejected on it."""
_MAX_DRAINED_BYTES: Final = 64 << 20
_DRAIN_SECONDS: Final = 5.0


class ModelRequestForwarder:
    def __init__(self, gateway: ProviderGateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        response, request_body = _ResponseWriter(send), _RequestBody(receive, scope["headers"])
        try:
            grant, request = self._admit(scope)
            await self._forward(grant, request, request_body, response)
        except ModelRequestRefused as refused:
            if not response.started:
                await request_body.drain()
                await response.refuse(refused)

    def _admit(self, scope: Message) -> tuple[Grant, ModelRequest]:
        return self._gateway.admit(
            scope["method"],
            scope["raw_path"],
            scope["query_string"],
            scope["headers"],
            bound_to=scope["state"].get(GRANT_STATE_KEY),
        )

    async def _forward(
        self, grant: Grant, request: ModelRequest, request_body: "_RequestBody", response: "_ResponseWriter"
    ) -> None:
        relaying = asyncio.create_task(self._relay_response(request, request_body, response))
        disconnected = asyncio.create_task(request_body.wait_for_disconnect())
        try:
            await asyncio.wait({relaying, disconnected, grant.ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnected.cancel()
            relaying.cancel()
            await asyncio.gather(relaying, disconnected, return_exceptions=True)
        if grant.ended.done():
            raise turn_ended_refusal(request.connection.wire_format)
        if not relaying.cancelled():
            relaying.result()

    async def _relay_response(
        self, request: ModelRequest, request_body: "_RequestBody", response: "_ResponseWriter"
    ) -> None:
        try:
            received = await self._gateway.send(request, request_body.open_stream())
        except _ClientDisconnected:
            return
        try:
            if received.error is not None:
                await response.send_complete(received.status, received.headers, received.error)
                return
            await response.start(received.status, received.headers)
            # The headers have been sent, so an aborted response can only be aborted here as well.
            with contextlib.suppress(ConnectionError):
                async for piece in received.pieces():
                    await response.write(piece)
                await response.end()
        finally:
            await received.aclose()


class _ClientDisconnected(Exception):
    """The client disconnected while its request was still being read."""


class _RequestBody:
    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self._has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in headers)
        self._is_read = asyncio.Event()

    def open_stream(self) -> AsyncIterator[bytes] | None:
        """Returns the body as a stream. It is forwarded in chunks, so a large one is never held in memory."""
        if self._has_body:
            return self._read_chunks()
        self._is_read.set()
        return None

    async def wait_for_disconnect(self) -> None:
        """Waits until the client disconnects. This can be detected only after the body was read."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def drain(self) -> None:
        """Reads the rest of the request before it is refused. A client that is still sending when the connection closes
        would not read the response.
        """
        if not self._has_body or self._is_read.is_set():
            return
        remaining = _MAX_DRAINED_BYTES
        with contextlib.suppress(TimeoutError, _ClientDisconnected):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for piece in self._read_chunks():
                    remaining -= len(piece)
                    if remaining < 0:
                        return

    async def _read_chunks(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _ClientDisconnected
            more = message.get("more_body", False)
            if piece := message.get("body", b""):
                yield piece
        self._is_read.set()


class _ResponseWriter:
    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def start(self, status: int, headers: Headers) -> None:
        self.started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, piece: bytes) -> None:
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def send_complete(self, status: int, headers: Headers, body: bytes) -> None:
        await self.start(status, headers)
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(self, refused: ModelRequestRefused) -> None:
        # Close the connection, because an unread body may still be arriving.
        await self.send_complete(refused.status, [*refused.headers, (b"connection", b"close")], refused.body)
