"""One-turn sessions run at 0.7 times the rate of bare Temporal workflows or faster."""

from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import open_cluster
from bench.support.speed import session_rate

_MIN_RATIO: Final = 0.7
_QUICK_SLACK: Final = 3.0
"""The factor by which a sample may miss the limit."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    plan = session_rate.Plan.create(quick=quick)
    async with open_cluster(environment={"FOOTPLATE_LINGER": str(plan.linger)}) as cluster:
        measured = await session_rate.measure(cluster, plan, min_ratio=_MIN_RATIO, slack=_QUICK_SLACK if quick else 1.0)
    return Figure(
        headline=f"{measured.figures['ratio']:.2f} times the rate of bare Temporal workflows (at least {_MIN_RATIO})",
        summary=measured.text,
        holds=measured.holds,
        details=measured.details,
    )
