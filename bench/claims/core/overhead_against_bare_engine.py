"""Durability is cheap: session rate, time to first token, and rate and delay of deltas, against bare libraries.

Four measurements run one after the other on one stack. Each ratio is against the bare library in the same run. Each
module of `bench.support.speed` describes its measurement.
"""

from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

from bench.prove.figure import Figure, time_limit
from bench.support import cluster as clusters
from bench.support.cluster import open_cluster
from bench.support.speed import delta_latency, first_token, session_rate
from bench.support.speed.fan_out import delta_rate
from bench.support.speed.measurement import Measurement

_QUICK_SLACK: Final = 3.0
_MIN_RATE: Final = 0.4
_FIRST_TOKEN_LIMITS: Final = first_token.Limits(open_ms=40, new_ms=110)
_TITLES: Final = {"a": "session rate", "b": "first token", "c": "rate of deltas", "d": "delay of deltas"}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    slack = _QUICK_SLACK if quick else 1.0
    no_limit = time_limit(1.0, quick=quick)
    found: dict[str, Measurement] = {}
    async with AsyncExitStack() as exits:
        if not clusters._shared:
            await exits.enter_async_context(clusters.share_stack(enabled=True))
        plan = session_rate.Plan.create(quick=quick)
        async with open_cluster(environment={"FOOTPLATE_LINGER": str(plan.linger)}) as cluster:
            found["a"] = await _measure_and_print(
                "a", session_rate.measure(cluster, plan, min_ratio=_MIN_RATE, slack=slack)
            )
        async with open_cluster() as cluster:
            found["b"] = await _measure_and_print(
                "b", first_token.measure(cluster, _FIRST_TOKEN_LIMITS, samples=4 if quick else 100, slack=no_limit)
            )
            found["c"] = await _measure_and_print(
                "c",
                delta_rate.measure(
                    cluster,
                    clients=20 if quick else delta_rate.CLIENTS,
                    pieces=500 if quick else 5000,
                    rounds=1 if quick else 5,
                    slack=slack,
                ),
            )
            found["d"] = await _measure_and_print(
                "d",
                delta_latency.measure(
                    cluster,
                    sessions=10 if quick else delta_latency.SESSIONS,
                    seconds=4 if quick else 45,
                    slack=no_limit,
                ),
            )
    headline = (
        f"{found['a'].figures['ratio']:.2f} of bare Temporal's rate; first token "
        f"{found['b'].figures['added_open_ms']:.0f} ms later than bare pydantic-ai"
    )
    if failed := [_TITLES[name] for name, measured in found.items() if not measured.holds]:
        headline = f"outside the limits: {', '.join(failed)}"
    return Figure(
        headline=headline,
        summary="; ".join(f"({name}) {measured.text}" for name, measured in found.items()),
        holds=all(measured.holds for measured in found.values()),
        details={name: {**measured.details, "holds": measured.holds} for name, measured in found.items()},
    )


async def _measure_and_print(name: str, measurement: Coroutine[Any, Any, Measurement]) -> Measurement:
    measured = await measurement
    print(f"({name}) {measured.text}", flush=True)
    return measured
