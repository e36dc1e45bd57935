"""A fork has the files and the conversation of its event, and costs the same however long its parent is.

In both harnesses, with a project and without. The cost is that of the fork and its first turn, in which its files come
to their place, less what the same turn takes when it is asked for once more. Both read the conversation from the log,
as the worker keeps nothing of it here, and tell it to the model: what that takes is any turn's, and no fork's.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.prove.clients import Client
from bench.prove.cluster import Cluster, open_cluster
from bench.prove.figure import Figure
from bench.prove.forks import files
from bench.prove.host_loss.trial import make_project

_HARNESSES: Final = ("native", "claude")
_SHORT: Final = 10
_MOST: Final = 1.2
_SANITY: Final = 3.0
"""With its first turn: the difference of a few is no figure."""
_UNHURRIED: Final = {
    "FOOTPLATE_LEASE": "30",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "60",
    "FOOTPLATE_SLOTS": "0",
    "FOOTPLATE_KEPT_MEGABYTES": "0",
}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    every, turns, forks = (12, 12, 2) if quick else (1, 1000, 30)
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_project, root)
        environment = {**_UNHURRIED, "FOOTPLATE_PROJECTS_ROOT": str(root)}
        async with open_cluster(environment=environment) as cluster, Client(cluster) as client:
            found = await _at_each_event(cluster, client, every)
            short, long = await _costs(client, turns, forks)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    faults = [fault for each in found for fault in each.faults]
    for fault in faults:
        print(f"  FAULT {fault}", flush=True)
    ratio = _beyond(long) / _beyond(short)
    whole = median(first for first, _ in long) / median(first for first, _ in short)
    return Figure(
        text=f"{sum(each.forks for each in found)} forks at the events of sessions that made {files.FILES} files "
        f"({' and '.join(_HARNESSES)}, with a project and without): {len(faults)} times the files or the conversation "
        f"were not those of the event; a fork of {turns} turns takes, beyond a turn of its conversation, {ratio:.2f} "
        f"times as long as one of {_SHORT} ({_beyond(long) * 1000:.0f} ms; at most {_MOST}); with a first turn, in "
        f"which the model is told all of it, {whole:.2f} times",
        holds=not faults and (whole <= _SANITY if quick else ratio <= _MOST),
        details={"faults": [*faults], "short": [[*each] for each in short], "long": [[*each] for each in long]},
    )


def _beyond(pairs: Sequence[files.Cost]) -> float:
    return median(first - again for first, again in pairs)


async def _at_each_event(cluster: Cluster, client: Client, every: int) -> list[files.Forked]:
    project: Any = await client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
    kinds: list[dict[str, Any]] = [{}, {"extra_body": {"project_ids": [project["id"]]}}]
    found = []
    for harness in _HARNESSES:
        await files.install(cluster, harness)
        found += [await files.forked_at_each(cluster, client, harness, fields, every) for fields in kinds]
    return found


async def _costs(client: Client, turns: int, forks: int) -> tuple[list[files.Cost], list[files.Cost]]:
    """By turns, so that the machine's own pace is the same for both, and neither finds its conversation kept."""
    parents = [await files.grown(client, "native", count) for count in (_SHORT, turns)]
    times: tuple[list[files.Cost], list[files.Cost]] = ([], [])
    for _ in range(forks):
        began = [await files.first_look(client, parent, "native") for parent in parents]
        for (fork_id, first), spent in zip(began, times, strict=True):
            spent.append((first, await files.look_again(client, fork_id, "native")))
    return times
