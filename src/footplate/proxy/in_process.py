"""Model requests from within the worker's process: admitted, sent and cut as those that come over a connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from footplate.domain.model_transport import Headers, HttpRequest, HttpResponse
from footplate.proxy.exchange import Exchange, Received, Refused, turn_over
from footplate.proxy.grants import Grant


class InProcessTransport:
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def send(self, request: HttpRequest) -> HttpResponse:
        path, _, query = request.path.partition(b"?")
        headers = [(name.lower(), value) for name, value in request.headers]
        received: Received | None = None
        try:
            grant, ask = self._exchange.admit(request.method, path, query, headers)
            async with _while_good(grant, turn_over(ask.provider)):
                received = await self._exchange.send(ask, request.body)
        except Refused as refused:
            if received is not None:
                await received.aclose()
            return _Refusal(refused)
        return _Response(received, grant)


class _Response:
    def __init__(self, received: Received, grant: Grant) -> None:
        self.status = received.status
        self.headers = received.headers
        self._received = received
        self._grant = grant

    async def pieces(self) -> AsyncIterator[bytes]:
        pieces = self._received.pieces()
        while True:
            async with _while_good(self._grant, ConnectionError("The turn ended while its model responded.")):
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece

    async def aclose(self) -> None:
        await self._received.aclose()


class _Refusal:
    def __init__(self, refused: Refused) -> None:
        self.status = refused.status
        self.headers: Headers = refused.headers
        self._body = refused.body

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        """There is nothing to close."""


@asynccontextmanager
async def _while_good(grant: Grant, otherwise: Exception) -> AsyncIterator[None]:
    """Cancels what is inside, and raises `otherwise`, when the turn ends; also if nothing inside had to wait."""
    if grant.ended.done():
        raise otherwise
    loop, inside = asyncio.get_running_loop(), True
    try:
        async with asyncio.timeout(None) as limit:

            def cut(_: object) -> None:
                if inside:
                    limit.reschedule(loop.time())

            grant.ended.add_done_callback(cut)
            try:
                yield
            finally:
                inside = False
                grant.ended.remove_done_callback(cut)
    except TimeoutError as error:
        if not grant.ended.done():
            raise
        raise otherwise from error
    if grant.ended.done():
        raise otherwise
