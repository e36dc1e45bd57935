"""`/metrics` and the scripted model respond to any local user."""

import asyncio
import json
import re
import sys
from typing import Final

import httpx2

from bench.support.cluster import open_cluster

_SERVED: Final = re.compile(r'"action": "metrics\.served", "address": "([\d.:]+)"')


async def attack() -> str | None:
    responding = [*await _request_metrics(), *await _request_model()]
    return f"without a token {' and '.join(responding)} responded" if responding else None


async def _request_metrics() -> list[str]:
    async with open_cluster(environment={"FOOTPLATE_METRICS_ADDRESS": "127.0.0.1:0"}) as cluster:
        log = await asyncio.to_thread(cluster.apis[0].log.read_text)
        address = _SERVED.findall(log)[-1]
        return ["/metrics"] if await _responds(f"http://{address}/metrics") else []


async def _request_model() -> list[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "footplate.testing", "--exit-with-stdin"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        url = json.loads(await process.stdout.readline())["url"]
        return ["the scripted model"] if await _responds(f"{url}/_control/requests") else []
    finally:
        process.terminate()
        await process.wait()


async def _responds(url: str) -> bool:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.get(url)).status_code == httpx2.codes.OK
