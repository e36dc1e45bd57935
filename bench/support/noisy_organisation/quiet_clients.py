"""The clients of an organisation that sends its usual requests: reads at a fixed rate, and one turn after another."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from bench.support.minimal_client import MinimalClient, events_path

_READS_PER_SECOND: Final = 4.0
"""Of each client."""
_TURN_INTERVAL: Final = 1.0


@dataclass(slots=True)
class ResponseTimes:
    """In seconds."""

    requests: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)

    def add(self, other: "ResponseTimes") -> None:
        self.requests += other.requests
        self.turns += other.turns


@dataclass(frozen=True, slots=True)
class QuietClient:
    """A client of one replica, with a session of its own."""

    http: MinimalClient
    session_id: str

    async def run(self, seconds: float) -> ResponseTimes:
        times = ResponseTimes()
        end = time.monotonic() + seconds
        await asyncio.gather(self._read(times, end), self._run_turns(times, end))
        return times

    async def _read(self, times: ResponseTimes, end: float) -> None:
        due = time.monotonic()
        while due < end:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._measure(times, self.http.get(f"/v1/sessions/{self.session_id}"))
            due += 1 / _READS_PER_SECOND

    async def _run_turns(self, times: ResponseTimes, end: float) -> None:
        due = time.monotonic()
        while due < end:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            async with self.http.stream(events_path(self.session_id)) as frames:
                began = time.monotonic()
                await self._measure(times, self.http.send(self.session_id, "Go. [[script:quiet]]"))
                await frames.until_idle()
                times.turns.append(time.monotonic() - began)
            due = max(due + _TURN_INTERVAL, time.monotonic())

    @staticmethod
    async def _measure(times: ResponseTimes, request: Any) -> None:
        began = time.monotonic()
        await request
        times.requests.append(time.monotonic() - began)


@asynccontextmanager
async def open_quiet_clients(base_urls: Sequence[str], key: str) -> AsyncIterator[Sequence[QuietClient]]:
    """Opens one client for each replica."""
    clients = []
    for base_url in base_urls:
        http = MinimalClient(base_url, key)
        session = await http.post("/v1/sessions", await http.create_session_fields())
        clients.append(QuietClient(http, session["id"]))
    try:
        yield clients
    finally:
        for client in clients:
            await client.http.__aexit__()
