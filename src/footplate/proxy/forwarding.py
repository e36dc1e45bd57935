"""One model request from a turn to its provider and back: an ASGI application.

Each piece of an answer is passed on as it comes. Whoever ends first ends the other side: a client that leaves, a turn
that is over or lost, a provider that breaks off. An answer that the provider cut is cut here too, never completed.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

import httpx2
import structlog

from footplate.proxy import wire
from footplate.proxy.grants import Grant, Grants
from footplate.proxy.headers import Headers, has_two_lengths
from footplate.proxy.upstream import Ask, Upstream

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

log = structlog.get_logger(__name__)

GRANT: Final = "grant"
"""In the state of a connection that belongs to one turn: then no other turn's token is good on it."""
_ERRORS: Final = 400
_HIGHEST_STATUS: Final = 599
_LONGEST_ERROR: Final = 1_000_000
_MOST_DRAINED: Final = 64 << 20
_DRAIN_SECONDS: Final = 5.0
_NEW_LENGTH: Final = frozenset({b"content-length", b"content-encoding"})


class Refused(Exception):
    def __init__(self, status: int, message: str, provider: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.provider = provider


class Forwarder:
    def __init__(self, grants: Grants, upstream: Upstream) -> None:
        self._grants = grants
        self._upstream = upstream

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        answer, inbox = _Answer(send), _Inbox(receive, scope["headers"])
        try:
            grant, ask = self._admit(scope)
            await self._forward(grant, ask, inbox, answer)
        except Refused as refused:
            if not answer.started:
                await inbox.drain()
                await answer.refuse(refused)

    def _admit(self, scope: Message) -> tuple[Grant, Ask]:
        headers: Headers = scope["headers"]
        if has_two_lengths(headers):
            raise Refused(400, _TWO_LENGTHS)
        provider, path = wire.split(scope["raw_path"])
        token_in, token = wire.given_token(headers)
        grant = self._grants.find(token)
        if grant is None or scope["state"].get(GRANT, grant) is not grant:
            raise Refused(401, _STRANGER, provider)
        if not grant.good:
            raise Refused(503, _NO_LEASE, provider)
        if provider not in wire.WIRES or not wire.WIRES[provider].takes(scope["method"], path):
            log.warning("model request refused", action="proxy.refused", method=scope["method"], provider=provider)
            raise Refused(404, _NO_ROUTE, provider)
        if provider not in self._upstream.providers:
            raise Refused(404, f"This worker has no key for the provider {provider!r}.", provider)
        return grant, Ask(provider, scope["method"], path, scope["query_string"], headers, token_in)

    async def _forward(self, grant: Grant, ask: Ask, inbox: "_Inbox", answer: "_Answer") -> None:
        passing = asyncio.create_task(self._pass(ask, inbox, answer))
        leaving = asyncio.create_task(inbox.gone())
        try:
            await asyncio.wait({passing, leaving, grant.ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            passing.cancel()
            await asyncio.gather(passing, leaving, return_exceptions=True)
        if grant.ended.done():
            raise Refused(503, _NO_LEASE, ask.provider)
        if not passing.cancelled():
            passing.result()

    async def _pass(self, ask: Ask, inbox: "_Inbox", answer: "_Answer") -> None:
        try:
            response = await self._upstream.ask(ask, inbox.body())
        except _Gone:
            return
        except httpx2.TimeoutException as error:
            raise _unreachable(ask, error, 504) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable(ask, error, 502) from error
        try:
            await self._answer(ask, response, answer)
        except httpx2.HTTPError as error:
            # The head has been sent: all that is left is to break off here as well.
            log.warning("model answer cut", action="proxy.cut", provider=ask.provider, error=type(error).__name__)
        finally:
            await response.aclose()

    async def _answer(self, ask: Ask, response: httpx2.Response, answer: "_Answer") -> None:
        blotter = self._upstream.blotter(ask.provider)
        headers = [(name, blotter.clean(value)) for name, value in wire.answered_on(response.headers.raw)]
        status = response.status_code
        if status > _HIGHEST_STATUS:
            raise Refused(502, f"The model's provider answered with the status {status}.", ask.provider)
        if status >= _ERRORS:
            headers = [(name, value) for name, value in headers if name not in _NEW_LENGTH]
            await answer.whole(status, headers, blotter.clean(await _read(response)))
            return
        await answer.start(status, headers)
        async for piece in response.aiter_raw():
            await answer.write(piece)
        await answer.end()


_STRANGER: Final = (
    "This token is not one of a running turn. A turn's token is good while the turn runs, and only where it runs."
)
_TWO_LENGTHS: Final = "The request has more than one Content-Length or Transfer-Encoding. Send exactly one of them."
_NO_LEASE: Final = "This turn is over, or its worker has lost it: nothing is asked on its behalf any more."
"""Not 401: that would be final, and a turn whose worker was held up for a while is to be tried again."""
_NO_ROUTE: Final = "Footplate's model proxy knows no such request. It passes on what asks a model, and nothing else."


def _unreachable(ask: Ask, error: Exception, status: int) -> Refused:
    # The error's own text may hold the address, and that a password.
    log.warning("provider not reached", action="proxy.unreachable", provider=ask.provider, error=type(error).__name__)
    told = f"The model's provider could not be reached, or did not answer ({type(error).__name__})."
    return Refused(status, told, ask.provider)


async def _read(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > _LONGEST_ERROR:
            break
    return bytes(data[:_LONGEST_ERROR])


class _Gone(Exception):
    """The client left while its request was still being read."""


class _Inbox:
    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self._has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in headers)
        self._read = asyncio.Event()

    def body(self) -> AsyncIterator[bytes] | None:
        """Passed on as it comes: nobody here keeps a large one."""
        if self._has_body:
            return self._pieces()
        self._read.set()
        return None

    async def gone(self) -> None:
        """Returns when the client has left; only after the body is there a point in asking."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def drain(self) -> None:
        """Hear a client out before it is refused: one that is still speaking when we close never gets to listen."""
        if not self._has_body or self._read.is_set():
            return
        left = _MOST_DRAINED
        with contextlib.suppress(TimeoutError, _Gone):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for piece in self._pieces():
                    left -= len(piece)
                    if left < 0:
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
        await self.start(status, [*headers, (b"content-length", str(len(body)).encode())])
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(self, refused: Refused) -> None:
        body = wire.error(refused.provider, refused.status, refused.message)
        # Closed, because a body that nobody read may still be on its way.
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await self.whole(refused.status, headers, body)
