"""A number too large for a double, next to an unpaired surrogate, is stored as null."""

from bench.support.clients import raw_client
from bench.support.cluster import open_cluster

_BODY = rb'{"name":"\ud800","model":"claude-sonnet-4-5","model_parameters":{"temperature":1e999}}'


async def attack() -> str | None:
    async with open_cluster(workers=0) as cluster, raw_client(cluster) as http:
        response = await http.post("/v1/agents", content=_BODY, headers={"content-type": "application/json"})
    return "a request with the number 1e999 was accepted" if response.is_success else None
