"""Reads the feed of an organisation over connections that are cut, and resumes after the last frame."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import httpx2
import orjson

from bench.prove.figure import require
from bench.support.cluster import Cluster

Change = dict[str, Any]


@dataclass(slots=True)
class FeedReader:
    """Everything that one client received, over all its connections."""

    clients: list[httpx2.AsyncClient]
    """One for each replica."""
    changes: list[tuple[int, Change]] = field(default_factory=list)
    """With the position of each."""
    delays: dict[tuple[str, int], float] = field(default_factory=dict)
    """Seconds from the time of a change to its frame, by session and position in its log."""
    position: int | None = None
    connections: int = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, cluster: Cluster, key: str | None = None) -> AsyncIterator[Self]:
        headers = {"x-api-key": key or cluster.key}
        clients = [httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) for url in cluster.base_urls]
        try:
            yield cls(clients)
        finally:
            for client in clients:
                await client.aclose()

    async def read(self, replica: int, *, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Reads one connection until it is cut after `seconds`, or until the condition holds."""
        headers = {} if self.position is None else {"last-event-id": str(self.position)}
        self.connections += 1
        try:
            async with (
                asyncio.timeout(seconds),
                self.clients[replica].stream("GET", "/v1/events/stream", headers=headers) as response,
            ):
                require(holds=response.is_success, otherwise=f"the feed returned {response.status_code}")
                await self._read_frames(response, until)
        except TimeoutError:
            return

    async def _read_frames(self, response: httpx2.Response, until: Callable[[], bool]) -> None:
        position = 0
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                position = int(line.removeprefix("id: "))
            elif line.startswith("data: "):
                self._add_frame(position, orjson.loads(line.removeprefix("data: ")))
                if until():
                    return

    def _add_frame(self, position: int, change: Change) -> None:
        require(
            holds=self.position is None or position > self.position or change["type"] == "ping",
            otherwise=f"position {position} arrived after {self.position}",
        )
        self.position = position
        if change["type"] == "ping":
            return
        self.changes.append((position, change))
        if change["processed_at"]:
            at = datetime.fromisoformat(change["processed_at"]).timestamp()
            self.delays[change["session_id"], change["session_position"]] = time.time() - at
