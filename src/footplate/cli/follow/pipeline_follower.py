"""Follows the steps of a pipeline until all have ended, or until the session needs a person: reads the event stream,
shows each step, and asks for approvals.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, Literal, cast

from footplate.cli.follow.live_approvals import LiveApprovalView
from footplate.cli.json_output_models import PipelineResult
from footplate.cli.render import step_tables
from footplate.cli.render.step_progress import StepProgressView
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate, ClientError, Event, Step, StreamLost, Unreachable

Status = Literal["completed", "failed", "cancelled", "needs_action", "paused"]
EXIT_CODES: Final[dict[Status, Exit]] = {
    "completed": Exit.DONE,
    "failed": Exit.FAILED,
    "cancelled": Exit.INTERRUPTED,
    "needs_action": Exit.NEEDS_ACTION,
    "paused": Exit.NEEDS_ACTION,
}
_CHANGES: Final = ("session.status_", "session.deleted", "step.")
_IDLE_SECONDS: Final = 2.0
"""How often the queue is read while no step runs. A step that is skipped or removed changes no status."""
_REFRESH_SECONDS: Final = 0.25


class PipelineFollower:
    def __init__(
        self, client: AsyncFootplate, session_id: str, steps: Sequence[Step], view: StepProgressView, *, asks: bool
    ) -> None:
        """`asks`: asks the user about calls that need approval. Otherwise such a call ends the following."""
        self._client = client
        self._session_id = session_id
        self._view = view
        self._approvals = LiveApprovalView(client, view) if asks else None
        self._steps = {step.id: step for step in steps}
        self._numbers = {step.id: number for number, step in enumerate(steps, 1)}
        self._shown: dict[str, tuple[object, ...]] = {}
        """What was last shown of each step."""
        self._asked: set[str] = set()
        self._undecided = False
        self._changed = asyncio.Event()

    async def follow(self, *, after: str) -> PipelineResult:
        """Follows events after the position `after`. Ctrl-C ends the following, and not the session."""
        background = [asyncio.create_task(self._watch(after)), asyncio.create_task(self._refresh_periodically())]
        try:
            while (status := await self._update()) is None:
                await self._wait_for_change(background[0])
        except asyncio.CancelledError:
            self._view.show_note("Detached. The session continues. Follow it again, look at its steps, or pause it:")
            for command in ("attach", "steps ls", "pause"):
                self._view.show_note(f"  footplate {command} {self._session_id}")
            raise
        except (Unreachable, StreamLost):
            self._view.show_note(
                f"The session is not lost. Once the server is back, run: footplate attach {self._session_id}"
            )
            raise
        finally:
            for task in background:
                task.cancel()
            if self._approvals is not None:
                await self._approvals.close()
        return await self._build_result(status)

    async def _build_result(self, status: Status) -> PipelineResult:
        steps = [*self._steps.values()]
        total = None
        with suppress(ClientError):  # the server is older than this route, or stops
            total = await self._client.sessions.usage(self._session_id)
        starts = [step.started_at for step in steps if step.started_at]
        ends = [step.ended_at for step in steps if step.ended_at]
        return PipelineResult(
            session_id=self._session_id,
            status=status,
            exit_code=EXIT_CODES[status],
            seconds=max(0.0, (max(ends) - min(starts)).total_seconds()) if starts and ends else None,
            sessions=None if total is None else total.sessions,
            usage=None if total is None else total.usage,
            steps=steps,
        )

    async def _watch(self, after: str) -> None:
        on_connection = self._view.connection_changed
        stream = self._client.events.stream(
            self._session_id, after=after, deltas=(), on_connection=on_connection, extensions=True
        )
        async with aclosing(cast("Any", stream)) as events:
            async for event in events:
                self._receive(event)

    def _receive(self, event: Event) -> None:
        if self._approvals is not None:
            self._approvals.show_event(event)
        if event.type.startswith(_CHANGES):
            self._changed.set()

    async def _wait_for_change(self, watching: asyncio.Task[None]) -> None:
        """Waits for an event that may concern a step. While no step runs, waits only for a short time."""
        is_running = any(step.state == "running" for step in self._steps.values())
        change = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait(
                {change, watching}, timeout=None if is_running else _IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            change.cancel()
        self._changed.clear()
        if watching.done():
            await watching

    async def _update(self) -> Status | None:
        """Reads the steps and shows what changed. Returns the status once there is nothing to wait for."""
        open_states = self._client.steps.list(self._session_id, limit=1000, states=["pending", "running"])
        open_steps = {step.id: step async for step in open_states}
        for step_id, old in self._steps.items():
            if old.state not in {"pending", "running"}:
                continue
            step = open_steps.get(step_id) or await self._client.steps.retrieve(self._session_id, step_id)
            self._steps[step_id] = step
            await self._show(step)
        running = next((step for step in self._steps.values() if step.state == "running"), None)
        self._view.set_running(0 if running is None else self._numbers[running.id], running)
        if all(step.state not in {"pending", "running"} for step in self._steps.values()):
            return await self._end_status()
        waiting = [step for step in open_steps.values() if step.waiting_for == "action" and step.kind != "external"]
        if waiting and not await self._ask_about_calls():
            return "needs_action"
        if any(step.state == "running" for step in open_steps.values()):
            return None
        playback = await self._client.steps.playback(self._session_id)
        if playback.playing or playback.next_steps:
            return None
        failed = playback.pause_reason == "step_failed"
        self._view.show_pause(self._session_id, [*self._steps.values()])
        return self._final_status() if failed and self._final_status() != "completed" else "paused"

    async def _end_status(self) -> Status:
        """Returns the status when all steps have ended. A step may have ended the session before the others ran."""
        status = self._final_status()
        if status != "cancelled":
            return status
        end = (await self._client.sessions.retrieve(self._session_id)).end
        return "completed" if end is not None and end.outcome == "completed" else status

    def _final_status(self) -> Status:
        states = {step.state for step in self._steps.values()}
        return "failed" if "failed" in states else "cancelled" if "cancelled" in states else "completed"

    async def _ask_about_calls(self) -> bool:
        """Asks about calls that need approval. Returns False if the user is not asked, or left one undecided."""
        pending = [one.id async for one in self._client.approvals.list(session_id=self._session_id)]
        if self._approvals is None or self._undecided or not pending:
            self._view.show_note("The session waits for an approval:" if pending else "The session waits for a result.")
            for event_id in pending:
                self._view.show_note(f"  footplate approve {event_id}")
            return False
        if new := [event_id for event_id in pending if event_id not in self._asked]:
            self._asked.update(new)
            self._approvals.ask_about(new, self._stop)
        return True

    async def _stop(self) -> None:
        self._undecided = True
        self._changed.set()

    async def _find_instructions(self, step: Step) -> str:
        """Returns the instructions of an external step that waits, with references replaced by their values."""
        calls = self._client.events.list(self._session_id, limit=10, order="desc", types=["agent.custom_tool_use"])
        for call in (await calls.page()).data:
            if call.wire().get("step_id") == step.id:
                return str((call.input or {}).get("instructions") or "")
        return step.instructions or ""

    async def _show(self, step: Step) -> None:
        number, now = self._numbers[step.id], (step.state, step.waiting_for, step.attempt)
        before = self._shown.get(step.id)
        self._shown[step.id] = now
        has_started = before is not None and before[2] == step.attempt
        if step.attempt and not has_started:
            self._view.step_started(number, step)
        if step.state not in {"pending", "running"}:
            self._view.step_ended(number, step)
        elif step.waiting_for == "retry" and before != now:
            self._view.step_waits(number, step, f"attempt {step.attempt} of {step.max_attempts} failed, to be repeated")
        elif step.waiting_for == "sessions" and before != now:
            self._view.step_waits(number, step, "for its sessions:", f"footplate ls --children-of {step.session_id}")
        elif step.waiting_for == "action" and step.kind == "external" and before != now:
            self._view.show_instructions(number, step, await self._find_instructions(step))
            self._view.step_waits(number, step, "for its result:", step_tables.format_result_command(step))

    async def _refresh_periodically(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(_REFRESH_SECONDS)
                (self._approvals or self._view).refresh_status()
