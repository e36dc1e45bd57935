"""The cost of a turn does not grow with the conversation: turn 1,000 writes as much and takes as long as turn 1.

One session runs turn after turn on a warm worker. Bytes are those of all stores: PostgreSQL's write-ahead log (without
the full-page images after a checkpoint), the object store, everything sent to Redis, Temporal's history. Time is from
sending the message to `session.status_idle`, minus the time from the log's `span.model_request_start` until the model
has sent its last byte: the request contains the whole conversation, so that part has to grow.

The speed of a shared machine changes by half from one minute to the next, and turn 1,000 comes two minutes after turn
1. So the fifty turns after the thousandth are compared with the first fifty of a new conversation, alternating every
ten turns. The comparison with the conversation's own beginning is in the summary. Finally the worker is restarted, and
its first turn has to load the conversation.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from statistics import mean
from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import Cluster, open_cluster
from bench.support.minimal_client import MinimalClient, validate_frames
from bench.support.speed.timed_conversation import TimedConversation, Turn, add_request_times, open_client
from bench.support.store_writes import BytesWritten, StoreWriteMeter
from footplate.domain.json import Json
from footplate.engine.temporal.session_waker import workflow_id
from footplate.wiring import DEFAULT_ORGANISATION

_MAX_BYTES_RATIO: Final = 1.1
_MAX_TIME_RATIO: Final = 1.3
_MAX_RATIO_QUICK: Final = 3.0
_WARM_UP: Final = 20
_BLOCK: Final = 10
_TURNS_PER_NOTE: Final = 50


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns, window = (60, 20) if quick else (1000, 50)
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(open_cluster())
        client = await open_client(cluster, exits)
        warm_up, long, beside = [await exits.enter_async_context(_open_conversation(cluster, client)) for _ in range(3)]
        await warm_up.run_turns(_WARM_UP)
        await cluster.model.clear()
        bytes_first = await long.measure_bytes(window)
        await long.run_turns(turns - 2 * window)
        bytes_last = await long.measure_bytes(window)
        for _ in range(window // _BLOCK):
            await long.run_turns(_BLOCK)
            await beside.run_turns(_BLOCK)
        await cluster.restart_worker(0)
        await long.run_turns(1)
        await add_request_times(cluster, [*long.turns, *beside.turns])
        validated = validate_frames([*long.received, *beside.received])
    times = _Times(long.turns[:-1], beside.turns, cold=long.turns[-1], window=window)
    return _judge(bytes_first, bytes_last, times, validated, quick=quick)


@dataclass(frozen=True, slots=True)
class _Times:
    long: list[Turn]
    beside: list[Turn]
    cold: Turn = field(kw_only=True)
    window: int = field(kw_only=True)

    @property
    def late_seconds(self) -> float:
        return _mean_outside(self.long[-self.window :])

    @property
    def ratio(self) -> float:
        return self.late_seconds / _mean_outside(self.beside)

    @property
    def ratio_to_own_beginning(self) -> float:
        return _mean_outside(self.long[-2 * self.window : -self.window]) / _mean_outside(self.long[: self.window])

    def by_fifty(self, of: Callable[[list[Turn]], float]) -> list[Json]:
        return [round(of(self.long[at : at + 50]) * 1000, 1) for at in range(0, len(self.long), 50)]


def _mean_outside(turns: list[Turn]) -> float:
    return mean(turn.outside_request for turn in turns)


def _mean_until_request(turns: list[Turn]) -> float:
    return mean(turn.until_request for turn in turns)


def _judge(first: BytesWritten, last: BytesWritten, times: _Times, validated: int, *, quick: bool) -> Figure:
    bytes_ratio = last.total / first.total
    max_bytes_ratio, max_time_ratio = (
        (_MAX_RATIO_QUICK, _MAX_RATIO_QUICK) if quick else (_MAX_BYTES_RATIO, _MAX_TIME_RATIO)
    )
    window, end = times.window, len(times.long)
    begin = end - window
    return Figure(
        headline=f"turn {begin:,} writes {bytes_ratio:.2f} times the bytes of turn 1, takes {times.ratio:.2f} times as "
        "long",
        summary=f"turns {begin - window + 1}-{begin} write {bytes_ratio:.2f} times the bytes of turns 1-{window} "
        f"({last.total / window:,.0f} per turn; limit {max_bytes_ratio}); turns {begin + 1}-{end} take "
        f"{times.ratio:.2f} "
        f"times as long as turns 1-{window} of a new conversation ({times.late_seconds * 1000:.0f} ms; "
        f"limit {max_time_ratio}), and "
        f"turns {begin - window + 1}-{begin} {times.ratio_to_own_beginning:.2f} times as long as its own first "
        f"{window}; the model's request is sent after {times.cold.until_request * 1000:.0f} ms on a cold worker, after "
        f"{_mean_until_request(times.long[-window:]) * 1000:.0f} ms on a warm one",
        holds=bytes_ratio <= max_bytes_ratio and times.ratio <= max_time_ratio,
        details={
            "bytes_first": {**asdict(first)},
            "bytes_last": {**asdict(last)},
            "outside_ms_by_fifty": times.by_fifty(_mean_outside),
            "outside_ms_beside": round(_mean_outside(times.beside) * 1000, 1),
            "until_request_ms_by_fifty": times.by_fifty(_mean_until_request),
            "cold_until_request_ms": round(times.cold.until_request * 1000, 1),
            "events_validated": validated,
        },
    )


class _MeasuredConversation:
    """A conversation, and the bytes that the stores write for it."""

    def __init__(self, conversation: TimedConversation, stores: StoreWriteMeter) -> None:
        self._conversation = conversation
        self._stores = stores
        self.turns, self.received = conversation.turns, conversation.received

    async def run_turns(self, turns: int) -> None:
        for begin in range(0, turns, _TURNS_PER_NOTE):
            await self._conversation.run_turns(min(_TURNS_PER_NOTE, turns - begin))
            await self._stores.record_runs()

    async def measure_bytes(self, turns: int) -> BytesWritten:
        await self._stores.begin()
        await self.run_turns(turns)
        return await self._stores.end()


@asynccontextmanager
async def _open_conversation(cluster: Cluster, client: MinimalClient) -> AsyncIterator[_MeasuredConversation]:
    conversation = await TimedConversation.create(client)
    stores = await StoreWriteMeter.open(cluster, workflow_id(DEFAULT_ORGANISATION, conversation.session_id))
    yield _MeasuredConversation(conversation, stores)
    await stores.aclose()
