"""A streaming response that holds a resource open, such as a git process or a slot of a limited pool.

The resource is closed when the response ends, even if no byte was sent. With a plain generator, a client that
disconnects before the first byte would leave the resource open until garbage collection.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class ResourceStream(StreamingResponse):
    def __init__(self, chunks: AsyncIterator[bytes], resource: AsyncExitStack, *, media_type: str) -> None:
        super().__init__(chunks, media_type=media_type)
        self._resource = resource

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._resource:
            await super().__call__(scope, receive, send)


async def stream_resource(
    resource: AbstractAsyncContextManager[AsyncIterator[bytes]], *, media_type: str
) -> ResourceStream:
    """Opens the resource and reads its first bytes, so that a failure before them becomes an error response."""
    async with AsyncExitStack() as exit_stack:
        chunks = await exit_stack.enter_async_context(resource)
        first = await anext(chunks, b"")
        return ResourceStream(_chain(first, chunks), exit_stack.pop_all(), media_type=media_type)


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk
