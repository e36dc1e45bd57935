"""Asks the user who follows a turn to approve its pending tool calls and to answer its questions: those for which the
turn is parked, and those of subagents while it still runs.

Questions are asked one at a time, and events that arrive during a question are shown after it. A question is withdrawn
as soon as the stream reports a decision of another person, or that the turn goes on without one. A decision that comes
too late is a note. Input typed for one question is never used for the next one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from footplate.cli.follow import approval_prompt, question_prompt
from footplate.cli.follow.approval_prompt import TypedDecision
from footplate.cli.follow.earlier_calls import TOOL_USES
from footplate.cli.json_output_models import RunResult
from footplate.cli.render import terminal_io
from footplate.cli.render.turn_views import TurnView
from footplate.client import Approval, AsyncFootplate, ClientError, InvalidRequest, NotFound, Question
from footplate.client.response_models import Event

TypedReply: TypeAlias = dict[str, str | list[str]]

_SUBAGENT_TOOL: Final = "Agent"
"""The call that starts a subagent waits for approval in the same way as the subagent's calls."""
_WITHDRAWING_EVENTS: Final = frozenset(
    {"session.status_running", "session.status_idle", "session.status_terminated", "session.deleted"}
)
"""Events after which no earlier call waits: a parked turn resumes, or a running turn ends."""
_PAUSE_SECONDS: Final = 1.0
"""Pause in seconds after a question that was decided elsewhere, so that a late key press does not answer the next."""


class LiveApprovalView:
    """A view that also asks for approval of pending calls."""

    def __init__(self, client: AsyncFootplate, view: TurnView) -> None:
        self._client = client
        self._view = view
        self._pending: dict[str, bool] = {}
        """Calls without a decision in the log, by id, and whether the turn is parked for them."""
        self._deferred_events: list[Event] = []
        """Events that arrived while a question is on the screen."""
        self._question_task: asyncio.Task[TypedDecision | TypedReply | None] | None = None
        self._asked_id = ""
        """The id of the call in question."""
        self._asking_task: asyncio.Task[None] | None = None
        self._on_undecided: Callable[[], Awaitable[None]] | None = None
        self._undecided: set[str] = set()
        """Calls of a parked turn that the user did not decide. The user is not asked again."""

    def ask_about(self, event_ids: Sequence[str], on_undecided: Callable[[], Awaitable[None]]) -> None:
        """Asks about the calls of a parked turn. Calls `on_undecided` if the user leaves one of them pending."""
        self._on_undecided = on_undecided
        for event_id in event_ids:
            if event_id not in self._undecided:
                self._add_pending(event_id, is_parked=True)

    def show_event(self, event: Event) -> None:
        if event.type in _WITHDRAWING_EVENTS:
            still_pending = (event.stop_reason or {}).get("event_ids") or ()
            self._withdraw([event_id for event_id in self._pending if event_id not in still_pending])
        elif event.type in {"user.tool_confirmation", "user.custom_tool_result"}:
            self._withdraw([str(event.tool_use_id or event.custom_tool_use_id)])
        elif _waits_while_running(event):
            self._add_pending(str(event.id), is_parked=False)
        if self._question_task is None:
            self._view.show_event(event)
        else:
            self._deferred_events.append(event)

    def recall_event(self, event: Event) -> None:
        self._view.recall_event(event)

    def show_note(self, text: str) -> None:
        if self._question_task is not None:
            terminal_io.err().print()
        self._view.show_note(text)

    def connection_changed(self, error: ClientError | None) -> None:
        self._view.connection_changed(error)

    def refresh_status(self) -> None:
        if self._question_task is None:
            self._view.refresh_status()

    async def close(self) -> None:
        """Withdraws all questions, and waits until the terminal is free."""
        self._withdraw([*self._pending])
        if self._asking_task is not None and self._question_task is not None:
            await asyncio.wait({self._question_task})
        if self._asking_task is not None:
            self._asking_task.cancel()
        self._end_question()

    def show_result(self, result: RunResult) -> None:
        self._view.show_result(result)

    def _add_pending(self, event_id: str, *, is_parked: bool) -> None:
        self._pending[event_id] = is_parked
        if self._asking_task is None or self._asking_task.done():
            self._asking_task = asyncio.create_task(self._ask_all())

    def _withdraw(self, event_ids: Sequence[str]) -> None:
        for event_id in event_ids:
            was_pending = self._pending.pop(event_id, None) is not None
            if was_pending and self._question_task is not None and self._asked_id == event_id:
                self._question_task.cancel()

    async def _ask_all(self) -> None:
        while self._pending:
            event_id, is_parked = next(iter(self._pending.items()))
            try:
                is_decided = await self._ask_about(event_id, is_parked=is_parked)
            except ClientError as error:
                self._pending.pop(event_id, None)
                self.show_note(error.message)
                is_decided = False
            if is_parked and not is_decided:
                self._undecided.add(event_id)
        if self._undecided and self._on_undecided is not None:
            await self._on_undecided()

    async def _ask_about(self, event_id: str, *, is_parked: bool) -> bool:
        """Asks about one call. Returns whether it is decided, here or elsewhere."""
        found = await retrieve_waiting(self._client, event_id)
        if found.status != "pending":
            self._pending.pop(event_id, None)
        if event_id not in self._pending:
            return True
        self._view.show_note("")
        self._asked_id = event_id
        prompt: Coroutine[Any, Any, TypedDecision | TypedReply | None] = (
            question_prompt.ask_question(found)
            if isinstance(found, Question)
            else approval_prompt.ask_decision(found, can_edit=is_parked)
        )
        self._question_task = question = asyncio.create_task(prompt)
        await asyncio.wait({question})
        if self._end_question():
            await asyncio.sleep(_PAUSE_SECONDS)
            return True
        self._pending.pop(event_id, None)
        return await self._send(found, question.result(), is_parked=is_parked)

    def _end_question(self) -> bool:
        """Shows the events that arrived during the question. Returns whether the question was withdrawn."""
        question, self._question_task = self._question_task, None
        was_withdrawn = question is not None and question.cancelled()
        if was_withdrawn:
            terminal_io.err().print()
            approval_prompt.discard_typed_input()
        deferred = self._deferred_events
        self._deferred_events = []
        for event in deferred:
            self._view.show_event(event)
        return was_withdrawn

    async def _send(
        self, found: "Approval | Question", typed: "TypedDecision | TypedReply | None", *, is_parked: bool
    ) -> bool:
        if typed is None:
            if not is_parked:  # otherwise the result says how to decide
                self.show_note(
                    f"Still pending. To decide, run `footplate approve {found.id}` or "
                    f"`footplate deny {found.id}`. The call is denied if there is no decision in time."
                )
            return False
        try:
            if isinstance(typed, dict):
                await self._client.questions.send_reply(found.id, typed)
            elif isinstance(found, Approval) and typed.result == "allow":
                await self._client.approvals.allow(
                    found, updated_input=typed.updated_input, session_rule=typed.session_rule
                )
            elif isinstance(found, Approval):
                await self._client.approvals.deny(found)
        except ClientError as error:
            is_decided = (await retrieve_waiting(self._client, found.id)).status != "pending"
            what = "answer" if isinstance(found, Question) else "decision"
            self.show_note(f"Your {what} came too late. {error.message}" if is_decided else error.message)
            if isinstance(error, InvalidRequest) and not is_decided:  # such as an invalid rule: ask again
                self._pending[found.id] = is_parked
                return True
            return is_decided
        return True


async def retrieve_waiting(client: AsyncFootplate, event_id: str) -> Approval | Question:
    """Retrieves the approval or the question with this id. Raises `NotFound` for a call of a custom tool, whose result
    cannot be typed.
    """
    try:
        return await client.approvals.retrieve(event_id)
    except NotFound:
        return await client.questions.retrieve(event_id)


def _waits_while_running(event: Event) -> bool:
    """Whether the turn keeps running while this call waits. Calls of the main agent park the turn instead."""
    if event.type not in TOOL_USES or event.evaluated_permission != "ask":
        return False
    return event.session_thread_id is not None or event.name == _SUBAGENT_TOOL
