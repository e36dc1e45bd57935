"""Measures the cost of a fork, in request time and bytes in every store, for a short and a long parent."""

import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import Final

from bench.support.cluster import Cluster
from bench.support.minimal_client import MinimalClient, events_path, message
from bench.support.store_writes import BytesWritten, StoreWriteMeter
from footplate.domain.json import JsonObject
from footplate.engine.temporal.session_waker import workflow_id
from footplate.wiring import DEFAULT_ORGANISATION

SHORT: Final = 10
_SCRIPT: Final = "linear"


@dataclass(frozen=True, slots=True)
class ForkCosts:
    turns: int
    """The turns of the long parent."""
    short: list[float]
    long: list[float]
    bytes_short: float
    """Bytes of a fork and its first turn, less those of a usual first turn."""
    bytes_long: float
    written: JsonObject

    @property
    def ratio(self) -> float:
        return median(self.long) / median(self.short)


class ForkMeasurement:
    def __init__(self, cluster: Cluster, client: MinimalClient, seat: dict[str, str]) -> None:
        self._cluster = cluster
        self._client = client
        self._seat = seat

    async def create_parent(self, turns: int) -> str:
        session = await self._client.post("/v1/sessions", self._seat)
        for _ in range(turns):
            await self._turn(session["id"])
        return str(session["id"])

    async def measure(self, *, turns: int, forks: int, writes: int) -> ForkCosts:
        short, long = await self.create_parent(SHORT), await self.create_parent(turns)
        times: dict[str, list[float]] = {short: [], long: []}
        for parent in (short, long) * 5:  # both warm
            await self._fork(parent)
        for number in range(forks):
            # Alternates, so that the machine's speed is the same for both; at the newest event and in the middle.
            for parent in (short, long):
                position = {"at_position": 30} if number % 2 else {}
                began = time.perf_counter()
                await self._client.post(f"/v1/sessions/{parent}/fork", position)
                times[parent].append(time.perf_counter() - began)
        usual = await self._first_turns(None, writes)
        of_short, of_long = await self._first_turns(short, writes), await self._first_turns(long, writes)
        return ForkCosts(
            turns,
            times[short],
            times[long],
            (of_short.total - usual.total) / writes,
            (of_long.total - usual.total) / writes,
            {"usual": {**asdict(usual)}, "short": {**asdict(of_short)}, "long": {**asdict(of_long)}},
        )

    async def _first_turns(self, parent: str | None, count: int) -> BytesWritten:
        """Returns the bytes written by forks with their first turns, or without a parent by first turns of new
        sessions.
        """
        fresh = [] if parent else [(await self._client.post("/v1/sessions", self._seat))["id"] for _ in range(count)]
        stores = await StoreWriteMeter.open(self._cluster, "none")  # the history is measured below
        await stores.begin()
        made = []
        for number in range(count):
            session_id = await self._fork(parent) if parent else fresh[number]
            await self._turn(session_id)
            made.append(session_id)
        written = await stores.end()
        await stores.aclose()
        return BytesWritten(
            **{**asdict(written), "history": sum([await self._read_history_bytes(each) for each in made])}
        )

    async def _read_history_bytes(self, session_id: str) -> int:
        stores = await StoreWriteMeter.open(self._cluster, workflow_id(DEFAULT_ORGANISATION, session_id))
        try:
            await stores.record_runs()
            return sum(stores._runs.values())
        finally:
            await stores.aclose()

    async def _fork(self, parent: str) -> str:
        return str((await self._client.post(f"/v1/sessions/{parent}/fork", {}))["id"])

    async def _turn(self, session_id: str) -> None:
        async with self._client.stream(events_path(session_id)) as frames:
            body = {"events": [message(f"And now? [[script:{_SCRIPT}]]")]}
            await self._client.post(f"/v1/sessions/{session_id}/events", body)
            await frames.until_idle()
