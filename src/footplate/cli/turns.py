"""Follows one turn to its end: reads the stream, handles Ctrl-C and the time limit, and returns the result."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Final, cast

from footplate.cli.answers import RunResult
from footplate.cli.output import Exit
from footplate.cli.views import View
from footplate.client import AsyncFootplate, ClientError, StreamLost, Turn, Unreachable, Usage
from footplate.client.models import Event

_TICK: Final = 0.25
_GRACE: Final = 15.0
"""Seconds that an interrupted turn may take to stop."""
_EXITS: Final = {
    "completed": Exit.DONE,
    "failed": Exit.FAILED,
    "awaiting_tool_results": Exit.NEEDS_ACTION,
    "timed_out": Exit.TIMED_OUT,
    "interrupted": Exit.INTERRUPTED,
    "limit_reached": Exit.LIMIT_REACHED,
}
_LAST: Final = frozenset({"session.status_idle", "session.status_terminated", "session.deleted"})


class Follower:
    """Follows a turn. The first Ctrl-C, or the time limit, interrupts it; the second Ctrl-C detaches."""

    def __init__(self, client: AsyncFootplate, session_id: str, view: View, *, limit: float | None = None) -> None:
        self._client = client
        self._session_id = session_id
        self._view = view
        self._limit = limit
        self._task: asyncio.Task[Any] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._timed_out = False
        self._left = False

    async def follow(self, *, after: str, input_id: str | None = None, show_all: bool = False) -> RunResult:
        """Follows events after `after` to the end of the turn that processes `input_id`, or else of the next turn.

        Shows only that turn, or all events with `show_all`.
        """
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._limit, self._time_is_up) if self._limit else None
        ticking = asyncio.create_task(self._ticking())
        before = signal.signal(signal.SIGINT, lambda number, frame: self._signal(loop, number, frame))
        try:
            begun = await self._watch(after, input_id, show_all=show_all)
        except asyncio.CancelledError:
            if self._left or not self._timed_out:
                raise
            begun = input_id
        except (Unreachable, StreamLost):
            self._view.note(
                f"The session is not lost. Once the server is back, run: footplate attach {self._session_id}"
            )
            raise
        finally:
            signal.signal(signal.SIGINT, before)
            ticking.cancel()
            if timer is not None:
                timer.cancel()
        return self._result(await self._turn(begun))

    async def _watch(self, after: str, input_id: str | None, *, show_all: bool) -> str | None:
        """Shows events until the turn ends, and returns the id of the input that it processed."""
        begun: str | None = None
        stream = self._client.events.stream(self._session_id, after=after, on_connection=self._view.connection)
        async with aclosing(cast("Any", stream)) as events:
            async for event in events:
                if begun is None and _takes_up(event, input_id):
                    begun = event.id
                if begun is not None or show_all:
                    self._view.show(event)
                if event.type not in _LAST or (begun is None and event.type == "session.status_idle"):
                    continue
                if not await self._went_on(event, begun):
                    return begun
        return begun

    async def _went_on(self, event: Event, begun: str | None) -> bool:
        """Whether the turn resumed after this event because its pending calls were decided. Its later events follow."""
        asked = (event.stop_reason or {}).get("event_ids")
        if not asked:
            return False
        turn = await self._turn(begun)
        return turn is not None and not {*asked} & {*turn.result.pending}

    async def _turn(self, input_id: str | None) -> Turn | None:
        """Returns the turn of an input. A message that joined a running turn has no own turn, so it gets the newest."""
        page = await self._client.turns.list(self._session_id, limit=20).page()
        own = [turn for turn in page.data if turn.input_event_id == input_id]
        return next(iter([*own, *page.data]), None)

    def _result(self, turn: Turn | None) -> RunResult:
        status = "timed_out" if self._timed_out else _status(turn)
        return RunResult(
            session_id=self._session_id,
            turn_id=turn.id if turn else None,
            status=cast("Any", status),
            exit_code=_EXITS[status],
            text=turn.result.text if turn else "",
            error=turn.result.error if turn else "The session was deleted.",
            pending=turn.result.pending if turn else [],
            usage=turn.usage if turn else Usage(),
            attempts=turn.attempt if turn else 0,
            seconds=round(_seconds(turn), 3),
        )

    def _signal(self, loop: asyncio.AbstractEventLoop, _number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(self._interrupt_or_leave)

    def _interrupt_or_leave(self) -> None:
        if self._sending is not None:
            self._left = True
            self._view.note(f"Detached. The session continues: footplate attach {self._session_id}")
            self._cancel()
            return
        self._view.note("Interrupting. Press Ctrl-C again to detach without waiting.")
        self._stop()

    def _time_is_up(self) -> None:
        self._timed_out = True
        if self._sending is None:
            self._view.note(f"The time limit of {self._limit:g} s is reached. Interrupting.")
            self._stop()
        asyncio.get_running_loop().call_later(_GRACE, self._cancel)

    def _stop(self) -> None:
        self._sending = asyncio.create_task(_quietly(lambda: self._client.events.interrupt(self._session_id)))

    def _cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def _ticking(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self._view.tick()


async def _quietly(send: Callable[[], Awaitable[Event]]) -> None:
    """Ignores client errors, because the stream already reports a lost server."""
    with suppress(ClientError):
        await send()


def _takes_up(event: Event, input_id: str | None) -> bool:
    if input_id is not None and event.id == input_id:
        return event.processed_at is not None
    return input_id is None and event.type == "user.message" and event.processed_at is not None


def _status(turn: Turn | None) -> str:
    if turn is None:
        return "failed"
    return turn.status if turn.status in _EXITS else "completed"


def _seconds(turn: Turn | None) -> float:
    if turn is None or turn.started_at is None:
        return 0.0
    return max(0.0, ((turn.ended_at or datetime.now(UTC)) - turn.started_at).total_seconds())
