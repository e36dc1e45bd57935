"""A path rule in `POST /v1/policies/replay` delays the requests of other organisations."""

import asyncio
import time

import httpx2

from bench.support.clients import Client, raw_client
from bench.support.cluster import open_cluster
from footplate.testing import replies, text, tool

_RULE = f"Read({'[a-z]*' * 40}!)"
_TOO_LONG = 2.0


async def attack() -> str | None:
    async with open_cluster() as cluster:
        key = await cluster.create_key("attackers")
        path = "/".join(["a" * 60] * 4)
        await cluster.model.install("read", replies([tool("read", {"file_path": path})], [text("Done.")]))
        async with (
            Client(cluster, key=key) as attacker,
            raw_client(cluster, key=key) as theirs,
            raw_client(cluster) as ours,
        ):
            await attacker.run_turn(await attacker.session(), "[[script:read]]")
            await ours.get("/v1/agents")
            asked = {"permissions": {"deny": [_RULE]}}
            replay = asyncio.create_task(theirs.post("/v1/policies/replay", json=asked, timeout=60))
            slowest = 0.0
            for _ in range(20):
                await asyncio.sleep(0.1)
                began = time.monotonic()
                try:
                    await ours.get("/v1/agents", timeout=10)
                except httpx2.TimeoutException:
                    return "another organisation's GET got no response within 10 s"
                slowest = max(slowest, time.monotonic() - began)
            replay.cancel()
            await asyncio.gather(replay, return_exceptions=True)
            return f"another organisation's GET took {slowest:.1f} s" if slowest > _TOO_LONG else None
