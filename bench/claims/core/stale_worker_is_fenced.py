"""A worker that was cut off and comes back changes nothing, and its tools were dead before another took over."""

import random
from collections import Counter
from typing import Final

from bench.prove.figure import Figure
from bench.support import backends
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.crash import fencing
from bench.support.crash.fencing import Trial, stop_at
from bench.support.crash.findings import histogram
from footplate.failpoints import POINTS

SETTINGS: Final = {"FOOTPLATE_HEARTBEAT_TIMEOUT": "3", "FOOTPLATE_LEASE": "1.5", "FOOTPLATE_RETRY_WAIT": "0.2"}
# A stopped worker goes on to be offered work, and each offer costs a heartbeat: with more of the others it is fewer.
_WORKERS: Final = 4
_TRIALS: Final = 40
_QUICK_POINTS: Final = ("in_tool",)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    return await prove_in(backends.default(), quick=quick)


async def prove_in(backend: str, *, quick: bool) -> Figure:
    late = list(_QUICK_POINTS) if quick else list(POINTS) * (_TRIALS // len(POINTS))
    early = [] if quick else list(POINTS)
    plan = [*((point, False) for point in late), *((point, True) for point in early)]
    random.shuffle(plan)
    async with (
        backends.settings(backend) as settings,
        open_cluster(apis=1, workers=2 if quick else _WORKERS, environment={**SETTINGS, **settings}) as cluster,
        Client(cluster) as client,
    ):
        for name, script in fencing.scripts().items():
            await cluster.model.install(name, script)
        agent = await client.agent()
        trials = []
        for point, wake_early in plan:
            trial = await stop_at(cluster, client, agent, point, wake_early=wake_early)
            for fault in trial.faults:
                print(f"  FAULT at {point}: {fault}", flush=True)
            trials.append((wake_early, trial))
    return _figure(backend, [t for early, t in trials if not early], [t for early, t in trials if early])


def _figure(backend: str, late: list[Trial], early: list[Trial]) -> Figure:
    trials = [*late, *early]
    histogram("workers stopped at", Counter({point: sum(t.point == point for t in trials) for point in POINTS}))
    good = sum(not trial.faults for trial in late)
    faults = [fault for trial in trials for fault in trial.faults]
    text = (
        f"in `{backend}`: "
        f"{good} of {len(late)} workers that were stopped past their heartbeat and woken later appended and executed "
        f"nothing; their tools were dead at least {min(trial.dead_before for trial in trials):.2f} s before the next "
        f"attempt began"
    )
    if early:
        text += f"; {sum(not trial.faults for trial in early)} of {len(early)} more that woke in the middle of it"
    stale = sum(trial.stale_requests for trial in trials)
    return Figure(text=text, holds=not faults, details={"faults": [*faults], "stale_model_requests": stale})
