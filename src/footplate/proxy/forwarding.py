"""Forwards one model request from a turn to its provider and streams the response back. An ASGI application.

Each chunk of a response is forwarded as it arrives. When one side ends, the other is closed: a client that disconnects,
a turn that ended or lost its lease, a provider that aborts. A truncated response stays truncated and is never completed
here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from footplate.proxy.gateway import ProviderGateway, Refused, turn_ended_refusal
from footplate.proxy.grants import Grant
from footplate.proxy.headers import Headers
from footplate.proxy.upstream import Ask

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

GRANT: Final = "grant"
"""Key in the state of a connection that belongs to one turn. The tokens of other turns are rejected on it."""
_MOST_DRAINED: Final = 64 << 20
_DRAIN_SECONDS: Final = 5.0


class Forwarder:
    def __init__(self, gateway: ProviderGateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        response, request_body = _Answer(send), _Inbox(receive, scope["headers"])
        try:
            grant, request = self._admit(scope)
            await self._forward(grant, request, request_body, response)
        except Refused as refused:
            if not response.started:
                await request_body.drain()
                await response.refuse(refused)

    def _admit(self, scope: Message) -> tuple[Grant, Ask]:
        return self._gateway.admit(
            scope["method"],
            scope["raw_path"],
            scope["query_string"],
            scope["headers"],
            bound_to=scope["state"].get(GRANT),
        )

    async def _forward(self, grant: Grant, request: Ask, request_body: "_Inbox", response: "_Answer") -> None:
        relaying = asyncio.create_task(self._pass(request, request_body, response))
        disconnected = asyncio.create_task(request_body.gone())
        try:
            await asyncio.wait({relaying, disconnected, grant.ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnected.cancel()
            relaying.cancel()
            await asyncio.gather(relaying, disconnected, return_exceptions=True)
        if grant.ended.done():
            raise turn_ended_refusal(request.provider)
        if not relaying.cancelled():
            relaying.result()

    async def _pass(self, request: Ask, request_body: "_Inbox", response: "_Answer") -> None:
        try:
            received = await self._gateway.send(request, request_body.body())
        except _Gone:
            return
        try:
            if received.error is not None:
                await response.whole(received.status, received.headers, received.error)
                return
            await response.start(received.status, received.headers)
            # The headers have been sent, so an aborted response can only be aborted here as well.
            with contextlib.suppress(ConnectionError):
                async for piece in received.pieces():
                    await response.write(piece)
                await response.end()
        finally:
            await received.aclose()


class _Gone(Exception):
    """The client disconnected while its request was still being read."""


class _Inbox:
    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self._has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in headers)
        self._read = asyncio.Event()

    def body(self) -> AsyncIterator[bytes] | None:
        """Returns the body as a stream. It is forwarded in chunks, so a large one is never held in memory."""
        if self._has_body:
            return self._pieces()
        self._read.set()
        return None

    async def gone(self) -> None:
        """Waits until the client disconnects. This can be detected only after the body was read."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def drain(self) -> None:
        """Reads the rest of the request before it is refused. A client that is still sending when the connection closes
        would not read the response.
        """
        if not self._has_body or self._read.is_set():
            return
        remaining = _MOST_DRAINED
        with contextlib.suppress(TimeoutError, _Gone):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for piece in self._pieces():
                    remaining -= len(piece)
                    if remaining < 0:
                        return

    async def _pieces(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            more = message.get("more_body", False)
            if piece := message.get("body", b""):
                yield piece
        self._read.set()


class _Answer:
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

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        await self.start(status, headers)
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(self, refused: Refused) -> None:
        # Close the connection, because an unread body may still be arriving.
        await self.whole(refused.status, [*refused.headers, (b"connection", b"close")], refused.body)
