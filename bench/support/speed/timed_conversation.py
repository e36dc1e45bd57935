"""Sends one session many messages and records the times of each step of its turns."""

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.minimal_client import Frames, MinimalClient, Received, events_path
from footplate.testing import replies, reply, text

_SCRIPT: Final = "linear"
_CLAIMED: Final = "session.status_running"
_REQUEST_BEGAN: Final = "span.model_request_start"


@dataclass(slots=True)
class Turn:
    """Times of one turn in seconds since the epoch. The model recorded the last two."""

    sent: float
    claimed: float
    request_began: float
    idle: float
    request_arrived: float = 0.0
    response_ended: float = 0.0

    @property
    def outside_request(self) -> float:
        """Seconds outside of the model request: not spent on building it, sending it or waiting for the response."""
        return (self.request_began - self.sent) + (self.idle - self.response_ended)

    @property
    def until_request(self) -> float:
        return self.request_arrived - self.sent


class TimedConversation:
    def __init__(self, client: MinimalClient, session_id: str) -> None:
        self.session_id = session_id
        self.turns: list[Turn] = []
        self.received: list[Received] = []
        self._client = client

    @classmethod
    async def create(cls, client: MinimalClient) -> "TimedConversation":
        session = await client.post("/v1/sessions", await client.create_session_fields())
        return cls(client, session["id"])

    async def run_turns(self, turns: int) -> None:
        async with self._client.stream(events_path(self.session_id)) as frames:
            for _ in range(turns):
                self.turns.append(await self._turn(frames))

    async def _turn(self, frames: Frames) -> Turn:
        sent = time.time()
        await self._client.send(self.session_id, f"And now? [[script:{_SCRIPT}]]")
        received = await frames.until_idle()
        self.received.extend(received)
        claimed, began = (_time(received, event) for event in (_CLAIMED, _REQUEST_BEGAN))
        return Turn(sent, claimed, began, received[-1].at)


async def open_client(cluster: Cluster, exits: AsyncExitStack) -> MinimalClient:
    """Opens a client, and installs a model script with the same reply to every message."""
    await cluster.model.install(_SCRIPT, replies(reply(text("Yes, {n}."), repeat=True)))
    return await exits.enter_async_context(MinimalClient(cluster.base_urls[0], cluster.key))


async def add_request_times(cluster: Cluster, turns: Iterable[Turn]) -> None:
    """Adds the model's times to each turn. Turns ran one at a time, so the order of requests is the order of turns."""
    ordered = sorted(turns, key=lambda turn: turn.sent)
    for turn, (arrived, response_ended) in zip(ordered, await request_times(cluster, len(ordered)), strict=True):
        turn.request_arrived, turn.response_ended = arrived, response_ended


async def request_times(cluster: Cluster, turns: int) -> list[tuple[float, float]]:
    """Returns when each request arrived at the model and when its response ended. Requires one request per turn."""
    records = [record for record in await cluster.model.requests(bodies=False) if record["path"] == "/v1/messages"]
    require(holds=len(records) == turns, otherwise=f"{len(records)} requests in {turns} turns")
    return [(float(str(record["time"])), float(str(record["ended_at"]))) for record in records]


def processed_at(frame: Received) -> float:
    return dt.datetime.fromisoformat(frame.body["processed_at"]).timestamp()


def _time(received: Sequence[Received], event: str) -> float:
    (found,) = (frame for frame in received if frame.event == event)
    return processed_at(found)
