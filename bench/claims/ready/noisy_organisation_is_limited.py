"""An organisation that sends 20 times its share is held to its limits, and the others' p95 grows by 1.2 times at most.

Three organisations have the same limits. Two send their usual requests on two replicas; the third floods both with 50
clients. The usual response times are measured before and after the flood, so that other work on the machine affects
both alike. The use of each limit is read from PostgreSQL and Redis meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support.cluster import Cluster, open_cluster
from bench.support.minimal_client import MinimalClient
from bench.support.noisy_organisation.flood import FloodCounts, FloodPlan, run_flood
from bench.support.noisy_organisation.quiet_clients import QuietClient, ResponseTimes, open_quiet_clients
from bench.support.speed.measurement import milliseconds, quantile
from footplate.domain.organisations.limits import RATE_WINDOW_SECONDS, AppliedLimit, LimitName
from footplate.store.database import Database
from footplate.store.resources.limits import LimitStore
from footplate.stream import redis_connections
from footplate.stream.organisation_counters import StreamCounts
from footplate.testing import replies, reply, sleep, text

_NOISY: Final = "noisy"
_QUIET: Final = ("quiet-a", "quiet-b")
_SHARE: Final = 10
"""Requests per second."""
_EXCESS: Final = 20
_CLIENTS: Final = 50
_LIMITS: Final[Mapping[LimitName, int]] = {
    LimitName.CONCURRENT_TURNS: 2,
    LimitName.QUEUED_STEPS: 10,
    LimitName.SESSIONS: 12,
    LimitName.STREAMS: 5,
    LimitName.REQUESTS_PER_SECOND: _SHARE,
    LimitName.STORED_BYTES: 50_000,
}
_SESSIONS: Final = 8
_SECONDS, _SECONDS_QUICK = 120.0, 8.0
_TURN_SECONDS: Final = 4.0
_MAX_DEVIATION: Final = 0.05
_MAX_GROWTH: Final = 1.2
_SAMPLE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Measured:
    usual: ResponseTimes
    flooded: ResponseTimes
    flood: FloodCounts
    highest: Mapping[LimitName, int]
    """The highest use of each limit by the noisy organisation."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with open_cluster(apis=2, workers=2) as cluster, AsyncExitStack() as exits:
        await cluster.model.install("quiet", replies(reply(sleep(0.1), text("Yes.", chunks=1), repeat=True)))
        await cluster.model.install("noisy", replies(reply(sleep(_TURN_SECONDS), text("Yes.", chunks=1), repeat=True)))
        keys = {name: await cluster.create_key(name) for name in (_NOISY, *_QUIET)}
        for name, key in keys.items():
            await _set_limits(cluster, key, noisy=name == _NOISY)
        quiet = [
            client
            for name in _QUIET
            for client in await exits.enter_async_context(open_quiet_clients(cluster.base_urls, keys[name]))
        ]
        seconds = _SECONDS_QUICK if quick else _SECONDS
        measured = await _measure(cluster, quiet, await _plan_flood(cluster, keys[_NOISY], seconds), seconds)
    return _figure(measured, quick=quick)


async def _set_limits(cluster: Cluster, key: str, *, noisy: bool) -> None:
    """The quiet organisations have the same share of requests, and room for their sessions and streams."""
    async with MinimalClient(cluster.base_urls[0], key) as http:
        for name, value in _LIMITS.items():
            await http.post("/v1/limits", {"name": name, "value": value if noisy else 2 * value})


async def _plan_flood(cluster: Cluster, key: str, seconds: float) -> FloodPlan:
    async with MinimalClient(cluster.base_urls[0], key) as http:
        fields = await http.create_session_fields()
        sessions = [(await http.post("/v1/sessions", fields))["id"] for _ in range(_SESSIONS)]
    return FloodPlan(
        base_urls=cluster.base_urls,
        key=key,
        session_ids=sessions,
        session_fields=fields,
        clients=_CLIENTS,
        requests_per_second=_SHARE * _EXCESS,
        warm_up_seconds=RATE_WINDOW_SECONDS + 1.0,
        seconds=seconds,
        stream_seconds=10.0,
        upload_bytes=5_000,
    )


async def _measure(cluster: Cluster, quiet: Sequence[QuietClient], plan: FloodPlan, seconds: float) -> _Measured:
    async with _sampled_use(cluster) as highest:
        usual = await _run_quiet_clients(quiet, seconds / 2)
        flood = asyncio.create_task(run_flood(plan))
        await asyncio.sleep(plan.warm_up_seconds)
        flooded = await _run_quiet_clients(quiet, seconds)
        counts = await flood
        await asyncio.sleep(_TURN_SECONDS * _LIMITS[LimitName.QUEUED_STEPS] / _LIMITS[LimitName.CONCURRENT_TURNS])
        usual.add(await _run_quiet_clients(quiet, seconds / 2))
    return _Measured(usual, flooded, counts, highest)


async def _run_quiet_clients(quiet: Sequence[QuietClient], seconds: float) -> ResponseTimes:
    times = ResponseTimes()
    for found in await asyncio.gather(*(client.run(seconds) for client in quiet)):
        times.add(found)
    return times


@asynccontextmanager
async def _sampled_use(cluster: Cluster) -> AsyncIterator[Mapping[LimitName, int]]:
    """Samples what the noisy organisation uses, and yields the highest values so far."""
    highest: dict[LimitName, int] = dict.fromkeys(
        (name for name in LimitName if name is not LimitName.REQUESTS_PER_SECOND), 0
    )
    database = await Database.open(cluster.settings.database_url, size=1)
    redis = redis_connections.create_command_client(cluster.settings.redis_url)
    store, streams = LimitStore(database), StreamCounts(redis)
    open_streams = AppliedLimit(LimitName.STREAMS, 0, _NOISY)

    async def sample() -> None:
        while True:
            for name, highest_used in highest.items():
                if name is LimitName.STREAMS:
                    used = await streams.count_open(open_streams) or 0
                else:
                    used = sum((await store.count_used(_NOISY, name)).values())
                highest[name] = max(highest_used, used)
            await asyncio.sleep(_SAMPLE_SECONDS)

    sampling = asyncio.create_task(sample())
    try:
        yield highest
    finally:
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)
        await redis.aclose()
        await database.close()


def _figure(measured: _Measured, *, quick: bool) -> Figure:
    flood, usual, flooded = measured.flood, measured.usual, measured.flooded
    sent = flood.sent / flood.counted_seconds
    accepted = (flood.sent - flood.refused.get(LimitName.REQUESTS_PER_SECOND, 0)) / flood.counted_seconds
    deviation = accepted / _SHARE - 1
    exceeded = [name for name, used in measured.highest.items() if used > _LIMITS[name]]
    untested = [name for name, used in measured.highest.items() if not quick and not _is_reached(name, used)]
    before, meanwhile = quantile(usual.requests, 0.95), quantile(flooded.requests, 0.95)
    turns_before, turns_meanwhile = quantile(usual.turns, 0.95), quantile(flooded.turns, 0.95)
    growth, turn_growth = meanwhile / before, turns_meanwhile / turns_before
    for fault in flood.faults[:5]:
        print(f"  FAULT {fault}", flush=True)
    uses = ", ".join(f"{used} of {_LIMITS[name]} {name}" for name, used in measured.highest.items())
    refused = ", ".join(f"{count} by {name}" for name, count in sorted(flood.refused.items()))
    return Figure(
        headline=f"{sent:.0f} requests/s: {accepted:.1f} of {_SHARE} accepted; others' p95 {growth:.2f} times",
        summary=f"an organisation with a share of {_SHARE} requests/s sent {sent:.0f}/s with {_CLIENTS} clients on two "
        f"replicas: {accepted:.2f}/s were accepted, {deviation:+.1%} from its limit (at most {_MAX_DEVIATION:.0%}); "
        f"refused {refused}, in {milliseconds(quantile(flood.refused_seconds or [0.0], 0.5))} ms (median); highest use "
        f"{uses}; p95 of the requests of the other organisations {milliseconds(before)} ms before and after and "
        f"{milliseconds(meanwhile)} ms meanwhile, {growth:.2f} times (at most {_MAX_GROWTH}); of their turns "
        f"{milliseconds(turns_before)} and {milliseconds(turns_meanwhile)} ms, {turn_growth:.2f} times; "
        f"{len(flood.faults)} faults, {len(exceeded)} limits exceeded, {len(untested)} not reached",
        holds=not (flood.faults or exceeded or untested)
        and abs(deviation) <= time_limit(_MAX_DEVIATION, quick=quick)
        and max(growth, turn_growth) <= time_limit(_MAX_GROWTH, quick=quick),
        details={
            "accepted_per_second": accepted,
            "sent": flood.sent,
            "refused": {**flood.refused},
            "highest": {name.value: used for name, used in measured.highest.items()},
            "requests": [len(usual.requests), len(flooded.requests)],
            "turns": [len(usual.turns), len(flooded.turns)],
            "faults": [*flood.faults[:20]],
        },
    )


def _is_reached(name: LimitName, used: int) -> bool:
    """Whether the flood has used a limit up, so that it was tested. The last file may not have fit."""
    return used >= _LIMITS[name] * (0.9 if name is LimitName.STORED_BYTES else 1)
