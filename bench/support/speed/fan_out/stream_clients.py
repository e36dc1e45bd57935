"""Connects many clients to one stream: one here that stores its frames, all others in a separate process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import orjson

from bench.prove.figure import require
from bench.support.minimal_client import Frames, MinimalClient, Received
from bench.support.speed.fan_out import listeners
from bench.support.speed.fan_out.delta_frames import PIECE
from bench.support.speed.measurement import ROOT

_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutResult:
    """Counts and duration over all clients."""

    pieces: int
    frames: int
    seconds: float
    """From the first piece at any client to the last."""
    stored_frames: list[Received] = field(repr=False)

    @property
    def rate(self) -> float:
        return self.pieces / self.seconds


async def measure_fan_out(
    client: MinimalClient, path: str, start: Callable[[], Awaitable[object]], *, clients: int, pieces: int
) -> FanOutResult:
    """Connects all clients, calls `go`, and waits until each has every piece. Raises if any piece is lost."""
    async with asyncio.timeout(_PATIENCE), _start_listeners(client, path, clients - 1, pieces) as listener_output:
        async with client.stream(path) as frames:
            started = asyncio.ensure_future(start())
            stored = await _store_frames(frames, pieces)
            await started
        report = orjson.loads(await listener_output.readline())
    # The finished message, which repeats every piece, may have arrived too: so the frame counts are compared as well.
    complete = [count >= pieces and frames == len(stored) for count, frames, *_ in report]
    require(holds=all(complete), otherwise=f"{complete.count(False)} of {clients} clients did not get every delta")
    first = min(stored[0].at, *(first for *_, first, _ in report))
    last = max(stored[-1].at, *(last for *_, last in report))
    return FanOutResult(
        pieces=pieces * clients,
        frames=len(stored) + sum(frames for _, frames, *_ in report),
        seconds=last - first,
        stored_frames=stored,
    )


async def _store_frames(frames: Frames, pieces: int) -> list[Received]:
    stored = []
    count = 0
    async for frame in frames:
        if frame.event == "event_delta":
            stored.append(frame)
            count += frame.data.count(PIECE.encode())
            if count >= pieces:
                break
    return stored


@asynccontextmanager
async def _start_listeners(
    client: MinimalClient, path: str, count: int, pieces: int
) -> AsyncIterator[asyncio.StreamReader]:
    host, port = client.address
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", listeners.__name__, host, str(port), path, str(count), str(pieces)),
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LISTENER_KEY": client.key},
    )
    assert process.stdout is not None
    try:
        line = await process.stdout.readline()
        require(holds=line.decode().strip() == listeners.READY, otherwise=f"the listeners did not connect: {line!r}")
        yield process.stdout
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
