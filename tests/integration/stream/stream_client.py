"""A raw client of a stream hub: reads frames, remembers the last id and records the sequence numbers."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from footplate.domain.ports.api import Cursor, EventStreams
from footplate.stream import sse

ORGANISATION = "org_1"
ALL = frozenset({"agent.message", "agent.thinking"})


@dataclass(frozen=True)
class Received:
    event: str
    id: str
    data: Any

    @property
    def cursor(self) -> Cursor:
        return sse.parse_cursor(self.id)

    @property
    def durable(self) -> bool:
        return self.cursor.preview_id is None


def parse(chunk: bytes) -> list[Received]:
    received = []
    for frame in chunk.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in frame.split("\n"))
        received.append(Received(fields["event"], fields["id"], json.loads(fields["data"])))
    return received


class Client:
    """One connection. `frames` is closed with it."""

    def __init__(
        self,
        tails: EventStreams,
        session_id: str,
        *,
        cursor: Cursor | None = None,
        deltas: frozenset[str] = ALL,
        organisation: str = ORGANISATION,
    ) -> None:
        self._frames: AsyncIterator[bytes] = tails.frames(organisation, session_id, cursor=cursor, deltas=deltas)
        self._queue: list[Received] = []
        self.seen: list[Received] = []
        self.seqs: list[int] = []
        self.began_at: int | None = None
        """The first position, which only a stream without a cursor reports."""

    async def open(self) -> "Client":
        first = await anext(self._frames)
        self.began_at = parse(first)[0].cursor.seq if first else None
        return self

    async def next(self, seconds: float = 30) -> Received:
        async with asyncio.timeout(seconds):
            while not self._queue:
                self._queue = parse(await anext(self._frames))
        received = self._queue.pop(0)
        self.seen.append(received)
        if received.durable:
            self.seqs.append(received.cursor.seq)
        return received

    async def until(self, event: str, seconds: float = 30) -> list[Received]:
        """Returns all frames up to the next one of that type."""
        received = []
        while True:
            received.append(await self.next(seconds))
            if received[-1].event == event:
                return received

    async def until_seq(self, seq: int, seconds: float = 30) -> None:
        while not self.seqs or self.seqs[-1] < seq:
            await self.next(seconds)

    async def chunk(self) -> bytes:
        return await anext(self._frames)

    async def close(self) -> None:
        await self._frames.aclose()  # pyrefly: ignore[missing-attribute]
