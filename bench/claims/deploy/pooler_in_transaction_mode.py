"""PostgreSQL behind pgbouncer in transaction mode: processes are killed as without it, and requests cost little more.

The same load goes to an API with a pooler and to one without, in turns of a few seconds. No worker runs meanwhile.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Final

from bench.claims.core import kill_any_process
from bench.prove.figure import Figure
from bench.support.cluster import Cluster, open_cluster, share_stack
from bench.support.minimal_client import MinimalClient
from bench.support.speed.measurement import median
from footplate.failpoints import POINTS

_CONNECTIONS: Final = 6
"""Of the pooler to PostgreSQL. One API and two workers would open up to 30."""
_CLIENTS: Final = 16
_MIN_RATIO: Final = 0.7
_CRASHES: Final = kill_any_process.Size(
    measured=2, at_random_times=20, at_points=POINTS, apis=10, temporal=3, postgres=5, redis=3
)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with share_stack(enabled=True):
        crashes = await kill_any_process.prove_at(
            kill_any_process.QUICK if quick else _CRASHES, pooled_connections=_CONNECTIONS
        )
        direct, pooled = await _measure_throughput(blocks=3 if quick else 12, seconds=1 if quick else 5)
    ratio = median([one / other for one, other in zip(pooled, direct, strict=True)])
    throughput = (
        f"{median(pooled):.0f} requests per second of {_CLIENTS} clients through {_CONNECTIONS} connections of the "
        f"pooler, {median(direct):.0f} without it: {ratio:.2f} times (limit {_MIN_RATIO})"
    )
    return Figure(
        headline=f"{'no fault' if crashes.holds else 'faults'} under kills; {ratio:.2f} times the direct throughput",
        summary=f"{crashes.summary}; {throughput}",
        holds=crashes.holds and ratio >= (_MIN_RATIO / 2 if quick else _MIN_RATIO),
        details={
            "crashes": crashes.details,
            "direct": [round(rate, 1) for rate in direct],
            "pooled": [round(rate, 1) for rate in pooled],
            "ratio": ratio,
        },
    )


async def _measure_throughput(*, blocks: int, seconds: float) -> tuple[list[float], list[float]]:
    """Returns the requests per second of each block, without and with a pooler."""
    async with AsyncExitStack() as exits:
        sides = [
            _Side(await exits.enter_async_context(open_cluster(workers=0, pooled_connections=connections)))
            for connections in (0, _CONNECTIONS)
        ]
        for side in sides:
            await side.run(seconds)
        rates: tuple[list[float], list[float]] = ([], [])
        for number in range(blocks):
            for index in (0, 1) if number % 2 else (1, 0):
                rates[index].append(await sides[index].run(seconds))
    return rates


class _Side:
    def __init__(self, cluster: Cluster) -> None:
        self._clients = [MinimalClient(cluster.base_urls[0], cluster.key) for _ in range(_CLIENTS)]

    async def run(self, seconds: float) -> float:
        """Returns the number of requests per second."""
        began = time.monotonic()
        fields = await self._clients[0].create_session_fields()
        counts = await asyncio.gather(*[_send_until(began + seconds, client, fields) for client in self._clients])
        return sum(counts) / (time.monotonic() - began)


async def _send_until(end: float, client: MinimalClient, fields: dict[str, str]) -> int:
    """Creates sessions, sends a message to each and reads it. Returns the number of requests."""
    requests = 0
    while time.monotonic() < end:
        session_id = (await client.post("/v1/sessions", fields))["id"]
        await client.send(session_id, "Please look at the file that I have just written.")
        await client.get(f"/v1/sessions/{session_id}")
        await client.get("/v1/sessions?limit=20")
        requests += 4
    return requests
