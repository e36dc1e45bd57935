"""Measures how much longer a model request takes through the proxy than without it.

As in a worker, client and proxy share one event loop, so the client waits for all the proxy's work. The provider is a
separate process. Both ways run alternately, so that other load on the machine affects both; the request is as large as
a coding agent's, and the response streams.
"""

import time
from typing import Final

import httpx2
import orjson

from bench.support.speed.measurement import Measurement, median, milliseconds
from footplate.domain.ports.harness import Endpoint
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing import replies, reply, text
from footplate.testing.scripted_model_process import ModelProcess

MAX_ADDED_MS: Final = 3.0
_SCRIPT: Final = "measured"
_PADDING: Final = "x" * 57_000
_BODY: Final = orjson.dumps(
    {
        "model": "claude-x",
        "max_tokens": 100,
        "stream": True,
        "messages": [{"role": "user", "content": f"[[script:{_SCRIPT}]] {_PADDING}"}],
    }
)
_KEY: Final = "a-key-of-the-measurement"


async def measure(samples: int, *, slack: float = 1.0) -> Measurement:
    script = replies(reply(text("One two three four five six.", chunks=6), repeat=True))
    async with ModelProcess({_SCRIPT: script}) as model, ModelProxy({"anthropic": Endpoint(_KEY, model.url)}) as proxy:
        grant = proxy.grant(deadline=lease_clock() + 3600)
        ours = grant.endpoints["anthropic"]
        async with _client(model.url, _KEY) as direct, _client(ours.base_url or "", ours.api_key) as through:
            times: dict[str, list[tuple[float, float]]] = {"direct": [], "through": []}
            for number in range(samples + 10):
                for name, client in (("direct", direct), ("through", through)):
                    taken = await _time_request(client)
                    if number >= 10:  # the first ones warm everything up
                        times[name].append(taken)
        await grant.aclose()
    medians = {
        f"{name}_{what}": milliseconds(median([taken[index] for taken in values]))
        for name, values in times.items()
        for index, what in enumerate(("first", "whole"))
    }
    first = medians["through_first"] - medians["direct_first"]
    whole = medians["through_whole"] - medians["direct_whole"]
    return Measurement(
        text=f"the proxy adds p50 {whole:.1f} ms (limit {MAX_ADDED_MS:g}) to a model request of "
        f"{medians['direct_whole']:.1f} ms, {first:.1f} to its first byte",
        holds=max(first, whole) <= MAX_ADDED_MS * slack,
        details={"p50_ms": {**medians}, "samples": samples, "request_bytes": len(_BODY)},
    )


def _client(url: str, key: str) -> httpx2.AsyncClient:
    headers = {"x-api-key": key, "content-type": "application/json"}
    return httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False)


async def _time_request(client: httpx2.AsyncClient) -> tuple[float, float]:
    """Returns the seconds to the first bytes of the response and to its end."""
    begun = time.perf_counter()
    first: float | None = None
    async with client.stream("POST", "/v1/messages", content=_BODY) as response:
        response.raise_for_status()
        async for _ in response.aiter_raw():
            first = first or time.perf_counter()
    assert first is not None
    return first - begun, time.perf_counter() - begun
