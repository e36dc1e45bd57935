"""Measures how long create, send and retrieve take through the API, and through a bare Starlette app with the same SQL.

Each server has one client on one keep-alive connection, and there is never more than one request at a time. The first
figure takes the six kinds of request in a new random order each round, with a pause between requests, so that work
after a response does not slow the next request. The second has no pauses and runs blocks of one kind, so it includes
that work. Both clients send the official SDK's headers, so every POST is one whose response is stored until it is
delivered. No worker runs, because a turn would take CPU time from both. Only the API wakes the engine: the part before
the response counts in both figures, the part after it in the second.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import httpx2
from anthropic import AsyncAnthropic, BadRequestError, DefaultAsyncHttpxClient

from bench.support.cluster import Cluster
from bench.support.minimal_client import MinimalClient
from bench.support.overhead import bare_app
from bench.support.speed.measurement import ROOT, Measurement, median
from footplate.domain.json import JsonObject
from footplate.stack import PythonService
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.services.python_service import is_http_ok

_MAX_RATIO: Final = 2.0
_PAUSE: Final = 0.015
_WARM_UP: Final = 20
_BLOCK: Final = 25
KINDS: Final = ("create", "send", "retrieve")
Times = dict[tuple[str, str], list[float]]


async def measure(cluster: Cluster, *, samples: int, max_ratio: float = _MAX_RATIO) -> Measurement:
    extra = await sdk_headers()
    async with (
        _start_bare_app(cluster, extra) as plain,
        MinimalClient(cluster.base_urls[0], cluster.key, extra=extra) as api,
    ):
        session_fields = await api.create_session_fields()
        sides = {"api": _Side(api, session_fields), "bare": _Side(plain, session_fields)}
        await _measure_alternating(sides, _WARM_UP)
        alternating = await _measure_alternating(sides, samples)
        back_to_back = await _measure_blocks(sides, samples)
    ratios = {kind: _ratio(alternating, kind) for kind in KINDS}
    without_pause = {kind: _ratio(back_to_back, kind) for kind in KINDS}
    ratios_text = ", ".join(
        f"{kind} {_ms(alternating['api', kind]):.2f} ms, bare {_ms(alternating['bare', kind]):.2f}: "
        f"{ratios[kind]:.2f} times "
        f"({without_pause[kind]:.2f} back to back)"
        for kind in KINDS
    )
    return Measurement(
        text=f"p50 of {samples} requests each, one at a time: {ratios_text} (limit {max_ratio})",
        holds=max(ratios.values()) <= max_ratio,
        details={
            "samples": samples,
            "p50_ms": _p50_by_request(alternating),
            "p50_ms_back_to_back": _p50_by_request(back_to_back),
            "ratios": {**ratios},
            "ratios_back_to_back": {**without_pause},
        },
        figures={"ratio": max(ratios.values())},
    )


async def sdk_headers() -> dict[str, str]:
    """Returns the headers that the official SDK sends with a first attempt."""
    seen: list[httpx2.Headers] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(400, json={})

    transport = httpx2.MockTransport(respond)
    async with AsyncAnthropic(
        api_key="none", auth_token=None, http_client=DefaultAsyncHttpxClient(transport=transport), max_retries=0
    ) as sdk:
        with suppress(BadRequestError):
            await sdk.beta.sessions.create(agent="agent", environment_id="environment")
    own = {"host", "content-type", "content-length", "authorization", "x-api-key", "connection"}
    return {name: value for name, value in seen[0].items() if name not in own}


class _Side:
    """Sends requests to one of the two servers, one at a time."""

    def __init__(self, client: MinimalClient, session_fields: Mapping[str, Any]) -> None:
        self._client = client
        self._seat = session_fields
        self._unused_sessions: list[str] = []
        self._last = ""

    async def create(self) -> None:
        self._unused_sessions.append((await self._client.post("/v1/sessions", self._seat))["id"])

    async def send(self) -> None:
        """Sends a message to a sleeping session, so that the API has to wake it."""
        self._last = self._unused_sessions.pop(0)
        await self._client.send(self._last, "Good morning! Please look at the file that I have just written.")

    async def retrieve(self) -> None:
        await self._client.get(f"/v1/sessions/{self._last}")


async def _measure_alternating(sides: Mapping[str, _Side], rounds: int) -> Times:
    times: Times = {(side, kind): [] for side in sides for kind in KINDS}
    chance = random.Random(rounds)
    for side in sides.values():
        await side.create()
        await side.send()
        await side.create()
    for _ in range(rounds):
        for name, kind in chance.sample(sorted(times), len(times)):
            await asyncio.sleep(_PAUSE)
            times[name, kind].append(await _timed(getattr(sides[name], kind)))
    return times


async def _measure_blocks(sides: Mapping[str, _Side], samples: int) -> Times:
    times: Times = {(side, kind): [] for side in sides for kind in KINDS}
    for _ in range(samples // _BLOCK):
        for kind in KINDS:
            for name, side in sides.items():
                times[name, kind] += [await _timed(getattr(side, kind)) for _ in range(_BLOCK)]
                await asyncio.sleep(_PAUSE)
    return times


async def _timed(call: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


def _ratio(times: Times, kind: str) -> float:
    return round(median(times["api", kind]) / median(times["bare", kind]), 2)


def _p50_by_request(times: Times) -> JsonObject:
    return {f"{side} {kind}": round(_ms(values), 3) for (side, kind), values in times.items()}


def _ms(values: list[float]) -> float:
    return median(values) * 1000


@asynccontextmanager
async def _start_bare_app(cluster: Cluster, extra: Mapping[str, str]) -> AsyncIterator[MinimalClient]:
    port = find_free_port()
    program = PythonService(
        cluster.directory / "bare",
        title="bare app",
        module=bare_app.__name__,
        arguments=(str(port),),
        environment={**cluster.environment(), "PYTHONPATH": str(ROOT)},
        log_file=cluster.directory / "logs" / "bare.log",
        probe=partial(is_http_ok, LOOPBACK, port, "/"),
    )
    await program.start()
    try:
        async with MinimalClient(f"http://{LOOPBACK}:{port}", "none", extra=extra) as client:
            yield client
    finally:
        await program.stop()
