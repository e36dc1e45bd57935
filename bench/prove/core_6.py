"""A conversation costs per turn what the turn adds: turn 1,000 writes as much and takes as long as turn 1.

One session, turn after turn, on a warm worker. Bytes are those of all stores: PostgreSQL's write-ahead log (after a
checkpoint, images of whole pages apart), the object store, everything sent to Redis, Temporal's history. Time is from
sending the message to `session.status_idle`, less the part in which the model's request is built and sent (which holds
the whole conversation, and so must grow) and answered: from the log's `span.model_request_start` until the model has
sent its last byte. Afterwards the worker is started anew, and its first turn has to load the conversation.
"""

import datetime as dt
import time
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Final

from bench.prove.cluster import Cluster, open_cluster
from bench.prove.figure import Figure, require
from bench.prove.lean import Frames, Lean, Received, check, events_path
from bench.prove.stores import Stores, Written
from footplate.engine.wake import workflow_id
from footplate.testing import replies, reply, text
from footplate.wiring import DEFAULT_ORGANISATION

_MOST_BYTES: Final = 1.1
_MOST_TIME: Final = 1.3
_SANITY: Final = 3.0
_SCRIPT: Final = "linear"
_WARM_UP: Final = 20


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds since the epoch."""

    sent: float
    request_began: float
    idle: float
    request_arrived: float = 0.0
    answered: float = 0.0

    @property
    def outside(self) -> float:
        return (self.request_began - self.sent) + (self.idle - self.answered)

    @property
    def until_request(self) -> float:
        return self.request_arrived - self.sent


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every proof has this shape
    turns, window = (60, 15) if quick else (1000, 50)
    async with open_cluster() as cluster, Lean(cluster.base_urls[0], cluster.key) as client:
        await cluster.model.install(_SCRIPT, replies(reply(text("Yes, {n}."), repeat=True)))
        conversation = _Conversation(cluster, client)
        await conversation.open(stores=False)
        await conversation.go_on(_WARM_UP)
        await conversation.open(stores=True)
        first = await conversation.measured(window)
        await conversation.go_on(turns - 2 * window)
        last = await conversation.measured(window)
        warm = await conversation.timed(turns)
        await cluster.restart_worker(0)
        await conversation.go_on(1)
        cold = (await conversation.timed(1))[0]
        validated = check(conversation.received)
    return _judge(first, last, warm, cold, validated, quick=quick, window=window)


def _judge(
    first: Written, last: Written, warm: list[Turn], cold: Turn, validated: int, *, quick: bool, window: int
) -> Figure:
    bytes_ratio = last.total / first.total
    early, late = (mean(turn.outside for turn in part) for part in (warm[:window], warm[-window:]))
    time_ratio = late / early
    usual = mean(turn.until_request for turn in warm[-window:])
    most_bytes, most_time = (_SANITY, _SANITY) if quick else (_MOST_BYTES, _MOST_TIME)
    turns = len(warm)
    return Figure(
        text=f"turns {turns - window + 1}-{turns} write {bytes_ratio:.2f} times the bytes of turns 1-{window} "
        f"({last.total / window:,.0f} a turn; at most {most_bytes}) and take {time_ratio:.2f} times as long "
        f"({late * 1000:.0f} ms; at most {most_time}); cold, the model's request leaves after "
        f"{cold.until_request * 1000:.0f} ms, warm after {usual * 1000:.0f}",
        holds=bytes_ratio <= most_bytes and time_ratio <= most_time,
        details={
            "bytes_first": {**asdict(first)},
            "bytes_last": {**asdict(last)},
            "outside_ms_by_fifty": [
                round(mean(turn.outside for turn in warm[at : at + 50]) * 1000, 1) for at in range(0, turns, 50)
            ],
            "until_request_ms_by_fifty": [
                round(mean(turn.until_request for turn in warm[at : at + 50]) * 1000, 1) for at in range(0, turns, 50)
            ],
            "cold_until_request_ms": round(cold.until_request * 1000, 1),
            "events_validated": validated,
        },
    )


class _Conversation:
    """One session, and what was noted of its turns."""

    def __init__(self, cluster: Cluster, client: Lean) -> None:
        self._cluster = cluster
        self._client = client
        self._session_id = ""
        self._turns: list[Turn] = []
        self._stores: Stores | None = None
        self.received: list[Received] = []

    async def open(self, *, stores: bool) -> None:
        session = await self._client.post("/v1/sessions", await self._client.seat())
        self._session_id = session["id"]
        self._turns.clear()
        if stores:
            await self._cluster.model.clear()
            self._stores = await Stores.open(self._cluster, workflow_id(DEFAULT_ORGANISATION, self._session_id))

    async def go_on(self, turns: int) -> None:
        async with self._client.stream(events_path(self._session_id)) as frames:
            for _ in range(turns):
                self._turns.append(await self._turn(frames))
                if self._stores is not None and len(self._turns) % 50 == 0:
                    await self._stores.note_run()

    async def measured(self, turns: int) -> Written:
        assert self._stores is not None
        await self._stores.begin()
        await self.go_on(turns)
        return await self._stores.end()

    async def timed(self, turns: int) -> list[Turn]:
        """The last turns, with what the model noted of them."""
        requests = [
            record for record in await self._cluster.model.requests(bodies=False) if record["path"] == "/v1/messages"
        ]
        require(
            holds=len(requests) == len(self._turns), otherwise=f"{len(requests)} requests in {len(self._turns)} turns"
        )
        return [
            Turn(turn.sent, turn.request_began, turn.idle, float(str(record["time"])), float(str(record["ended_at"])))
            for turn, record in zip(self._turns[-turns:], requests[-turns:], strict=True)
        ]

    async def _turn(self, frames: Frames) -> Turn:
        sent = time.time()
        await self._client.send(self._session_id, f"And now? [[script:{_SCRIPT}]]")
        received = await frames.until_idle()
        self.received.extend(received)
        (began,) = (frame for frame in received if frame.event == "span.model_request_start")
        return Turn(sent, dt.datetime.fromisoformat(began.body["processed_at"]).timestamp(), received[-1].at)
