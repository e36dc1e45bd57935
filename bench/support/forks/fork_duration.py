"""Measures the cost of a fork: to request it, to find its files in the log, and to restore them.

Its conversation is not included, because any turn of any session loads that and sends it to a model.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench.prove.figure import require
from bench.support.changes.session_trees import ORGANISATION, make_checkout_target, open_trees
from bench.support.clients import Client
from bench.support.cluster import Cluster
from footplate.domain.files.snapshots import SCRATCH_TREE
from footplate.environments.directory_removal import remove_directory
from footplate.store.database import Database
from footplate.store.log.files.file_snapshots import load_files_at
from footplate.trees.session_trees import SessionTrees


@dataclass(frozen=True, slots=True)
class ForkTimer:
    client: Client
    database: Database
    trees: SessionTrees
    cluster: Cluster

    async def measure_fork(self, parent: str, event_id: str) -> float:
        """Returns the seconds of a fork, on the host that has the parent."""
        began = time.perf_counter()
        path = f"/v1/sessions/{parent}/fork"
        fork: Any = await self.client.sdk.post(path, cast_to=dict[str, Any], body={"at_event_id": event_id})
        requested = time.perf_counter() - began
        tree = self.cluster.directory / "data" / "restored" / fork["id"]
        await asyncio.to_thread(tree.mkdir, parents=True)
        began = time.perf_counter()
        async with self.database.connection() as connection:
            files = await load_files_at(connection, fork["id"], [SCRATCH_TREE])
        await self.trees.check_out(ORGANISATION, fork["id"], [], make_checkout_target(tree), files, deadline=math.inf)
        restored = time.perf_counter() - began
        require(holds=(tree / "last").is_file(), otherwise="the files of a fork were not restored")
        await asyncio.to_thread(remove_directory, tree)
        return requested + restored


@asynccontextmanager
async def open_fork_timer(cluster: Cluster, client: Client) -> AsyncIterator[ForkTimer]:
    data = cluster.directory / "data"
    trees = open_trees(data, projects=data)
    database = await Database.open(cluster.settings.database_url, size=1)
    try:
        yield ForkTimer(client, database, trees, cluster)
    finally:
        await database.close()


async def measure_alternately(timer: ForkTimer, parents: Sequence[str], forks: int) -> list[list[float]]:
    """Forks the parents alternately, so that the machine's speed is the same for all."""
    times: list[list[float]] = [[] for _ in parents]
    ends = [(await timer.client.events(parent))[-1]["id"] for parent in parents]
    for _ in range(forks):
        for parent, end, spent in zip(parents, ends, times, strict=True):
            spent.append(await timer.measure_fork(parent, end))
    return times
