"""A conversation costs per turn what the turn adds: turn 1,000 writes as much and takes as long as turn 1.

One session, turn after turn, on a warm worker. Bytes are those of all stores: PostgreSQL's write-ahead log (after a
checkpoint, images of whole pages apart), the object store, everything sent to Redis, Temporal's history. Time is from
sending the message to `session.status_idle`, less the part in which the model's request is built and sent (which holds
the whole conversation, and so must grow) and answered: from the log's `span.model_request_start` until the model has
sent its last byte.

A shared machine's own pace changes by half from one minute to the next, and turn 1,000 comes two minutes after turn
1. So the time that decides is that of the fifty turns after the thousandth, taken in turn, ten by ten, with the first
fifty of a conversation that begins beside them; how the conversation compares with its own beginning is told too.
Afterwards the worker is started anew, and its first turn has to load the conversation.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from statistics import mean
from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import Cluster, open_cluster
from bench.support.lean import Lean, check
from bench.support.speed.conversation import Conversation, Turn, add_request_times, open_client
from bench.support.stores import Stores, Written
from footplate.domain.json import Json
from footplate.engine.wake import workflow_id
from footplate.wiring import DEFAULT_ORGANISATION

_MOST_BYTES: Final = 1.1
_MOST_TIME: Final = 1.3
_SANITY: Final = 3.0
_WARM_UP: Final = 20
_BLOCK: Final = 10
_NOTED_EVERY: Final = 50


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every proof has this shape
    turns, window = (60, 20) if quick else (1000, 50)
    async with AsyncExitStack() as ending:
        cluster = await ending.enter_async_context(open_cluster())
        client = await open_client(cluster, ending)
        warm_up, long, beside = [await ending.enter_async_context(_opened(cluster, client)) for _ in range(3)]
        await warm_up.run_turns(_WARM_UP)
        await cluster.model.clear()
        bytes_first = await long.measured(window)
        await long.run_turns(turns - 2 * window)
        bytes_last = await long.measured(window)
        for _ in range(window // _BLOCK):
            await long.run_turns(_BLOCK)
            await beside.run_turns(_BLOCK)
        await cluster.restart_worker(0)
        await long.run_turns(1)
        await add_request_times(cluster, [*long.turns, *beside.turns])
        validated = check([*long.received, *beside.received])
    times = _Times(long.turns[:-1], beside.turns, cold=long.turns[-1], window=window)
    return _judge(bytes_first, bytes_last, times, validated, quick=quick)


@dataclass(frozen=True, slots=True)
class _Times:
    long: list[Turn]
    beside: list[Turn]
    cold: Turn = field(kw_only=True)
    window: int = field(kw_only=True)

    @property
    def late(self) -> float:
        return _outside(self.long[-self.window :])

    @property
    def ratio(self) -> float:
        return self.late / _outside(self.beside)

    @property
    def ratio_to_own_beginning(self) -> float:
        return _outside(self.long[-2 * self.window : -self.window]) / _outside(self.long[: self.window])

    def by_fifty(self, of: Callable[[list[Turn]], float]) -> list[Json]:
        return [round(of(self.long[at : at + 50]) * 1000, 1) for at in range(0, len(self.long), 50)]


def _outside(turns: list[Turn]) -> float:
    return mean(turn.outside for turn in turns)


def _until_request(turns: list[Turn]) -> float:
    return mean(turn.until_request for turn in turns)


def _judge(first: Written, last: Written, times: _Times, validated: int, *, quick: bool) -> Figure:
    bytes_ratio = last.total / first.total
    most_bytes, most_time = (_SANITY, _SANITY) if quick else (_MOST_BYTES, _MOST_TIME)
    window, end = times.window, len(times.long)
    begin = end - window
    return Figure(
        text=f"turns {begin - window + 1}-{begin} write {bytes_ratio:.2f} times the bytes of turns 1-{window} "
        f"({last.total / window:,.0f} a turn; at most {most_bytes}); turns {begin + 1}-{end} take {times.ratio:.2f} "
        f"times as long as turns 1-{window} of a conversation beside it ({times.late * 1000:.0f} ms; at most "
        f"{most_time}), and turns {begin - window + 1}-{begin} {times.ratio_to_own_beginning:.2f} times as long as its "
        f"own first; cold, the model's request leaves after {times.cold.until_request * 1000:.0f} ms, warm after "
        f"{_until_request(times.long[-window:]) * 1000:.0f}",
        holds=bytes_ratio <= most_bytes and times.ratio <= most_time,
        details={
            "bytes_first": {**asdict(first)},
            "bytes_last": {**asdict(last)},
            "outside_ms_by_fifty": times.by_fifty(_outside),
            "outside_ms_beside": round(_outside(times.beside) * 1000, 1),
            "until_request_ms_by_fifty": times.by_fifty(_until_request),
            "cold_until_request_ms": round(times.cold.until_request * 1000, 1),
            "events_validated": validated,
        },
    )


class _Stored:
    """A conversation, and what was written for it."""

    def __init__(self, conversation: Conversation, stores: Stores) -> None:
        self._conversation = conversation
        self._stores = stores
        self.turns, self.received = conversation.turns, conversation.received

    async def run_turns(self, turns: int) -> None:
        for begin in range(0, turns, _NOTED_EVERY):
            await self._conversation.run_turns(min(_NOTED_EVERY, turns - begin))
            await self._stores.note_run()

    async def measured(self, turns: int) -> Written:
        await self._stores.begin()
        await self.run_turns(turns)
        return await self._stores.end()


@asynccontextmanager
async def _opened(cluster: Cluster, client: Lean) -> AsyncIterator[_Stored]:
    conversation = await Conversation.begin(client)
    stores = await Stores.open(cluster, workflow_id(DEFAULT_ORGANISATION, conversation.session_id))
    yield _Stored(conversation, stores)
    await stores.aclose()
