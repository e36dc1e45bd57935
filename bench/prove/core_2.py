"""Kill any process at any moment: no turn is lost, no tool runs twice, no event is missing."""

import random
import secrets
from typing import Final

from bench.prove.clients import Client
from bench.prove.cluster import open_cluster
from bench.prove.crash import work
from bench.prove.crash.findings import Findings
from bench.prove.crash.workers import kill_workers
from bench.prove.figure import Figure
from footplate.failpoints import POINTS

SETTINGS: Final = {
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "3",
    "FOOTPLATE_LEASE": "1.5",
    "FOOTPLATE_RETRY_WAIT": "0.2",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    # A turn may happen to be hit by many kills in a row here; that is not its fault.
    "FOOTPLATE_MAX_ATTEMPTS": "1000",
}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    async with open_cluster(apis=1, workers=2, environment=SETTINGS) as cluster, Client(cluster) as client:
        await cluster.model.install(work.SCRIPT_NAME, work.script())
        agent = await client.agent()
        found = await kill_workers(
            cluster,
            client,
            agent,
            anywhere=2 if quick else 100,
            at_points=["in_tool", "before_publish"] if quick else [p for p in POINTS for _ in range(10)],
            chance=chance,
        )
    print(found.tallies)
    return Figure(text=f"{found.turns} turns, {len(found.faults)} faults", holds=not found.faults)
