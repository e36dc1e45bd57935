"""A fork has the files and the conversation of its event, and costs the same however long its parent is.

It is checked in both harnesses, with a project and without. The cost is that of the fork request and of checking out
its files. The cost with a first turn is reported separately, because that turn sends the whole conversation to the
model.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.prove.figure import Figure
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.forks import file_comparison
from bench.support.forks.fork_duration import measure_alternately, open_fork_timer
from bench.support.host_loss.trial import make_git_project

_HARNESSES: Final = ("native", "claude")
_SHORT: Final = 10
_MAX_RATIO: Final = 1.2
_MAX_RATIO_QUICK: Final = 5.0
"""The limit for a sample of a few forks."""
_LONG_LEASES: Final = {
    "FOOTPLATE_LEASE": "30",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "60",
    "FOOTPLATE_SLOTS": "0",
}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    every, turns, forks, first_turns = (12, 12, 3, 1) if quick else (1, 1000, 60, 20)
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_git_project, root)
        environment = {**_LONG_LEASES, "FOOTPLATE_PROJECTS_ROOT": str(root)}
        async with open_cluster(environment=environment) as cluster, Client(cluster) as client:
            found = await _fork_at_each_event(cluster, client, every)
            parents = [await file_comparison.create_grown_session(client, "native", count) for count in (_SHORT, turns)]
            async with open_fork_timer(cluster, client) as checkout:
                short, long = await measure_alternately(checkout, parents, forks)
            first = [
                await file_comparison.measure_first_turns(client, parent, "native", first_turns) for parent in parents
            ]
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    faults = [fault for each in found for fault in each.faults]
    for fault in faults:
        print(f"  FAULT {fault}", flush=True)
    ratio, ratio_with_turn = (median(late) / median(early) for early, late in ((short, long), first))
    max_ratio = _MAX_RATIO_QUICK if quick else _MAX_RATIO
    count = sum(each.forks for each in found)
    return Figure(
        headline=f"{count} forks: {len(faults)} wrong files or conversations; cost grows {ratio:.2f} times",
        summary=f"{count} forks at the events of sessions that made {file_comparison.FILES} files "
        f"({' and '.join(_HARNESSES)}, with a project and without): {len(faults)} times the files or the conversation "
        f"were not those of the event; a fork of {turns} turns, its request and its files, takes {ratio:.2f} times as "
        f"long as one of {_SHORT} ({median(long) * 1000:.0f} ms; limit {max_ratio}); with a first turn, "
        f"which sends the "
        f"whole conversation to the model, {ratio_with_turn:.2f} times ({median(first[1]) * 1000:.0f} ms)"
        + (f"; the first fault: {faults[0]}" if faults else ""),
        holds=not faults and ratio <= max_ratio,
        details={"faults": [*faults], "short": [*short], "long": [*long], "first turns": [[*each] for each in first]},
    )


async def _fork_at_each_event(cluster: Cluster, client: Client, every: int) -> list[file_comparison.ForkFindings]:
    project: Any = await client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
    kinds: list[dict[str, Any]] = [{}, {"extra_body": {"project_ids": [project["id"]]}}]
    found: list[file_comparison.ForkFindings] = []
    for harness in _HARNESSES:
        await file_comparison.install_scripts(cluster, harness)
        found += [await file_comparison.fork_at_each_event(cluster, client, harness, fields, every) for fields in kinds]
    return found
