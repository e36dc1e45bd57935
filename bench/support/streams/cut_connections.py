"""Cuts a client's connection again and again; the client reconnects to a random replica after its last frame."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from bench.prove.figure import require
from bench.support.clients import Client
from bench.support.cluster import Cluster
from footplate.domain.sessions import events
from footplate.stream.sse import parse_cursor
from footplate.testing import replies, text, thinking, tool

_MAX_CONNECTION_SECONDS: Final = 0.3
_PATIENCE: Final = 60.0
_SCRIPT: Final = replies(
    [
        thinking("Let me think about this for a moment."),
        text("I say a few words first, so that there is something to cut. " * 4, chunks=40, delay=0.004),
        tool("bash", {"command": "echo {n}"}),
    ],
    [text("And now a longer answer, word by word, as models do. " * 6, chunks=60, delay=0.004)],
)


@dataclass(slots=True)
class ReceivedStream:
    """Everything that the client received, over all its connections."""

    positions: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """The preview texts so far, by event id."""
    finished: dict[str, str] = field(default_factory=dict)
    cursor: str = "0"
    idle: int = 0
    connections: list[int] = field(default_factory=list)
    in_a_preview: int = 0

    def add_frame(self, frame_id: str, event: dict[str, Any]) -> None:
        self.cursor = frame_id
        position = parse_cursor(frame_id)
        if event["type"] == "event_start":
            preview = event["event"]["id"]
            # After a reconnection the preview continues at the cursor's offset.
            self.texts[preview] = self.texts.get(preview, "")[: position.offset]
            return
        if event["type"] == "event_delta":
            preview = event["event_id"]
            self.texts[preview] += event["delta"]["content"]["text"]
            require(
                holds=len(self.texts[preview]) == position.offset,
                otherwise=f"a preview has {len(self.texts[preview])} characters, its cursor has {position.offset}",
            )
            return
        self.positions.append(position.seq)
        self.ids.append(event["id"])
        self.idle += event["type"] == events.STATUS_IDLE
        if event["type"] == events.AGENT_MESSAGE:
            self.finished[event["id"]] = "".join(block["text"] for block in event["content"])


@dataclass(frozen=True, slots=True)
class CutResult:
    cuts: int
    positions: int
    in_a_preview: int
    by_replica: Sequence[int]
    exact: bool
    """Whether each position of the log was received once, in order."""


async def run_with_cuts(
    cluster: Cluster, clients: Sequence[Client], database: asyncpg.Connection, count: int
) -> CutResult:
    await cluster.model.install("words", _SCRIPT)
    session_id = await clients[0].session()
    seen = ReceivedStream(connections=[0] * len(clients))
    enough = asyncio.Event()
    turns = asyncio.create_task(_run_turns(clients[0], session_id, enough))
    try:
        for _ in range(count):
            await _read_until_cut(clients, session_id, seen, random.uniform(0, _MAX_CONNECTION_SECONDS))
            seen.in_a_preview += "." in seen.cursor
    finally:
        enough.set()
    turn_count = await turns
    async with asyncio.timeout(_PATIENCE):
        while seen.idle < turn_count:
            await _read_until_cut(clients, session_id, seen, _PATIENCE, idle=turn_count)
    logged = await database.fetch("select seq, event_id from events where session_id = $1 order by seq", session_id)
    for preview, shown in seen.texts.items():
        whole = seen.finished.get(preview, shown)
        require(holds=whole.startswith(shown), otherwise=f"the preview {preview} differs from its message")
    return CutResult(
        cuts=count,
        positions=len(seen.positions),
        in_a_preview=seen.in_a_preview,
        by_replica=seen.connections,
        exact=[(row["seq"], row["event_id"]) for row in logged] == list(zip(seen.positions, seen.ids, strict=True))
        and seen.positions == list(range(1, len(logged) + 1)),
    )


async def _read_until_cut(
    clients: Sequence[Client], session_id: str, seen: ReceivedStream, seconds: float, *, idle: int | None = None
) -> None:
    """Reads one connection from the last frame to the cut, or until `idle` turns have ended."""
    replica = random.randrange(len(clients))
    seen.connections[replica] += 1
    try:
        async with (
            asyncio.timeout(seconds),
            clients[replica].stream(
                session_id, deltas=[events.AGENT_MESSAGE, events.AGENT_THINKING], last_event_id=seen.cursor
            ) as stream,
        ):
            async for event in stream:
                seen.add_frame(stream.last_id, event)
                if idle is not None and seen.idle >= idle:
                    return
    except TimeoutError:
        return


async def _run_turns(client: Client, session_id: str, enough: asyncio.Event) -> int:
    count = 0
    while not enough.is_set():
        await client.run_turn(session_id, "[[script:words]]")
        count += 1
    return count
