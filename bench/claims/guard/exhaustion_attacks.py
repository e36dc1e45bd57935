"""Exhaustion attacks, with and without a key, do not exhaust memory, block other clients or hold connections.

Each attack of `bench/support/guard/exhaustion_attacks.py` runs in its own processes against both replicas, while
clients of another organisation read, list and create. Before each attack they are measured without one. Connections
must be freed within 10 seconds.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Final

from bench.prove.figure import Figure, require
from bench.support.cluster import Cluster, open_cluster
from bench.support.guard.exhaustion_attacks import ATTACKS, WITH_KEY, Target
from bench.support.minimal_client import MinimalClient
from bench.support.overhead.idle_streams import allow_many_connections

_ATTACK_SECONDS: Final = 6.0
_CALM_SECONDS: Final = 4.0
_MAX_FREE_SECONDS: Final = 10.0
_SPARE_FILES: Final = 12
"""The connections that honest clients and the database's pool may open in addition."""
_MAX_MB: Final = 600
_MAX_RATIO: Final = 2.0
_PAUSE: Final = 0.03
_MODULE: Final = "bench.support.guard.exhaustion_attacks"
_QUICK: Final = (
    *("headers_without_end", "half_open_connections", "pipelined_requests", "empty_objects"),
    *("many_streams", "streams_with_requests_behind", "socket_pings", "slow_bodies"),
)


@dataclass(slots=True)
class _AttackResults:
    calm: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    freed: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    allow_many_connections()
    names = list(_QUICK) if quick else list(ATTACKS)
    found = _AttackResults()
    async with open_cluster(apis=2, workers=0) as cluster:
        before = [_resident_mb(cluster, api) for api in (0, 1)]
        async with _honest_clients(cluster) as clients:
            attacker = await cluster.create_key("attackers")
            targets = [await _create_target(cluster, api, attacker) for api in (0, 1)]
            await clients.measure(_CALM_SECONDS)  # the first requests fill caches
            for name in names:
                await _run_attack(cluster, clients, targets, name, found, quick=quick)
        after = [_resident_mb(cluster, api) for api in (0, 1)]
    return _figure(names, found, before, after, quick=quick)


async def _run_attack(
    cluster: Cluster, clients: "_HonestClients", targets: list[Target], name: str, found: _AttackResults, *, quick: bool
) -> None:
    calm = await clients.measure(1.0 if quick else _CALM_SECONDS)
    files = [_open_files(cluster, api) for api in (0, 1)]
    peak = asyncio.create_task(_watch_memory(cluster))
    seconds = 1.5 if quick else _ATTACK_SECONDS
    processes = [await _start_attack(name, seconds, target) for target in targets]
    await asyncio.sleep(0.5)  # until they have begun
    attacked = await clients.measure(seconds)
    for process in processes:
        opened, _ = await process.communicate()
        require(holds=process.returncode == 0 and int(opened) > 0, otherwise=f"{name} did not attack")
    ended = time.monotonic()
    while any(_open_files(cluster, api) > files[api] + _SPARE_FILES for api in (0, 1)):
        if time.monotonic() - ended > 3 * _MAX_FREE_SECONDS:
            break
        await asyncio.sleep(0.1)
    found.freed[name] = time.monotonic() - ended
    peak.cancel()
    found.peaks[name] = await _await_result(peak)
    found.calm += calm
    found.attacked += attacked
    found.ratios[name] = _p95(attacked) / _p95(calm)
    found.failures += [f"{name}: {failure}" for failure in clients.collect_failures()]
    print(
        f"  {name}{' (key)' if name in WITH_KEY else ''}: p95 {_p95(calm) * 1e3:.1f} ms, under attack "
        f"{_p95(attacked) * 1e3:.1f} ms, peak {found.peaks[name]:.0f} MB, freed after {found.freed[name]:.1f} s",
        flush=True,
    )


def _figure(names: list[str], found: _AttackResults, before: list[float], after: list[float], *, quick: bool) -> Figure:
    ratio = _p95(found.attacked) / _p95(found.calm)
    worst = max(found.ratios, key=lambda name: found.ratios[name])
    peak, slowest = max(found.peaks.values()), max(found.freed.values())
    holds = peak <= _MAX_MB and not found.failures and slowest <= _MAX_FREE_SECONDS
    headline = f"{len(names)} attacks: at most {peak:.0f} MB, honest requests {ratio:.2f} times slower at p95"
    if found.failures or slowest > _MAX_FREE_SECONDS:
        headline = f"{len(found.failures)} honest requests failed, connections freed after {slowest:.1f} s"
    return Figure(
        headline=headline,
        summary=f"{len(names)} attacks on 2 replicas, {sum(name in WITH_KEY for name in names)} of them with a key: a "
        f"replica used at most {peak:.0f} MB (limit {_MAX_MB}; {max(before):.0f} before, {max(after):.0f} after); "
        f"p95 of {len(found.attacked):,} honest requests {_p95(found.attacked) * 1e3:.1f} ms, {ratio:.2f} times that "
        f"without an attack (limit {_MAX_RATIO:g}; most with {worst}: {found.ratios[worst]:.1f}); "
        f"{len(found.failures)} failed; connections freed after {slowest:.1f} s (limit {_MAX_FREE_SECONDS:.0f})",
        holds=holds and (quick or ratio <= _MAX_RATIO),
        details={
            "p95_ratio": round(ratio, 2),
            "ratios": {name: round(value, 2) for name, value in found.ratios.items()},
            "peak_mb": {name: round(value) for name, value in found.peaks.items()},
            "freed_seconds": {name: round(value, 1) for name, value in found.freed.items()},
            "failures": [*found.failures[:20]],
        },
    )


class _HonestClients:
    """Honest clients, two for each replica, with persistent connections."""

    def __init__(self, clients: list[MinimalClient], session_id: str) -> None:
        self._clients = clients
        self._session_id = session_id
        self._failures: list[str] = []

    async def measure(self, seconds: float) -> list[float]:
        """Returns how long each request took."""
        until = time.monotonic() + seconds
        times = await asyncio.gather(*(self._send_requests(client, until) for client in self._clients))
        return [one for client in times for one in client]

    def collect_failures(self) -> list[str]:
        failures, self._failures = self._failures, []
        return failures

    async def _send_requests(self, client: MinimalClient, until: float) -> list[float]:
        times: list[float] = []
        while time.monotonic() < until or len(times) < 3:
            for request in (self._read, self._list, self._create):
                began = time.perf_counter()
                try:
                    async with asyncio.timeout(30):
                        await request(client)
                except Exception as error:  # noqa: BLE001 - for any reason, an honest client was not served
                    self._failures.append(f"{type(error).__name__} {error}"[:200])
                times.append(time.perf_counter() - began)
                await asyncio.sleep(_PAUSE)
        return times

    async def _read(self, client: MinimalClient) -> None:
        await client.get(f"/v1/sessions/{self._session_id}")

    async def _list(self, client: MinimalClient) -> None:
        await client.get(f"/v1/sessions/{self._session_id}/events")

    async def _create(self, client: MinimalClient) -> None:
        await client.post("/v1/agents", {"name": "honest", "model": "claude-sonnet-4-5"})


@asynccontextmanager
async def _honest_clients(cluster: Cluster) -> AsyncIterator[_HonestClients]:
    key = await cluster.create_key("honest")
    clients = [MinimalClient(url, key) for url in cluster.base_urls for _ in range(2)]
    session = await clients[0].post("/v1/sessions", await clients[0].create_session_fields())
    try:
        yield _HonestClients(clients, session["id"])
    finally:
        for client in clients:
            await client.__aexit__()


async def _create_target(cluster: Cluster, api: int, key: str) -> Target:
    async with MinimalClient(cluster.base_urls[api], key) as client:
        session = await client.post("/v1/sessions", await client.create_session_fields())
    return Target(cluster.ports[api], key, session["id"])


async def _start_attack(name: str, seconds: float, target: Target) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _MODULE, name, str(seconds)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(target)).encode())
    process.stdin.close()
    return process


async def _watch_memory(cluster: Cluster) -> float:
    """Returns the peak memory of both replicas once it is cancelled."""
    peak_mb = 0.0
    try:
        while True:
            peak_mb = max(peak_mb, *(_resident_mb(cluster, api) for api in (0, 1)))
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        return peak_mb


async def _await_result(task: asyncio.Task[float]) -> float:
    return await task


def _resident_mb(cluster: Cluster, api: int) -> float:
    status = Path(f"/proc/{cluster.apis[api].pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1000


def _open_files(cluster: Cluster, api: int) -> int:
    return len(list(Path(f"/proc/{cluster.apis[api].pid}/fd").iterdir()))


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1]
