"""Measures the operations whose times are compared, with the minimal HTTP client."""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Final

from bench.support.minimal_client import MinimalClient, Received, events_path

SCRIPT: Final = "size"
_PAGE: Final = 20


class MeasuredDatabase:
    """One database with its own API and worker, and the times measured there."""

    def __init__(self, client: MinimalClient, session_fields: dict[str, str], pick: Callable[[], str]) -> None:
        """`pick` returns the id of a session that has had a turn."""
        self._client = client
        self._seat = session_fields
        self._pick = pick
        self._deep_page = ""
        self.times: dict[str, list[float]] = defaultdict(list)
        self.received: list[Received] = []

    async def find_deep_page(self, pages: int) -> None:
        """Follows the list for some pages, to measure a page far from its start."""
        cursor = ""
        for _ in range(pages):
            page = await self._client.get(f"/v1/sessions?limit=100{cursor}")
            if page["next_page"] is None:
                break
            cursor = f"&page={page['next_page']}"
        self._deep_page = f"/v1/sessions?limit={_PAGE}{cursor}"

    async def run_operations(self) -> None:
        """Runs and measures each operation once."""
        await self._timed("create", lambda: self._client.post("/v1/sessions", self._seat))
        await self._timed("list", lambda: self._client.get(f"/v1/sessions?limit={_PAGE}"))
        await self._timed("deep list", lambda: self._client.get(self._deep_page))
        await self._timed("first frame", self._first_frame)
        await self._turn(self._pick())

    async def _first_frame(self) -> None:
        """Opens the stream of a session with past events and waits for the first of them."""
        async with self._client.stream(events_path(self._pick(), after=0)) as frames:
            self.received.append(await anext(frames))

    async def _turn(self, session_id: str) -> None:
        async with self._client.stream(events_path(session_id)) as frames:
            begun = time.perf_counter()
            await self._timed("send", lambda: self._client.send(session_id, f"Go on [[script:{SCRIPT}]]"))
            self.received.extend(await frames.until_idle())
            self.times["turn"].append(time.perf_counter() - begun)

    async def _timed(self, name: str, call: Callable[[], Awaitable[object]]) -> None:
        begun = time.perf_counter()
        await call()
        self.times[name].append(time.perf_counter() - begun)
