"""How many deltas a second reach a hundred clients of one session, against a plain broadcast with Starlette.

Two figures, both against the same bare one. *One by one*: deltas go through our publisher, Redis and the api without
being joined, so that each is a frame, as each is in the plain broadcast. *Whole*: a model writes as fast as it can and
everything is in between, engine, worker and the joining of deltas that come within 20 ms; there the model's own
deltas are counted. One of the hundred clients keeps what it receives, and all of that is validated.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import orjson

from bench.prove.cluster import Cluster
from bench.prove.figure import require
from bench.prove.lean import Frames, Lean, Received, check, events_path
from bench.prove.speed import bare_starlette, listeners
from bench.prove.speed.frames import PIECE
from bench.prove.speed.measured import ROOT, Measured, median
from footplate.stack import Program
from footplate.stack.ports import LOOPBACK, free_port
from footplate.stream.publisher import Live
from footplate.stream.turn_live import TurnLive
from footplate.testing import replies, reply, text
from footplate.wiring import DEFAULT_ORGANISATION

CLIENTS: Final = 100
_LEAST: Final = 0.5
_SCRIPT: Final = "pieces"
_BATCH: Final = 50
_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """By all clients together."""

    pieces: int
    frames: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.pieces / self.seconds


async def measure(cluster: Cluster, *, clients: int, pieces: int, rounds: int, slack: float = 1.0) -> Measured:
    await cluster.model.install(_SCRIPT, replies(reply(text(PIECE * pieces, chunks=pieces), repeat=True)))
    found: dict[str, list[Heard]] = {"bare": [], "one by one": [], "whole": []}
    received: list[Received] = []
    async with _bare(cluster) as bare, Lean(cluster.base_urls[0], cluster.key) as api:
        seat = await api.seat()
        for _ in range(rounds):
            found["bare"].append(
                await _hear(bare, "/stream", clients, pieces, lambda: bare.post("/broadcast", {"frames": pieces}), [])
            )
            for name, feed in (("one by one", _publish), ("whole", _ask)):
                session_id = (await api.post("/v1/sessions", seat))["id"]
                path = events_path(session_id, deltas=True)
                start = _Feed(feed, cluster, api, session_id, pieces)
                found[name].append(await _hear(api, path, clients, pieces, start, received))
    rates = {name: median([heard.rate for heard in rounds]) for name, rounds in found.items()}
    single, whole = rates["one by one"] / rates["bare"], rates["whole"] / rates["bare"]
    return Measured(
        text=f"{rates['one by one']:,.0f} deltas/s to {clients} clients one by one, {rates['whole']:,.0f} from a model, "
        f"against {rates['bare']:,.0f} of a bare broadcast: {single:.2f} and {whole:.2f} (at least {_LEAST})",
        holds=min(single, whole) * slack >= _LEAST,
        details={
            "rates": {name: round(rate) for name, rate in rates.items()},
            "frames_per_client": {name: rounds[-1].frames // clients for name, rounds in found.items()},
            "pieces_per_client": pieces,
            "events_validated": check(received),
        },
    )
