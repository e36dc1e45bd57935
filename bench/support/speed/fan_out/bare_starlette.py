"""A plain broadcast of server-sent events for comparison: Starlette with a queue and an async generator per client.

Run it as a module with the argument PORT: `GET /stream` listens, and `POST /broadcast` sends `{"frames": …}` frames.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bench.support.speed.fan_out.delta_frames import PIECE
from footplate.stream import sse

_QUEUE = 256
_EVENT_ID = "sevt_01m7ej25hvehmt4fr891r7s64t"

queues: set[asyncio.Queue[bytes]] = set()


async def stream(_: Request) -> Response:
    async def frames() -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue(_QUEUE)
        queues.add(queue)
        try:
            yield b": hello\n\n"
            while True:
                yield await queue.get()
        finally:
            queues.discard(queue)

    return StreamingResponse(frames(), media_type="text/event-stream")


async def broadcast(request: Request) -> Response:
    """Sends each frame to all clients. A slow client delays the others, as in any plain implementation."""
    count = (await request.json())["frames"]
    for number in range(count):
        frame = sse.encode_preview_delta(4, _EVENT_ID, PIECE, offset=(number + 1) * len(PIECE))
        for queue in tuple(queues):
            await queue.put(frame)
    return JSONResponse({})


if __name__ == "__main__":
    app = Starlette(
        routes=[
            Route("/stream", stream),
            Route("/broadcast", broadcast, methods=["POST"]),
            Route("/", lambda _: Response()),
        ]
    )
    port = int(sys.argv[1])
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        loop="uvloop",
        http="httptools",
        timeout_graceful_shutdown=1,
    )
