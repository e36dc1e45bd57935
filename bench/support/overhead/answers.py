"""How long create, send and retrieve take through the api, against a bare Starlette app with the same statements.

One client on one kept connection to each, never two requests at once; the six kinds of request take turns in a new
random order each round, with a pause between two requests, so that what either server does after an answer burdens
nobody's next one. Then the same without pauses, in blocks of one kind: there it does. Both clients send the headers
that the official SDK sends, so that every POST is one whose answer is kept until it is delivered. No worker runs: a
turn would take the processor from both. Waking the engine is the api's own burden, the bare app does no such thing:
as far as it happens before the answer it counts in both figures, and what happens after it in the second one.
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
from bench.support.lean import Lean
from bench.support.overhead import bare
from bench.support.speed.measured import ROOT, Measured, median
from footplate.domain.json import JsonObject
from footplate.stack import Program
from footplate.stack.ports import LOOPBACK, free_port
from footplate.stack.program import http_ok

_MOST: Final = 2.0
_PAUSE: Final = 0.015
_WARM_UP: Final = 20
_BLOCK: Final = 25
KINDS: Final = ("create", "send", "retrieve")
Times = dict[tuple[str, str], list[float]]


async def measure(cluster: Cluster, *, samples: int, most: float = _MOST) -> Measured:
    extra = await sdk_headers()
    async with _bare(cluster, extra) as plain, Lean(cluster.base_urls[0], cluster.key, extra=extra) as api:
        seat = await api.seat()
        sides = {"api": _Side(api, seat), "bare": _Side(plain, seat)}
        await _taking_turns(sides, _WARM_UP)
        apart = await _taking_turns(sides, samples)
        in_blocks = await _in_blocks(sides, samples)
    ratios = {kind: _ratio(apart, kind) for kind in KINDS}
    without_pause = {kind: _ratio(in_blocks, kind) for kind in KINDS}
    told = ", ".join(
        f"{kind} {_ms(apart['api', kind]):.2f} ms, bare {_ms(apart['bare', kind]):.2f}: {ratios[kind]:.2f} times "
        f"({without_pause[kind]:.2f} back to back)"
        for kind in KINDS
    )
    return Measured(
        text=f"p50 of {samples} requests each, one at a time: {told} (limit {most})",
        holds=max(ratios.values()) <= most,
        details={
            "samples": samples,
            "p50_ms": _told(apart),
            "p50_ms_back_to_back": _told(in_blocks),
            "ratios": {**ratios},
            "ratios_back_to_back": {**without_pause},
        },
        figures={"ratio": max(ratios.values())},
    )


async def sdk_headers() -> dict[str, str]:
    """What the official SDK says with a first try, taken from the SDK itself."""
    seen: list[httpx2.Headers] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(400, json={})

    transport = httpx2.MockTransport(answer)
    async with AsyncAnthropic(
        api_key="none", auth_token=None, http_client=DefaultAsyncHttpxClient(transport=transport), max_retries=0
    ) as sdk:
        with suppress(BadRequestError):
            await sdk.beta.sessions.create(agent="agent", environment_id="environment")
    own = {"host", "content-type", "content-length", "authorization", "x-api-key", "connection"}
    return {name: value for name, value in seen[0].items() if name not in own}


class _Side:
    """One of the two servers, asked for one thing at a time."""

    def __init__(self, client: Lean, seat: Mapping[str, Any]) -> None:
        self._client = client
        self._seat = seat
        self._fresh: list[str] = []
        self._last = ""

    async def create(self) -> None:
        self._fresh.append((await self._client.post("/v1/sessions", self._seat))["id"])

    async def send(self) -> None:
        """To a session that sleeps, so that the api has to wake it."""
        self._last = self._fresh.pop(0)
        await self._client.send(self._last, "Good morning! Please look at the file that I have just written.")

    async def retrieve(self) -> None:
        await self._client.get(f"/v1/sessions/{self._last}")


async def _taking_turns(sides: Mapping[str, _Side], rounds: int) -> Times:
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


async def _in_blocks(sides: Mapping[str, _Side], samples: int) -> Times:
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


def _told(times: Times) -> JsonObject:
    return {f"{side} {kind}": round(_ms(values), 3) for (side, kind), values in times.items()}


def _ms(values: list[float]) -> float:
    return median(values) * 1000


@asynccontextmanager
async def _bare(cluster: Cluster, extra: Mapping[str, str]) -> AsyncIterator[Lean]:
    port = free_port()
    program = Program(
        cluster.directory / "bare",
        title="bare app",
        module=bare.__name__,
        arguments=(str(port),),
        environment={**cluster.environment(), "PYTHONPATH": str(ROOT)},
        log_file=cluster.directory / "logs" / "bare.log",
        probe=partial(http_ok, LOOPBACK, port, "/"),
    )
    await program.start()
    try:
        async with Lean(f"http://{LOOPBACK}:{port}", "none", extra=extra) as client:
            yield client
    finally:
        await program.stop()
