"""The `terminal` harness: gives a person a shell on the session's terminal, until it is closed.

For clients of the reference API, the terminal is a call of the tool `terminal`. The gate does not decide what a person
types there: the sandbox or container bounds it, and only members who may operate the session can type. If the worker is
lost or stops, its call gets a result that says so, and the next worker opens another terminal with the last snapshot.
"""

import asyncio
from typing import Final, Literal

import structlog

from footplate.domain.errors import HandOver, Permanent, Unavailable
from footplate.domain.json import JsonObject, as_object
from footplate.domain.ports.harness import RunningTerminal, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import steps
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.steps import StepKind
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.domain.text.asciicast import recording_name
from footplate.harness import turn_outcome_factories

TOOL: Final = "terminal"
IDLE_SECONDS: Final = 1800.0
"""A terminal without keys and output for this long is closed."""
UNUSED_SECONDS: Final = 120.0
"""A terminal that no person has joined in this time is closed, unless it was opened again after its worker stopped or
was lost. Its person may be there, and not type.
"""
_CLOSED: Final = "The terminal was closed."
_IDLE: Final = "The terminal was closed, because it was not used."
_INTERRUPTED: Final = "The terminal was closed by an interrupt."
_MOVED: Final = "The worker stopped. The terminal is opened again on another worker, with the same files."
_LOST: Final = (
    "The worker was lost, and the terminal with it. It is opened again with the files of the last snapshot: "
    "changes since then, and programs that ran, are lost."
)
_CHECK_SECONDS: Final = 5.0

_Status = Literal["closed", "moved", "lost"]
log = structlog.get_logger(__name__)


class TerminalHarness:
    async def run(self, turn: TurnContext) -> TurnOutcome:
        return await _TerminalTurn(turn).run()


class _TerminalTurn:
    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        uses = [event for event in turn.turn_events if event.type == ev.AGENT_TOOL_USE]
        self._last_use = uses[-1] if uses else None
        results = [event for event in turn.turn_events if event.type == ev.AGENT_TOOL_RESULT]
        self._last_status = as_object(results[-1].body.get("terminal")).get("status") if results else None
        self._is_open = len(uses) > len(results)
        self._is_reopened = bool(uses)

    async def run(self) -> TurnOutcome:
        turn = self._turn
        if self._last_status == "closed" and not self._is_open:
            return _completed()  # the end of the turn was lost
        note = ""
        if self._is_open and self._last_use is not None:
            note = _LOST
            await self._record_end(self._last_use, "lost", note, None)
        elif self._last_status == "moved":
            note = _MOVED
        if turn.interrupt.is_set():
            return turn_outcome_factories.interrupted("")
        if turn.handover.is_set():
            raise HandOver
        if turn.terminals is None or turn.step is None or turn.step.definition.kind is not StepKind.TERMINAL:
            raise Permanent("The harness 'terminal' runs only terminals.", help_text="Choose another harness.")
        use = steps.in_step(ev.tool_use(TOOL, {}, call_id=turn.turn_id), turn.step)
        await turn.environment.ensure_open()
        await turn.log.append([use])
        return await self._serve(use, await turn.terminals.open_terminal(use.id, note=note))

    async def _serve(self, use: Event, terminal: RunningTerminal) -> TurnOutcome:
        turn = self._turn
        running = asyncio.create_task(terminal.run_to_end())
        interrupted = asyncio.create_task(turn.interrupt.wait())
        stopping = asyncio.create_task(turn.handover.wait())
        waiting = {running, interrupted, stopping}
        try:
            while not any(task.done() for task in waiting) and not self._is_idle(terminal):
                await asyncio.wait(waiting, timeout=_CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_closed = running.done()
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            reason = _reason(is_closed=is_closed, is_interrupted=turn.interrupt.is_set(), moves=turn.handover.is_set())
            await terminal.stop(reason)
        if is_closed:
            running.result()
        moves = not is_closed and turn.handover.is_set() and not turn.interrupt.is_set()
        await self._record_end(use, "moved" if moves else "closed", reason, terminal)
        if moves:
            raise HandOver
        return turn_outcome_factories.interrupted("") if turn.interrupt.is_set() and not is_closed else _completed()

    def _is_idle(self, terminal: RunningTerminal) -> bool:
        was_used = terminal.was_used or self._is_reopened
        return terminal.idle_seconds >= (IDLE_SECONDS if was_used else UNUSED_SECONDS)

    async def _record_end(self, use: Event, status: _Status, text: str, terminal: RunningTerminal | None) -> None:
        details: JsonObject = {"status": status}
        if terminal is not None:
            try:
                details["recording"] = await self._turn.log.store_output(
                    terminal.recording, name=recording_name(use.id)
                )
            except Unavailable as error:
                log.warning("a recording could not be stored", action="terminal.not_recorded", reason=error.message)
        result = ev.tool_result_for(use, [ev.text_block(text)], is_error=status == "lost", call_id=self._turn.turn_id)
        result.body["terminal"] = details
        await self._turn.log.append([steps.in_step(result, self._turn.step)])


def _reason(*, is_closed: bool, is_interrupted: bool, moves: bool) -> str:
    if is_closed:
        return _CLOSED
    return _INTERRUPTED if is_interrupted else _MOVED if moves else _IDLE


def _completed() -> TurnOutcome:
    return TurnOutcome(status=TurnStatus.COMPLETED, text=_CLOSED)
