"""Streams bytes from a resource that stays open meanwhile, such as a git process or a slot of a limited pool.

The resource is closed with the response, even if no byte was sent. A plain generator whose client disconnects before
the first byte would hold it open until garbage collection.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class OpenedStream(StreamingResponse):
    def __init__(self, pieces: AsyncIterator[bytes], until: AsyncExitStack, *, media_type: str) -> None:
        super().__init__(pieces, media_type=media_type)
        self._until = until

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._until:
            await super().__call__(scope, receive, send)


async def streamed(opening: AbstractAsyncContextManager[AsyncIterator[bytes]], *, media_type: str) -> OpenedStream:
    """Opens the resource and reads its first bytes, so that a failure before them becomes an error response."""
    async with AsyncExitStack() as opened:
        pieces = await opened.enter_async_context(opening)
        first = await anext(pieces, b"")
        return OpenedStream(_all(first, pieces), opened.pop_all(), media_type=media_type)


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece
