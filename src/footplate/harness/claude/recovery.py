"""Plans how a new attempt continues a turn of the `claude` harness after the previous attempt was lost.

The Claude Code CLI ignores a tool call without a result, and the model might then repeat the call. The plan therefore
adds a result to every open call before the CLI starts. If the log has an `agent.tool_use` event, the call may have
taken effect; otherwise it never started. The CLI is not started while results of custom tools or approvals are missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event
from footplate.harness import approvals
from footplate.harness.claude.permissions.approved_call_runner import ApprovedCall
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.permissions.subagent_approvals import SUBAGENT_ENDED
from footplate.harness.claude.transcripts import tool_names, transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import Call, ResponseLine, ToolResults
from footplate.harness.claude.transcripts.tool_names import QUESTION_TOOL
from footplate.harness.claude.transcripts.transcript_lines import Transcript
from footplate.harness.recovery_text import (
    CLIENT_RESULT_INTERRUPTED,
    NO_CLIENT_RESULT,
    UNFINISHED,
    UNKNOWN,
    custom_tool_result,
    end_open_requests,
)
from footplate.harness.tool_calls import command_details
from footplate.harness.tool_calls.session_tools import REPEATABLE_TOOLS

NOT_STARTED: Final = (
    "This call was not started: the process that should have run it was lost. It had no effect. Make the call again if "
    "it is still needed."
)

NOT_AS_SHOWN: Final = (
    "This call did not run: its input differs from the one that the user was shown for approval. It had no effect. "
    "Make the call again."
)

DENIED: Final = "Denied by a rule. The call had no effect."

NextStep: TypeAlias = Literal["prompt", "continue", "answered", "interrupted", "waiting"]
"""How the turn continues: from its prompt; from the logged conversation; or not, because only its final commit was
lost, the user interrupted it, or it waits for the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    next_step: NextStep
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()
    text: str = ""
    """The final response, if it is complete."""
    responses: int = 0
    """Number of responses in this turn so far."""
    pending: tuple[str, ...] = ()
    """Ids of the events that wait for the client."""
    approved_calls: tuple[ApprovedCall, ...] = ()
    """Approved calls that must run first."""
    lost_requests: tuple[Event, ...] = ()
    """Undecided approval requests that were held by a lost process."""


def plan_recovery(
    turn_id: str,
    conversation: Transcript,
    turn_events: Sequence[Event],
    *,
    timestamp: str,
    custom: CustomTools,
    superseded_events: Sequence[Event] = (),
) -> RecoveryPlan:
    """Determines what to do next. `timestamp`: for the lines that are added. `superseded_events`: events of the
    previous turn about its open calls, if a new message superseded that turn.
    """
    spans = end_open_requests(turn_events)
    lines = conversation.lines_of_turn(turn_id)
    facts = [transcript_lines.parse_line(line) for line in lines]
    responses = len({fact.message_id for fact in facts if isinstance(fact, ResponseLine)})
    if conversation.was_interrupted(turn_id):
        return RecoveryPlan(next_step="interrupted", events=spans, responses=responses)
    has_begun = transcript_lines.derive_uuid(turn_id) in conversation.inputs
    closing = _CallCloser(
        turn_id, conversation, turn_events, superseded_events, timestamp=timestamp, custom=custom, has_begun=has_begun
    )
    for call, line in conversation.open_calls():
        closing.close_call(call, line)
    events = (*spans, *closing.subagent_results(), *threads.end_open_threads(turn_events), *closing.events)
    entries, lost = closing.entries, tuple(closing.lost_requests)
    if closing.pending or closing.approved_calls:
        return RecoveryPlan(
            next_step="waiting" if closing.pending else "continue" if has_begun else "prompt",
            events=events,
            entries=tuple(entries),
            responses=responses,
            pending=tuple(closing.pending),
            approved_calls=tuple(closing.approved_calls),
            lost_requests=lost,
        )
    if not has_begun or _has_only_prompt(lines, responses):
        # Other lines of the lost attempt are dropped, because the CLI writes them again with the prompt.
        return RecoveryPlan(next_step="prompt", events=events, entries=tuple(entries), lost_requests=lost)
    messages = [fact for fact in facts if isinstance(fact, ResponseLine | ToolResults)]
    if (
        not entries
        and messages
        and isinstance(last := messages[-1], ResponseLine)
        and _ends_with_response(conversation, turn_id)
    ):
        return RecoveryPlan(
            next_step="answered", events=events, text=_response_text(messages, last), responses=responses
        )
    return RecoveryPlan(
        next_step="continue", events=events, entries=tuple(entries), responses=responses, lost_requests=lost
    )


class _CallCloser:
    """Adds a result to each open call, unless it still waits for the client or for approval."""

    def __init__(
        self,
        turn_id: str,
        conversation: Transcript,
        turn_events: Sequence[Event],
        superseded_events: Sequence[Event],
        *,
        timestamp: str,
        custom: CustomTools,
        has_begun: bool,
    ) -> None:
        self._turn_id = turn_id
        self._conversation = conversation
        self._timestamp = timestamp
        self._custom = custom
        self._has_begun = has_begun
        self._uses = {str(event.body.get("call_id")): event for event in turn_events if event.type in ev.TOOL_USES}
        self._results = {str(event.body.get("call_id")) for event in turn_events if event.type in ev.TOOL_RESULTS}
        self._custom_calls, self._custom_results = _custom_calls_and_results(turn_events)
        # Of the previous turn. They matter only before this turn begins, because then each of its calls has a result.
        self._superseded_calls, self._superseded_results = _custom_calls_and_results(superseded_events)
        self._decisions = approvals.decisions_by_request([*superseded_events, *turn_events])
        self.events: list[Event] = []
        self.entries: list[Entry] = []
        self.pending: list[str] = []
        self.approved_calls: list[ApprovedCall] = []
        self.lost_requests: list[Event] = []

    def close_call(self, call: Call, line: JsonObject) -> None:
        entry, ledger = _entry_of_call(self._conversation, call), self._conversation.approvals
        request = ledger.requests.get(call.id)
        if request is not None and call.id not in ledger.started:
            self._apply_decision(call, line, entry, request)
        elif (custom_call := self._custom_calls.get(call.id)) is not None:
            self._add_client_result(call, line, entry, self._custom_results.get(custom_call.id), custom_call)
        elif (
            superseded_call := self._superseded_calls.get(call.id)
        ) is not None and superseded_call.id in self._superseded_results:
            self._add_client_result(call, line, entry, self._superseded_results[superseded_call.id], superseded_call)
        elif (repeated := self._find_repeatable(call, line, entry, request)) is not None:
            self.approved_calls.append(repeated)
        else:
            is_clients = self._custom.may_be_custom(call.name) or call.name == QUESTION_TOOL
            custom = not self._has_begun and is_clients
            use = request or self._uses.get(call.id)
            text = (
                _missing_client_result(self._conversation, entry) if custom else self._missing_result_text(call.id, use)
            )
            self._add_result(call, line, entry, text, use)

    def _find_repeatable(
        self, call: Call, line: JsonObject, entry: Entry, request: Event | None
    ) -> ApprovedCall | None:
        """The call, if a lost attempt of this turn may have made it and it can be made again with the same event."""
        use, session_tool = self._uses.get(call.id), self._custom.session_tool(call.name)
        if use is None or session_tool not in REPEATABLE_TOOLS or use.body.get("evaluated_permission") == "deny":
            return None
        decision = self._decisions.get(use.id)
        edited = None if request is None or decision is None else approvals.edited_input(decision)
        key, turn_id = transcript_lines.key_of(entry), str(entry.body.get("turn_id", ""))
        return ApprovedCall(call, line, key, turn_id, use, None, edited, session_tool, is_repeated=True)

    def _missing_result_text(self, call_id: str, use: Event | None) -> str:
        """Why the call has no result, as text for the model."""
        if call_id in self._conversation.approvals.started:
            return UNKNOWN
        if use is None or not ev.needs_approval(use):
            return _default_result_text(use, has_begun=self._has_begun)
        decision = self._decisions.get(use.id)
        if decision is None:
            self.lost_requests.append(use)
            return f"Denied: {SUBAGENT_ENDED} It had no effect."
        return NOT_STARTED if approvals.is_approved(decision) else approvals.denial_message(decision)

    def _apply_decision(self, call: Call, line: JsonObject, entry: Entry, request: Event) -> None:
        """Applies the decision on a call, or keeps it pending. Calls of an earlier turn do not wait any longer."""
        decision, is_current_turn = self._decisions.get(request.id), entry.body.get("turn_id") == self._turn_id
        shown = self._conversation.approvals.digests.get(call.id)
        if shown is not None and shown != approvals.input_digest(tool_names.footplate_input(call.name, call.input)):
            self._add_result(call, line, entry, NOT_AS_SHOWN, request)
        elif decision is not None and approvals.is_approved(decision):
            directory = self._conversation.approvals.directories.get(call.id)
            key, edited = transcript_lines.key_of(entry), approvals.edited_input(decision)
            turn_id = str(entry.body.get("turn_id", ""))
            session_tool = self._custom.session_tool(call.name)
            approved = ApprovedCall(call, line, key, turn_id, request, directory, edited, session_tool)
            self.approved_calls.append(approved)
        elif decision is None and is_current_turn:
            self.pending.append(request.id)
        else:
            text = (
                approvals.denial_message(decision)
                if decision is not None
                else _undecided_result(self._conversation, entry)
            )
            self._add_result(call, line, entry, text, request)

    def _add_client_result(
        self, call: Call, line: JsonObject, entry: Entry, result_event: Event | None, custom_call: Event
    ) -> None:
        if result_event is None:
            self.pending.append(custom_call.id)
            return
        content, is_error = custom_tool_result(result_event)
        result = transcript_lines.closing_line(call, line, content, timestamp=self._timestamp, is_error=is_error)
        if call.name == QUESTION_TOOL and "answers" in result_event.body:  # the CLI shows them from here
            details = {"questions": call.input.get("questions"), "answers": result_event.body["answers"]}
            result["toolUseResult"] = {**details}
        self._add_line(entry, result)

    def _add_result(self, call: Call, line: JsonObject, entry: Entry, text: str, use: Event | None) -> None:
        if use is not None and call.id not in self._results:
            self.events.append(_unfinished_result(use, text, call.id))
        self._add_line(entry, transcript_lines.closing_line(call, line, text, timestamp=self._timestamp))

    def subagent_results(self) -> list[Event]:
        """Results of the subagents' open calls. The agent learns of them through the result of the call that started
        the subagent.
        """
        open_uses = {call_id: use for call_id, use in self._uses.items() if call_id not in self._results}
        return [
            threads.in_same_thread(use, _unfinished_result(use, self._missing_result_text(name, use), name))
            for name, use in open_uses.items()
            if threads.THREAD_ID in use.body
        ]

    def _add_line(self, entry: Entry, line: JsonObject) -> None:
        """Adds a line to the call's turn. A later attempt of this turn may restart from its prompt and drop its own
        lines.
        """
        self.entries.append(
            transcript_lines.line_entry(str(entry.body.get("turn_id", "")), transcript_lines.key_of(entry), line)
        )


def _unfinished_result(use: Event, text: str, call_id: str) -> Event:
    command = command_details.of_unfinished_call(use, "unknown", text) if text in {UNKNOWN, UNFINISHED} else None
    return ev.tool_result_for(use, [ev.text_block(text)], is_error=True, call_id=call_id, command=command)


def _has_only_prompt(lines: Sequence[JsonObject], responses: int) -> bool:
    """Whether the turn has only its prompt so far. Then the prompt is sent again."""
    return not responses and sum(transcript_lines.input_uuid(line) is not None for line in lines) == 1


def _default_result_text(use: Event | None, *, has_begun: bool) -> str:
    if not has_begun:
        return UNFINISHED
    if use is not None and use.body.get("evaluated_permission") == "deny":
        return DENIED
    return NOT_STARTED if use is None else UNKNOWN


def _custom_calls_and_results(turn_events: Sequence[Event]) -> tuple[dict[str, Event], dict[str, Event]]:
    """Custom tool calls by call id, and their results by the id of the call's event."""
    calls = [event for event in turn_events if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    results = [event for event in turn_events if event.type == ev.USER_CUSTOM_TOOL_RESULT]
    return (
        {str(event.body.get("call_id")): event for event in calls},
        {str(event.body.get("custom_tool_use_id")): event for event in results},
    )


def _missing_client_result(conversation: Transcript, call_entry: Entry) -> str:
    """The result of an earlier turn's custom tool call that the client did not return."""
    return (
        CLIENT_RESULT_INTERRUPTED
        if conversation.was_interrupted(str(call_entry.body.get("turn_id")))
        else NO_CLIENT_RESULT
    )


def _undecided_result(conversation: Transcript, call_entry: Entry) -> str:
    """The result of a call that was not decided before its turn ended."""
    return (
        approvals.INTERRUPTED_WHILE_PENDING
        if conversation.was_interrupted(str(call_entry.body.get("turn_id")))
        else approvals.DENIED_BY_NEW_MESSAGE
    )


def _entry_of_call(conversation: Transcript, call: Call) -> Entry:
    """The entry that contains the call."""
    for entry in reversed(conversation.primary_entries):
        fact = transcript_lines.parse_line(transcript_lines.line_of(entry))
        if isinstance(fact, ResponseLine) and any(logged.id == call.id for logged in fact.calls):
            return entry
    raise AssertionError(f"no transcript line contains the call {call.id}")


def _ends_with_response(conversation: Transcript, turn_id: str) -> bool:
    """Whether no input joined the conversation after the last response."""
    for line in reversed(conversation.lines_of_turn(turn_id)):
        if isinstance(transcript_lines.parse_line(line), ResponseLine):
            return True
        if transcript_lines.input_uuid(line):
            return False
    return False


def _response_text(messages: Sequence[ResponseLine | ToolResults], last: ResponseLine) -> str:
    """The text of the whole last response, which may have several lines."""
    parts = [fact for fact in messages if isinstance(fact, ResponseLine) and fact.message_id == last.message_id]
    return "".join(
        part[1] for fact in parts for part in fact.parts if isinstance(part, tuple) and part[0] == "agent.message"
    )
