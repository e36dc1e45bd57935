"""Follows one turn to its end: reads the event stream, asks for approvals, handles Ctrl-C and the time limit, and
returns the result.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Final, cast

from footplate.cli.follow import earlier_calls
from footplate.cli.follow.live_approvals import LiveApprovalView, retrieve_waiting
from footplate.cli.json_output_models import RunResult
from footplate.cli.render.terminal_io import Exit
from footplate.cli.render.turn_views import TurnView
from footplate.client import AsyncFootplate, ClientError, NotFound, StreamLost, Turn, Unreachable, Usage
from footplate.client.response_models import Event

_REFRESH_SECONDS: Final = 0.25
_STOP_GRACE_SECONDS: Final = 15.0
"""Seconds that an interrupted turn may take to stop."""
_EXIT_CODES: Final = {
    "completed": Exit.DONE,
    "failed": Exit.FAILED,
    "awaiting_tool_results": Exit.NEEDS_ACTION,
    "timed_out": Exit.TIMED_OUT,
    "interrupted": Exit.INTERRUPTED,
    "limit_reached": Exit.LIMIT_REACHED,
}
_FINAL_EVENTS: Final = frozenset({"session.status_idle", "session.status_terminated", "session.deleted"})


class TurnFollower:
    """Follows a turn. The first Ctrl-C, or the time limit, interrupts it; the second Ctrl-C detaches. While the turn
    is parked, Ctrl-C detaches, and the time limit does not count.
    """

    def __init__(
        self,
        client: AsyncFootplate,
        session_id: str,
        view: TurnView,
        *,
        limit: float | None = None,
        approvals: LiveApprovalView | None = None,
    ) -> None:
        """`approvals`: asks the user about the pending calls of a parked turn. None: the turn is followed until it
        parks.
        """
        self._client = client
        self._approvals = approvals
        self._session_id = session_id
        self._view = view
        self._time_limit = limit
        self._task: asyncio.Task[Any] | None = None
        self._interrupt_task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._turn_input_id: str | None = None
        self._known_calls: set[str] = set()
        self._parked = False
        self._undecided = False
        self._timed_out = False
        self._detached = False

    async def follow(
        self, *, after: str, input_id: str | None = None, show_all: bool = False, has_started: bool = False
    ) -> RunResult:
        """Follows events after `after` to the end of the turn that processes `input_id`, or else of the next turn.

        Shows only that turn, or all events with `show_all`. `has_started`: the turn starts directly after `after`.
        """
        self._turn_input_id = input_id if has_started else None
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        self._set_timer()
        ticking = asyncio.create_task(self._refresh_periodically())
        previous_handler = signal.signal(signal.SIGINT, lambda number, frame: self._on_sigint(loop, number, frame))
        try:
            await self._watch(after, input_id, show_all=show_all)
        except asyncio.CancelledError:
            if self._detached or not (self._timed_out or self._undecided):
                raise
        except (Unreachable, StreamLost):
            self._view.show_note(
                f"The session is not lost. Once the server is back, run: footplate attach {self._session_id}"
            )
            raise
        finally:
            signal.signal(signal.SIGINT, previous_handler)
            ticking.cancel()
            self._cancel_timer()
        return self._result(await self._find_turn(self._turn_input_id or input_id))

    async def _watch(self, after: str, input_id: str | None, *, show_all: bool) -> None:
        """Shows events until the turn ends, or until it is parked and the user is not asked."""
        stream = self._client.events.stream(self._session_id, after=after, on_connection=self._view.connection_changed)
        async with aclosing(cast("Any", stream)) as events:
            async for event in events:
                if self._turn_input_id is None and _starts_turn(event, input_id):
                    self._turn_input_id = event.id
                if self._turn_input_id is not None or show_all:
                    await self._show(event)
                if event.type == "session.status_running" and self._parked:
                    self._parked = False
                    self._set_timer()
                if event.type not in _FINAL_EVENTS:
                    continue
                if self._turn_input_id is None and event.type == "session.status_idle":
                    continue
                if not await self._continues_after(event):
                    return

    async def _show(self, event: Event) -> None:
        """Shows an event. If it belongs to a call that was not shown, such as a pending call of an earlier turn, the
        view receives that call first.
        """
        if event.type in earlier_calls.TOOL_USES:
            self._known_calls.add(str(event.id))
        elif (call_id := earlier_calls.referenced_call(event)) and call_id not in self._known_calls:
            self._known_calls.add(call_id)
            for earlier in await earlier_calls.find_missing_calls(self._client, self._session_id, [event]):
                self._view.recall_event(earlier)
        self._view.show_event(event)

    async def _continues_after(self, event: Event) -> bool:
        """Whether events of the turn follow this event: its pending calls were decided, or the user is asked now."""
        event_ids = (event.stop_reason or {}).get("event_ids")
        turn = await self._find_turn(self._turn_input_id) if event_ids else None
        if not event_ids or turn is None:
            return False
        if turn.status != "awaiting_tool_results" or not {*event_ids} & {*turn.result.pending}:
            return True
        try:
            waiting = [await retrieve_waiting(self._client, event_id) for event_id in event_ids]
        except NotFound:
            return False  # a call of a custom tool, whose result cannot be typed
        undecided = [each.id for each in waiting if each.status == "pending"]
        if undecided and self._approvals is not None:
            self._parked = True
            self._cancel_timer()
            self._approvals.ask_about(undecided, self._stop_if_parked)
        return not undecided or self._parked

    async def _stop_if_parked(self) -> None:
        """Stops watching, because the user leaves a call pending. Not if the turn has resumed meanwhile."""
        turn = await self._find_turn(self._turn_input_id)
        if turn is not None and turn.status == "awaiting_tool_results":
            self._undecided = True
            self._cancel()

    async def _find_turn(self, input_id: str | None) -> Turn | None:
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
            exit_code=_EXIT_CODES[status],
            text=turn.result.text if turn else "",
            error=turn.result.error if turn else "The session was deleted.",
            pending=turn.result.pending if turn else [],
            usage=turn.usage if turn else Usage(),
            attempts=turn.attempt if turn else 0,
            handovers=turn.result.metrics.handovers if turn else 0,
            seconds=round(_seconds(turn), 3),
        )

    def _on_sigint(self, loop: asyncio.AbstractEventLoop, _number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(self._interrupt_or_detach)

    def _interrupt_or_detach(self) -> None:
        if self._interrupt_task is not None or self._parked:
            self._detached = True
            next_step = "Decide later" if self._parked else "The session continues. Watch it with"
            self._view.show_note(f"Detached. {next_step}: footplate attach {self._session_id}")
            self._cancel()
            return
        self._view.show_note("Interrupting. Press Ctrl-C again to detach without waiting.")
        self._send_interrupt()

    def _set_timer(self) -> None:
        if self._time_limit:
            self._timer = asyncio.get_running_loop().call_later(self._time_limit, self._on_timeout)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _on_timeout(self) -> None:
        self._timed_out = True
        if self._interrupt_task is None:
            self._view.show_note(f"The time limit of {self._time_limit:g} s was reached. Interrupting.")
            self._send_interrupt()
        asyncio.get_running_loop().call_later(_STOP_GRACE_SECONDS, self._cancel)

    def _send_interrupt(self) -> None:
        self._interrupt_task = asyncio.create_task(
            _ignore_client_errors(lambda: self._client.events.interrupt(self._session_id))
        )

    def _cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def _refresh_periodically(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            self._view.refresh_status()


async def _ignore_client_errors(send: Callable[[], Awaitable[Event]]) -> None:
    """Ignores client errors, because the stream already reports a lost server."""
    with suppress(ClientError):
        await send()


def _starts_turn(event: Event, input_id: str | None) -> bool:
    if input_id is not None and event.id == input_id:
        return event.processed_at is not None
    return input_id is None and event.type == "user.message" and event.processed_at is not None


def _status(turn: Turn | None) -> str:
    if turn is None or turn.step_failed:
        return "failed"
    return turn.status if turn.status in _EXIT_CODES else "completed"


def _seconds(turn: Turn | None) -> float:
    if turn is None or turn.started_at is None:
        return 0.0
    return max(0.0, ((turn.ended_at or datetime.now(UTC)) - turn.started_at).total_seconds())
