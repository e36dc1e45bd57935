"""One-turn sessions run at no less than 0.7 times the rate of bare Temporal workflows."""

from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import open_cluster
from bench.support.speed import rate

_LEAST: Final = 0.7
_SLACK: Final = 3.0
"""How far a sample may miss the limit."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    plan = rate.Plan.of(quick=quick)
    async with open_cluster(environment={"FOOTPLATE_LINGER": str(plan.linger)}) as cluster:
        measured = await rate.measure(cluster, plan, least=_LEAST, slack=_SLACK if quick else 1.0)
    return Figure(text=measured.text, holds=measured.holds, details=measured.details)
