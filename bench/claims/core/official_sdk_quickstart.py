"""The official SDK works unmodified: agent, environment, session, stream, turns, custom tools, interrupts.

The stories are in `quickstart`; at full size many sessions live them at the same time. Whatever the server says to the
SDK, in streams and answers alike, is held strictly against the SDK's own models; one mismatch and the claim fails.
"""

import asyncio
from importlib.metadata import version
from typing import Final

from bench.prove.figure import Figure
from bench.support import quickstart
from bench.support.checking import Ledger
from bench.support.clients import Client
from bench.support.cluster import open_cluster

_ROUNDS: Final = 20
_AT_ONCE: Final = 4
_SDK: Final = "2.8.0"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every proof has this shape
    rounds = 1 if quick else _ROUNDS
    ledger = Ledger()
    async with open_cluster(workers=1 if quick else 2) as cluster:
        await quickstart.install(cluster)
        gate = asyncio.Semaphore(len(quickstart.STORIES) if quick else _AT_ONCE)

        async def tell(story: quickstart.Story) -> None:
            async with gate, Client(cluster, ledger=ledger) as client:
                await story(client)

        async with asyncio.TaskGroup() as group:
            for story in [*quickstart.STORIES] * rounds:
                group.create_task(tell(story))
    told = rounds * len(quickstart.STORIES)
    sdk = version("anthropic")
    return Figure(
        text=f"anthropic {sdk}: {told} of {told} stories told, {ledger.validated} events validated strictly, "
        f"{len(ledger.mismatches)} mismatches",
        holds=sdk == _SDK and ledger.validated > 0 and not ledger.mismatches,
        details={"events": {**ledger.events}, "resources": {**ledger.resources}, "rounds": rounds},
    )
