"""Plans how a new attempt of the `native` harness continues a turn after the previous attempt was lost.

A tool call without an `agent.tool_use` event has not started, so it is run. A call with this event but without a result
may have taken effect. It is not run again, and its result says that the outcome is unknown. The same plan resumes a
turn that waited for approvals or for results of custom tools.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic_ai.messages import ModelResponse, ToolCallPart

from footplate.domain.agents import mcp_servers
from footplate.domain.agents.agents_and_config import BUILT_IN_TOOLS
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.groups import WAIT_SESSIONS
from footplate.domain.sessions.questions import ASK_USER
from footplate.harness import approvals
from footplate.harness.native import conversation_entries, thread_entries
from footplate.harness.native.conversation_entries import Conversation
from footplate.harness.native.thread_entries import OpenThread
from footplate.harness.native.toolset.call_arguments import parse_arguments
from footplate.harness.recovery_text import NO_CLIENT_RESULT, UNFINISHED, UNKNOWN, custom_tool_result, end_open_requests
from footplate.harness.tool_calls import command_details, session_tools

SUBAGENT_UNFINISHED = (
    "This subagent was stopped: the turn ended before it finished. Its work so far remains in the files."
)


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that waits for the client: a custom tool's for its result, any other for an approval, and a subagent's for
    the calls of the subagent.
    """

    call: ToolCallPart
    event_ids: tuple[str, ...]
    use: Event | None = None
    """The event that asks for approval. None for a custom tool's call and a subagent's."""
    thread: OpenThread | None = None


@dataclass(frozen=True, slots=True)
class UnstartedCall:
    """A call that has not started."""

    call: ToolCallPart
    approval_request: Event | None = None
    """The event that asked for approval, if the call was approved."""
    edited_input: JsonObject | None = None
    """The input that the person approved instead of the model's."""
    repeated_use: Event | None = None
    """The event of a call that may have been made by a lost attempt. It takes effect once."""
    thread: OpenThread | None = None
    """The thread of the subagent that this call has started, and which is resumed."""

    @property
    def started_use(self) -> Event | None:
        """The event of a call that has started and continues."""
        return self.repeated_use if self.thread is None else self.thread.use

    @property
    def call_input(self) -> JsonObject | None:
        """The call's input, or None if the model's arguments are not a JSON object."""
        return parse_arguments(self.call) if self.edited_input is None else self.edited_input


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()
    unstarted: tuple[UnstartedCall, ...] = ()
    waiting: tuple[WaitingCall, ...] = ()
    needs_prompt: bool = False
    final_response: ModelResponse | None = None
    """The turn's last response, if it makes no tool call: the turn is done, and only its last commit was lost."""
    interrupted: bool = False


def plan_recovery(
    turn_id: str, conversation: Conversation, turn_events: Sequence[Event], superseded_events: Sequence[Event] = ()
) -> RecoveryPlan:
    """Determines what to do next. `superseded_events`: events of the previous turn about its open calls, if a new
    message superseded that turn.
    """
    lines = conversation.lines_of_turn(turn_id)
    spans = end_open_requests(turn_events)
    if not any(line.input == conversation_entries.PROMPT for line in lines):
        return _close_superseded_calls(turn_id, conversation, superseded_events, spans)
    last = lines[-1]
    if last.interrupted:
        return RecoveryPlan(events=spans, interrupted=True)
    if isinstance(last.message, ModelResponse) and not last.message.tool_calls:
        return RecoveryPlan(events=spans, final_response=last.message)
    return _plan_calls(turn_id, conversation, turn_events, spans)


def _plan_calls(
    turn_id: str, conversation: Conversation, turn_events: Sequence[Event], spans: tuple[Event, ...]
) -> RecoveryPlan:
    ledger, decisions = conversation.approvals, approvals.decisions_by_request(turn_events)
    since = _since_last_response(turn_events)
    uses = {str(event.body.get("call_id")): event for event in since if event.type in ev.TOOL_USES}
    custom_calls, custom_results = _custom_calls_and_results(since)
    events: list[Event] = [*spans]
    entries: list[Entry] = []
    open_threads = conversation.threads.open
    open_calls, unstarted = _split_repeatable(conversation, uses, decisions)
    unstarted += [
        UnstartedCall(call, thread=open_threads[call.tool_call_id])
        for call in open_calls
        if call.tool_call_id in open_threads
    ]
    waiting: list[WaitingCall] = []

    def close(call: ToolCallPart, use: Event, text: str) -> None:
        blocks: list[Json] = [ev.text_block(text)]
        command = command_details.of_unfinished_call(use, "unknown", text) if text == UNKNOWN else None
        events.append(ev.tool_result_for(use, blocks, is_error=True, call_id=call.tool_call_id, command=command))
        entries.append(conversation_entries.tool_return_entry(turn_id, call, blocks, is_error=True))

    for call in (call for call in open_calls if call.tool_call_id not in open_threads):
        call_id = call.tool_call_id
        if (request := ledger.requests.get(call_id)) is not None:
            decision = decisions.get(request.id)
            if call_id in ledger.started:
                close(call, request, UNKNOWN)
            elif decision is None:
                waiting.append(WaitingCall(call, (request.id,), request))
            elif approvals.is_approved(decision):
                unstarted.append(UnstartedCall(call, request, approvals.edited_input(decision)))
            else:
                close(call, request, approvals.denial_message(decision))
        elif use := uses.get(call_id):
            close(call, use, UNKNOWN)
        elif (custom_call := custom_calls.get(call_id)) is None:
            unstarted.append(UnstartedCall(call))
        elif custom_result := custom_results.get(custom_call.id):
            entries.append(_custom_result_entry(turn_id, call, custom_result))
        else:
            waiting.append(WaitingCall(call, (custom_call.id,)))
    return RecoveryPlan(
        events=tuple(events), entries=tuple(entries), unstarted=tuple(unstarted), waiting=tuple(waiting)
    )


def _split_repeatable(
    conversation: Conversation, uses: Mapping[str, Event], decisions: Mapping[str, Event]
) -> tuple[list[ToolCallPart], list[UnstartedCall]]:
    """Separates the calls that a lost attempt may have made and that can be made again, because they take effect once
    for each event, from the other open calls.
    """
    others: list[ToolCallPart] = []
    repeated: list[UnstartedCall] = []
    ledger = conversation.approvals
    for call in conversation.open_calls():
        request, use = ledger.requests.get(call.tool_call_id), uses.get(call.tool_call_id)
        if call.tool_name not in session_tools.REPEATABLE_TOOLS:
            others.append(call)
        elif request is not None and call.tool_call_id in ledger.started and request.id in decisions:
            edited = approvals.edited_input(decisions[request.id])
            repeated.append(UnstartedCall(call, request, edited, repeated_use=request))
        elif request is None and use is not None:
            repeated.append(UnstartedCall(call, repeated_use=use))
        else:
            others.append(call)
    return others, repeated


def _close_superseded_calls(
    turn_id: str, conversation: Conversation, superseded_events: Sequence[Event], spans: tuple[Event, ...]
) -> RecoveryPlan:
    """Adds a result to every call that an earlier turn left without one, because models reject a call without a result.
    Decisions and results from before the new message count. Other calls are denied or have no result.
    """
    events: list[Event] = [*spans]
    entries: list[Entry] = []
    unstarted: list[UnstartedCall] = []
    ledger, decisions = conversation.approvals, approvals.decisions_by_request(superseded_events)
    custom_calls, custom_results = _custom_calls_and_results(superseded_events)
    for call in conversation.open_calls():
        call_id = call.tool_call_id
        if (thread := conversation.threads.open.get(call_id)) is not None:
            if thread.turn_id == turn_id:
                unstarted.append(UnstartedCall(call, thread=thread))
                continue
            blocks: list[Json] = [ev.text_block(SUBAGENT_UNFINISHED)]
            events += [*_end_thread(thread), ev.tool_result_for(thread.use, blocks, is_error=True, call_id=call_id)]
            entries.append(thread_entries.ended_entry(thread))
            entries.append(conversation_entries.tool_return_entry(turn_id, call, blocks, is_error=True))
            continue
        request, custom_call = ledger.requests.get(call_id), custom_calls.get(call_id)
        decision = decisions.get(request.id) if request is not None else None
        if request is None and custom_call is not None and custom_call.id in custom_results:
            entries.append(_custom_result_entry(turn_id, call, custom_results[custom_call.id]))
            continue
        if decision is not None and approvals.is_approved(decision) and call_id not in ledger.started:
            unstarted.append(UnstartedCall(call, request, approvals.edited_input(decision)))
            continue
        denied = approvals.DENIED_BY_NEW_MESSAGE if decision is None else approvals.denial_message(decision)
        reason = UNKNOWN if call_id in ledger.started else denied
        blocks = [ev.text_block(_missing_result_text(call) if request is None else reason)]
        if request is not None:
            events.append(ev.tool_result_for(request, blocks, is_error=True, call_id=call_id))
        entries.append(conversation_entries.tool_return_entry(turn_id, call, blocks, is_error=True))
    return RecoveryPlan(events=tuple(events), entries=tuple(entries), unstarted=tuple(unstarted), needs_prompt=True)


def _end_thread(thread: OpenThread) -> list[Event]:
    """The last events of a thread that an earlier turn left open: results of its open calls, and its end."""
    conversation = Conversation(thread.entries)
    ledger = conversation.approvals
    events: list[Event] = []
    for call in conversation.open_calls():
        if (request := ledger.requests.get(call.tool_call_id)) is not None:
            text = UNKNOWN if call.tool_call_id in ledger.started else approvals.DENIED_BY_NEW_MESSAGE
            result = ev.tool_result_for(request, [ev.text_block(text)], is_error=True, call_id=call.tool_call_id)
            events.append(threads.in_thread(result, thread.id))
    return [*events, threads.idle(thread.id, thread.agent_name, thread.usage)]


def _missing_result_text(call: ToolCallPart) -> str:
    if call.tool_name in {ASK_USER, WAIT_SESSIONS}:
        return NO_CLIENT_RESULT
    is_builtin = call.tool_name in {*BUILT_IN_TOOLS, threads.SUBAGENT_TOOL} or call.tool_name.startswith(
        mcp_servers.PREFIX
    )
    return UNFINISHED if is_builtin else NO_CLIENT_RESULT


def _custom_calls_and_results(turn_events: Sequence[Event]) -> tuple[dict[str, Event], dict[str, Event]]:
    """Custom tool calls by call id, and their results by the id of the call's event."""
    calls = [event for event in turn_events if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    results = [event for event in turn_events if event.type == ev.USER_CUSTOM_TOOL_RESULT]
    return (
        {str(event.body.get("call_id")): event for event in calls},
        {str(event.body.get("custom_tool_use_id")): event for event in results},
    )


def _since_last_response(turn_events: Sequence[Event]) -> Sequence[Event]:
    """The events after the last response. Earlier ones do not count, because some models reuse call ids."""
    for index in range(len(turn_events) - 1, -1, -1):
        event = turn_events[index]
        if event.type == ev.MODEL_REQUEST_END and not event.body.get("is_error"):
            return turn_events[index:]
    return turn_events


def _custom_result_entry(turn_id: str, call: ToolCallPart, result_event: Event) -> Entry:
    blocks, is_error = custom_tool_result(result_event)
    return conversation_entries.tool_return_entry(turn_id, call, blocks, is_error=is_error)
