"""Handles model requests of code that runs in the worker process itself, by a direct call instead of a connection.

The checks and the cancellation at the end of a turn are the same as in `model_proxy`, which serves connections.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from footplate.domain.ports.model_transport import Headers, HttpRequest, HttpResponse
from footplate.proxy.model_grants import Grant
from footplate.proxy.provider_gateway import ModelRequestRefused, ProviderGateway, ProviderResponse, turn_ended_refusal


class InProcessModelProxy:
    def __init__(self, gateway: ProviderGateway) -> None:
        self._gateway = gateway

    async def send(self, request: HttpRequest) -> HttpResponse:
        path, _, query = request.path.partition(b"?")
        headers = [(name.lower(), value) for name, value in request.headers]
        received: ProviderResponse | None = None
        try:
            grant, model_request = self._gateway.admit(request.method, path, query, headers)
            async with _cancel_at_turn_end(grant, turn_ended_refusal(model_request.connection.wire_format)):
                received = await self._gateway.send(model_request, request.body)
        except ModelRequestRefused as refused:
            if received is not None:
                await received.aclose()
            return _Refusal(refused)
        return _Response(received, grant)


class _Response:
    def __init__(self, received: ProviderResponse, grant: Grant) -> None:
        self.status = received.status
        self.headers = received.headers
        self._received = received
        self._grant = grant

    async def pieces(self) -> AsyncIterator[bytes]:
        pieces = self._received.pieces()
        while True:
            async with _cancel_at_turn_end(
                self._grant, ConnectionError("The turn ended before the model's response was complete.")
            ):
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece

    async def aclose(self) -> None:
        await self._received.aclose()


class _Refusal:
    def __init__(self, refused: ModelRequestRefused) -> None:
        self.status = refused.status
        self.headers: Headers = refused.headers
        self._body = refused.body

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def _cancel_at_turn_end(grant: Grant, error: Exception) -> AsyncIterator[None]:
    """Cancels the block when the turn ends and raises `error`, even if the block never awaited."""
    if grant.ended.done():
        raise error
    loop, inside = asyncio.get_running_loop(), True
    try:
        async with asyncio.timeout(None) as limit:

            def cancel(_: object) -> None:
                if inside:
                    limit.reschedule(loop.time())

            grant.ended.add_done_callback(cancel)
            try:
                yield
            finally:
                inside = False
                grant.ended.remove_done_callback(cancel)
    except TimeoutError as cut_off:
        if not grant.ended.done():
            raise
        raise error from cut_off
    if grant.ended.done():
        raise error
