"""Determines from the log what a new attempt must do before it continues a turn.

A call without an `agent.tool_use` event has not started and is run. A call with the event but without a result was cut
off, and may or may not have taken effect. It is never run again; its result says that the outcome is unknown. The same
function resumes a parked turn when its decisions and custom tool results have arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_ai.messages import ModelResponse, ToolCallPart

from footplate.domain import events as ev
from footplate.domain import mcp
from footplate.domain.agents import BUILT_IN_TOOLS
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports import Entry
from footplate.harness import approvals
from footplate.harness.leftovers import LEFT_OPEN, UNANSWERED, UNKNOWN, answer_of, open_spans
from footplate.harness.native import mapping
from footplate.harness.native.arguments import arguments_of
from footplate.harness.native.mapping import Conversation


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for the client: a custom tool's for its result, any other for an approval."""

    call: ToolCallPart
    event_id: str
    use: Event | None = None
    """The event that asks for approval. None for a custom tool's call."""


@dataclass(frozen=True, slots=True)
class Todo:
    """A call that has not started."""

    call: ToolCallPart
    allowed: Event | None = None
    """The event that asked for approval, if the call was approved."""
    edited: JsonObject | None = None
    """The input that the person approved instead of the model's."""

    @property
    def given(self) -> JsonObject | None:
        """The call's input, or None if the model's arguments are not a JSON object."""
        return arguments_of(self.call) if self.edited is None else self.edited


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()
    unstarted: tuple[Todo, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    needs_prompt: bool = False
    answer: ModelResponse | None = None
    """The turn's last response, if it makes no tool call: the turn is done, and only its last commit was lost."""
    interrupted: bool = False


def settle(
    turn_id: str, conversation: Conversation, turn_events: Sequence[Event], left: Sequence[Event] = ()
) -> Settlement:
    """Determines what to do next. `superseded_events`: events of the previous turn about its open calls, if a new
    message superseded that turn.
    """
    lines = conversation.of_turn(turn_id)
    spans = open_spans(turn_events)
    if not any(line.input == mapping.PROMPT for line in lines):
        return _abandoned(turn_id, conversation, left, spans)
    last = lines[-1]
    if last.interrupted:
        return Settlement(events=spans, interrupted=True)
    if isinstance(last.message, ModelResponse) and not last.message.tool_calls:
        return Settlement(events=spans, answer=last.message)
    return _settle_calls(turn_id, conversation, turn_events, spans)


def _settle_calls(
    turn_id: str, conversation: Conversation, turn_events: Sequence[Event], spans: tuple[Event, ...]
) -> Settlement:
    ledger, words = conversation.approvals, approvals.answers(turn_events)
    since = _since_last_response(turn_events)
    uses = {str(event.body.get("call_id")): event for event in since if event.type in ev.TOOL_USES}
    asks, answers = _questions(since)
    events: list[Event] = [*spans]
    entries: list[Entry] = []
    unstarted: list[Todo] = []
    waiting: list[Waiting] = []

    def close(call: ToolCallPart, use: Event, text: str) -> None:
        blocks: list[Json] = [ev.text_block(text)]
        events.append(ev.result_of(use, blocks, is_error=True, call_id=call.tool_call_id))
        entries.append(mapping.tool_return(turn_id, call, blocks, is_error=True))

    for call in conversation.open_calls():
        call_id = call.tool_call_id
        if (asked := ledger.asked.get(call_id)) is not None:
            word = words.get(asked.id)
            if call_id in ledger.started:
                close(call, asked, UNKNOWN)
            elif word is None:
                waiting.append(Waiting(call, asked.id, asked))
            elif approvals.allows(word):
                unstarted.append(Todo(call, asked, approvals.edited(word)))
            else:
                close(call, asked, approvals.denial(word))
        elif use := uses.get(call_id):
            close(call, use, UNKNOWN)
        elif (ask := asks.get(call_id)) is None:
            unstarted.append(Todo(call))
        elif answer := answers.get(ask.id):
            entries.append(_answered(turn_id, call, answer))
        else:
            waiting.append(Waiting(call, ask.id))
    return Settlement(events=tuple(events), entries=tuple(entries), unstarted=tuple(unstarted), waiting=tuple(waiting))


def _abandoned(turn_id: str, conversation: Conversation, left: Sequence[Event], spans: tuple[Event, ...]) -> Settlement:
    """Adds a result to every call that an earlier turn left without one, because models reject a call without a result.
    Decisions and results from before the new message count. Other calls are denied or have no result.
    """
    events: list[Event] = [*spans]
    entries: list[Entry] = []
    unstarted: list[Todo] = []
    ledger, words = conversation.approvals, approvals.answers(left)
    asks, answers = _questions(left)
    for call in conversation.open_calls():
        call_id = call.tool_call_id
        asked, ask = ledger.asked.get(call_id), asks.get(call_id)
        word = words.get(asked.id) if asked is not None else None
        if asked is None and ask is not None and ask.id in answers:
            entries.append(_answered(turn_id, call, answers[ask.id]))
            continue
        if word is not None and approvals.allows(word) and call_id not in ledger.started:
            unstarted.append(Todo(call, asked, approvals.edited(word)))
            continue
        denied = approvals.SUPERSEDED if word is None else approvals.denial(word)
        why = UNKNOWN if call_id in ledger.started else denied
        blocks: list[Json] = [ev.text_block(_why_abandoned(call) if asked is None else why)]
        if asked is not None:
            events.append(ev.result_of(asked, blocks, is_error=True, call_id=call_id))
        entries.append(mapping.tool_return(turn_id, call, blocks, is_error=True))
    return Settlement(events=tuple(events), entries=tuple(entries), unstarted=tuple(unstarted), needs_prompt=True)


def _why_abandoned(call: ToolCallPart) -> str:
    ours = call.tool_name in BUILT_IN_TOOLS or call.tool_name.startswith(mcp.PREFIX)
    return LEFT_OPEN if ours else UNANSWERED


def _questions(told: Sequence[Event]) -> tuple[dict[str, Event], dict[str, Event]]:
    """Custom tool calls by call id, and their results by the id of the call's event."""
    asks = [event for event in told if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    answers = [event for event in told if event.type == ev.USER_CUSTOM_TOOL_RESULT]
    return (
        {str(event.body.get("call_id")): event for event in asks},
        {str(event.body.get("custom_tool_use_id")): event for event in answers},
    )


def _since_last_response(turn_events: Sequence[Event]) -> Sequence[Event]:
    """The events after the last response. Earlier ones do not count, because some models reuse call ids."""
    for index in range(len(turn_events) - 1, -1, -1):
        event = turn_events[index]
        if event.type == ev.MODEL_REQUEST_END and not event.body.get("is_error"):
            return turn_events[index:]
    return turn_events


def _answered(turn_id: str, call: ToolCallPart, answer: Event) -> Entry:
    blocks, is_error = answer_of(answer)
    return mapping.tool_return(turn_id, call, blocks, is_error=is_error)
