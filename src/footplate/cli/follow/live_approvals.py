"""Asks the user who follows a turn to approve tool calls of subagents while the turn is still running.

Questions are asked one at a time, and events that arrive during a question are shown after it. A question is withdrawn
if another person decides or the call times out. Input typed for one question is never used for the next one.
"""

import asyncio
from typing import Final

from footplate.cli.follow import approval_prompt
from footplate.cli.json_output_models import RunResult
from footplate.cli.render import terminal_io
from footplate.cli.render.turn_views import TurnView
from footplate.client import Approval, AsyncFootplate, ClientError
from footplate.client.response_models import Event

_SUBAGENT_TOOL: Final = "Agent"
"""The call that starts a subagent waits for approval in the same way as the subagent's calls."""
_TOOL_USE_EVENTS: Final = frozenset({"agent.tool_use", "agent.mcp_tool_use"})
_FINAL_EVENTS: Final = frozenset({"session.status_idle", "session.status_terminated", "session.deleted"})
_PAUSE_SECONDS: Final = 1.0
"""Pause in seconds after a question that was decided elsewhere, so that a late key press does not answer the next."""


class LiveApprovalView:
    """A view that also asks for approval of pending subagent calls."""

    def __init__(self, client: AsyncFootplate, view: TurnView) -> None:
        self._client = client
        self._view = view
        self._pending: dict[str, Event] = {}
        """Calls without a decision in the log, by id."""
        self._deferred_events: list[Event] = []
        """Events that arrived while a question is on the screen."""
        self._question_task: asyncio.Task[str | None] | None = None
        self._asked_id = ""
        """The id of the call in question."""
        self._asking_task: asyncio.Task[None] | None = None

    def show_event(self, event: Event) -> None:
        if event.type in _FINAL_EVENTS:
            self._stop_asking()
        elif event.type == "user.tool_confirmation" and self._pending.pop(str(event.tool_use_id), None) is not None:
            self._close_decided(event)
        if self._question_task is not None:
            self._deferred_events.append(event)
            return
        self._view.show_event(event)
        if _waits_while_running(event):
            self._pending[str(event.id)] = event
            if self._asking_task is None or self._asking_task.done():
                self._asking_task = asyncio.create_task(self._ask_all())

    def show_note(self, text: str) -> None:
        if self._question_task is not None:
            terminal_io.err().print()
        self._view.show_note(text)

    def connection_changed(self, error: ClientError | None) -> None:
        self._view.connection_changed(error)

    def refresh_status(self) -> None:
        if self._question_task is None:
            self._view.refresh_status()

    def show_result(self, result: RunResult) -> None:
        self._stop_asking()
        self._view.show_result(result)

    async def _ask_all(self) -> None:
        while self._pending:
            event_id = next(iter(self._pending))
            try:
                await self._ask_about(event_id)
            except ClientError as error:  # decided meanwhile, or not allowed for this key; the turn continues
                self.show_note(error.message)
            self._pending.pop(event_id, None)

    async def _ask_about(self, event_id: str) -> None:
        approval = await self._client.approvals.retrieve(event_id)
        if approval.status != "pending" or event_id not in self._pending:
            return
        self._view.show_note("")
        self._asked_id, self._question_task = (
            event_id,
            (question := asyncio.create_task(approval_prompt.ask_decision(approval))),
        )
        await asyncio.wait({question})
        if question.cancelled():
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        self._pending.pop(event_id, None)
        self._close_question()
        await self._send_decision(approval, question.result())

    async def _send_decision(self, approval: Approval, decision: str | None) -> None:
        if decision is None:
            self.show_note(
                f"Still pending. To decide, run `footplate approve {approval.id}` or `footplate deny {approval.id}`. "
                "The call is denied if nobody decides in time."
            )
        elif decision == "allow":
            await self._client.approvals.allow(approval)
        else:
            await self._client.approvals.deny(approval)

    def _close_decided(self, confirmation: Event) -> None:
        if self._question_task is None or self._asked_id != confirmation.tool_use_id:
            return
        reason = f": {confirmation.deny_message}" if confirmation.deny_message else "."
        self.show_note(f"Already {'allowed' if confirmation.result == 'allow' else 'denied'} by someone else{reason}")
        approval_prompt.discard_typed_input()
        self._close_question()

    def _close_question(self) -> None:
        """Closes the question and shows the events that arrived during it."""
        question, self._question_task = self._question_task, None
        if question is not None:
            question.cancel()
        deferred, self._deferred_events = self._deferred_events, []
        for event in deferred:
            self.show_event(event)

    def _stop_asking(self) -> None:
        """Closes the question and stops asking: the turn is over."""
        if self._question_task is not None:
            terminal_io.err().print()
        self._close_question()
        self._pending.clear()
        if self._asking_task is not None:
            self._asking_task.cancel()


def _waits_while_running(event: Event) -> bool:
    """Whether the turn keeps running while this call waits. Calls of the main agent park the turn instead."""
    if event.type not in _TOOL_USE_EVENTS or event.evaluated_permission != "ask":
        return False
    return event.session_thread_id is not None or event.name == _SUBAGENT_TOOL
