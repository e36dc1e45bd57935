"""A warm or prewarmed Claude Code gives its first token sooner than the bare SDK, and a cold one hardly later.

The worker has its default settings. A session that is created with its first message is cold: there is no time to
prepare a CLI.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support.claude import direct_cli
from bench.support.cluster import Cluster, open_cluster
from bench.support.minimal_client import Frames, MinimalClient, Received, events_path, message, validate_frames
from bench.support.speed.measurement import median, milliseconds, quantile
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, reply, stamps, text

_PROMPT: Final = "Hello [[script:first]]"
_COUNT: Final = "Count [[script:count]]"
_CONNECTED, _SLOT, _COLD = 0.35, 0.5, 1.25
_P50_MS, _P99_MS = 5.0, 50.0
_PREWARM_TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    samples: int
    stamps: int
    at_once: int
    rounds: int = 5
    """Rounds of `at_once` sessions, of which the median counts: a single one varies by a tenth on either side."""


FULL: Final = Size(samples=30, stamps=500, at_once=20)
QUICK: Final = Size(samples=2, stamps=50, at_once=0)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    return await prove_at(QUICK if quick else FULL, judge=not quick)


async def prove_at(size: Size, *, judge: bool) -> Figure:
    """Without `judge` the limits do not apply: a small sample on a busy machine is not conclusive."""
    async with open_cluster() as cluster, MinimalClient(cluster.base_urls[0], cluster.key) as client:
        await cluster.model.install("first", replies(reply(text("One two three.", chunks=3), repeat=True)))
        await cluster.model.install("count", replies(reply(stamps(size.stamps, delay=0.02), repeat=True)))
        run = _LatencyRun(cluster, client, await _create_seat(client))
        await run.warm_up()
        found = await run.measure_first_tokens(size.samples)
        theirs, ours = await run.measure_delta_delays()
        crowd = await run.measure_at_once(size.at_once, size.rounds) if size.at_once else None
        validated = validate_frames(run.received)
    added = {share: milliseconds(quantile(ours, share) - quantile(theirs, share)) for share in (0.5, 0.99)}
    alone = median(found.bare)
    ratios = {
        "connected": median(found.warm) / alone,
        "slot": median(found.prewarmed) / alone,
        "cold": median(found.cold) / alone,
    }
    lines = [
        f"first token of the cold bare SDK after {milliseconds(alone):.0f} ms",
        f"of a second turn after {ratios['connected']:.2f} times that (limit {_CONNECTED})",
        f"of a first turn with a prewarmed CLI {ratios['slot']:.2f} (limit {_SLOT})",
        f"of a cold first turn, sandbox included, {ratios['cold']:.2f} (limit {_COLD})",
        f"deltas arrive p50 {added[0.5]:.1f} ms later (limit {_P50_MS:g}), p99 {added[0.99]:.1f} (limit {_P99_MS:g})",
    ]
    headline = f"first token after {min(ratios.values()):.2f} to {max(ratios.values()):.2f} times that of the bare SDK"
    if judge and (added[0.5] > _P50_MS or added[0.99] > _P99_MS):
        headline = f"deltas arrive p50 {added[0.5]:.1f} ms, p99 {added[0.99]:.0f} ms later"
    holds = [
        ratios["connected"] <= _CONNECTED,
        ratios["slot"] <= _SLOT,
        ratios["cold"] <= _COLD,
        added[0.5] <= _P50_MS,
        added[0.99] <= _P99_MS,
    ]
    if crowd is not None:
        crowds = f"{size.at_once} at once ({size.rounds} times)"
        lines.append(f"of {crowds} the last has its first token after {crowd[1]:.1f} s, bare after {crowd[0]:.1f}")
        holds.append(crowd[1] <= crowd[0])
    details: dict[str, Any] = {"ratios": ratios, "added_ms": {str(k): v for k, v in added.items()}}
    return Figure(
        headline=headline,
        summary="; ".join(lines),
        holds=all(holds) or not judge,
        details={**details, "events_validated": validated},
    )


async def _create_seat(client: MinimalClient) -> dict[str, str]:
    """Like `Lean.seat`, with Claude Code and its tools."""
    seat = await client.create_session_fields()
    agent = await client.post(
        "/v1/agents",
        {
            "name": "measured",
            "model": direct_cli.MODEL,
            "harness": "claude",
            "tools": [{"type": "agent_toolset_20260401"}],
        },
    )
    return {**seat, "agent": agent["id"]}


@dataclass(frozen=True, slots=True)
class _FirstTokenTimes:
    """Seconds to first tokens."""

    bare: list[float] = field(default_factory=list)
    """The bare SDK, cold. The others are Footplate's."""
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    prewarmed: list[float] = field(default_factory=list)


class _LatencyRun:
    """Alternates between both sides, so that other load on the machine affects both."""

    def __init__(self, cluster: Cluster, client: MinimalClient, seat: dict[str, str]) -> None:
        self._cluster = cluster
        self._client = client
        self._seat = seat
        self.received: list[Received] = []

    async def warm_up(self) -> None:
        await direct_cli.measure_cold_start(self._cluster.model, _PROMPT)
        await self._measure_cold(1)

    async def measure_first_tokens(self, samples: int) -> _FirstTokenTimes:
        found = _FirstTokenTimes()
        for _ in range(samples):
            found.bare.append(await direct_cli.measure_cold_start(self._cluster.model, _PROMPT))
            cold, following = await self._measure_cold(2)
            found.cold.append(cold)
            found.warm.append(following)
            found.prewarmed.append(await self._measure_prewarmed())
        return found

    async def measure_delta_delays(self) -> tuple[list[float], list[float]]:
        """Returns the delays of deltas from the model to the client: with the bare SDK, and in Footplate's stream."""
        async with direct_cli.open_client(self._cluster.model) as connected:
            found = await direct_cli.read_deltas(connected, _COUNT)
        theirs = [at - float(sent) for piece, at in found for sent in piece.split()]
        session_id = await self._create_session()
        async with self._client.stream(events_path(session_id, deltas=True)) as frames:
            await self._client.send(session_id, _COUNT)
            turn = await frames.until_idle()
        self.received += turn
        ours = [
            frame.at - float(sent)
            for frame in turn
            if frame.event == "event_delta"
            for sent in frame.body["delta"]["content"]["text"].split()
        ]
        return theirs, ours

    async def measure_at_once(self, count: int, rounds: int) -> tuple[float, float]:
        """Returns when the last of `count` simultaneous sessions has its first token: bare, Footplate."""
        theirs: list[float] = []
        ours: list[float] = []
        for _ in range(rounds):
            alone = await asyncio.gather(
                *(direct_cli.measure_cold_start(self._cluster.model, _PROMPT) for _ in range(count))
            )
            here = await asyncio.gather(*(self._measure_cold(1) for _ in range(count)))
            theirs.append(max(alone))
            ours.append(max(first for (first,) in here))
        return median(theirs), median(ours)

    async def _measure_cold(self, turns: int) -> Sequence[float]:
        """Returns the times to first token of a session's turns; the first includes the creation of the session."""
        began = time.time()
        session_id = await self._create_session(initial_events=[message(_PROMPT)])
        async with self._client.stream(events_path(session_id, deltas=True, after=0)) as frames:
            found = [await self._first_token(frames) - began]
            return [*found, *[await self._measure_turn(session_id, frames) for _ in range(turns - 1)]]

    async def _measure_prewarmed(self) -> float:
        session_id = await self._create_session()
        await self._wait_until_prewarmed(session_id)
        async with self._client.stream(events_path(session_id, deltas=True)) as frames:
            return await self._measure_turn(session_id, frames)

    async def _wait_until_prewarmed(self, session_id: str) -> None:
        log = self._cluster.directory / "logs" / "worker-0.log"

        async def is_logged() -> bool:
            lines = (await asyncio.to_thread(log.read_text)).splitlines()
            return any("slot.ready" in line and session_id in line for line in lines)

        require(
            holds=await wait_until(is_logged, _PREWARM_TIMEOUT_SECONDS),
            otherwise="no CLI was prewarmed for a new session",
        )

    async def _measure_turn(self, session_id: str, frames: Frames) -> float:
        began = time.time()
        await self._client.send(session_id, _PROMPT)
        return await self._first_token(frames) - began

    async def _first_token(self, frames: Frames) -> float:
        turn = await frames.until_idle(patience=120)
        self.received += turn
        return next(frame.at for frame in turn if frame.event in {"event_delta", "agent.message"})

    async def _create_session(self, **fields: Any) -> str:
        return str((await self._client.post("/v1/sessions", {**self._seat, **fields}))["id"])
