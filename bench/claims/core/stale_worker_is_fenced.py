"""A worker that lost its lease and wakes up changes nothing, and its tools are dead before another worker continues."""

import random
from collections import Counter
from typing import Final

from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.crash import fencing
from bench.support.crash.fencing import FencingTrial, stop_at_failpoint
from bench.support.crash.findings import print_histogram
from footplate.failpoints import POINTS

SETTINGS: Final = {"FOOTPLATE_HEARTBEAT_TIMEOUT": "3", "FOOTPLATE_LEASE": "1.5", "FOOTPLATE_RETRY_WAIT": "0.2"}
# Temporal still offers work to a stopped worker, and each offer costs a heartbeat timeout: more workers, fewer offers.
_WORKERS: Final = 4
_TRIALS: Final = 40
_QUICK_POINTS: Final = ("in_tool",)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    return await prove_in(environment_backends.default_backend(), quick=quick)


async def prove_in(backend: str, *, quick: bool) -> Figure:
    late_points = list(_QUICK_POINTS) if quick else list(POINTS) * (_TRIALS // len(POINTS))
    early_points = [] if quick else list(POINTS)
    plan = [*((point, False) for point in late_points), *((point, True) for point in early_points)]
    random.shuffle(plan)
    async with (
        environment_backends.backend_settings(backend) as settings,
        open_cluster(apis=1, workers=2 if quick else _WORKERS, environment={**SETTINGS, **settings}) as cluster,
        Client(cluster) as client,
    ):
        for name, script in fencing.build_scripts().items():
            await cluster.model.install(name, script)
        agent = await client.agent()
        trials = []
        for point, wake_early in plan:
            trial = await stop_at_failpoint(cluster, client, agent, point, wake_early=wake_early)
            for fault in trial.faults:
                print(f"  FAULT at {point}: {fault}", flush=True)
            trials.append((wake_early, trial))
    return _figure(backend, [t for early, t in trials if not early], [t for early, t in trials if early])


def _figure(backend: str, late: list[FencingTrial], early: list[FencingTrial]) -> Figure:
    trials = [*late, *early]
    print_histogram("workers stopped at", Counter({point: sum(t.point == point for t in trials) for point in POINTS}))
    clean_late = sum(not trial.faults for trial in late)
    faults = [fault for trial in trials for fault in trial.faults]
    clean = sum(not trial.faults for trial in trials)
    summary = (
        f"in `{backend}`: "
        f"{clean_late} of {len(late)} workers that were stopped past their heartbeat timeout and woke "
        f"after the next attempt "
        f"appended and executed nothing; their tools were dead at least "
        f"{min(trial.dead_before for trial in trials):.2f} s before the next attempt began"
    )
    if early:
        summary += f"; so did {sum(not trial.faults for trial in early)} of {len(early)} that woke during it"
    if faults:
        summary += f"; {len(faults)} faults, the first: {faults[0]}"
    stale = sum(trial.stale_requests for trial in trials)
    return Figure(
        headline=f"{clean} of {len(trials)} stopped workers appended and executed nothing after they woke",
        summary=summary,
        holds=not faults,
        details={"faults": [*faults], "stale_model_requests": stale},
    )
