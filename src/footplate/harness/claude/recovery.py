"""Determines from the log what a new attempt must do before the CLI starts.

The CLI forgets a call that has no result. The model would make the call again, and it would run twice. So every call
gets a result before a CLI receives the transcript. A call with an `agent.tool_use` event may have taken effect; a call
without one was never permitted. The client's results of custom tool calls are added too. While one is missing, no CLI
is started.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from footplate.domain import events as ev
from footplate.domain import threads
from footplate.domain.events import Event
from footplate.domain.json import JsonObject
from footplate.domain.ports import Entry
from footplate.harness import approvals
from footplate.harness.claude import tool_names, transcript
from footplate.harness.claude.allowed import Allowed
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.holding import LOST
from footplate.harness.claude.mapping import Answered, Call, Said
from footplate.harness.claude.transcript import Transcript
from footplate.harness.leftovers import LEFT_OPEN, STOPPED, UNANSWERED, UNKNOWN, answer_of, open_spans

NOT_STARTED: Final = (
    "This call was not started: the process that should have run it was lost. It had no effect. Make the call again if "
    "it is still needed."
)

NOT_AS_SHOWN: Final = (
    "This call did not run: its input differs from the one that the user was shown for approval. It had no effect. "
    "Make the call again."
)

DENIED: Final = "Denied by a rule. The call had no effect."

Way: TypeAlias = Literal["prompt", "continue", "answered", "interrupted", "waiting"]
"""How the turn continues: from its prompt; from the logged conversation; or not, because only its final commit was
lost, the user interrupted it, or it waits for the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    way: Way
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()
    text: str = ""
    """The final response, if it is complete."""
    responses: int = 0
    """Number of responses in this turn so far."""
    pending: tuple[str, ...] = ()
    """Ids of the events that wait for the client."""
    allowed: tuple[Allowed, ...] = ()
    """Approved calls that must run first."""
    lost: tuple[Event, ...] = ()
    """Undecided approval requests that were held by a lost process."""


def settle(
    turn_id: str,
    found: Transcript,
    turn_events: Sequence[Event],
    *,
    timestamp: str,
    custom: CustomTools,
    left: Sequence[Event] = (),
) -> Settlement:
    """Determines what to do next. `timestamp`: for the lines that are added. `superseded_events`: events of the
    previous turn about its open calls, if a new message superseded that turn.
    """
    spans = open_spans(turn_events)
    lines = found.of_turn(turn_id)
    facts = [transcript.fact_of(line) for line in lines]
    responses = len({fact.message_id for fact in facts if isinstance(fact, Said)})
    if found.interrupted(turn_id):
        return Settlement(way="interrupted", events=spans, responses=responses)
    begun = transcript.own_uuid(turn_id) in found.inputs
    closing = _Closing(turn_id, found, turn_events, left, timestamp=timestamp, custom=custom, has_begun=begun)
    for call, line in found.open_calls():
        closing.close(call, line)
    events = (*spans, *closing.inside(), *threads.left_open(turn_events), *closing.events)
    entries, lost = closing.entries, tuple(closing.lost)
    if closing.pending or closing.allowed:
        return Settlement(
            way="waiting" if closing.pending else "continue" if begun else "prompt",
            events=events,
            entries=tuple(entries),
            responses=responses,
            pending=tuple(closing.pending),
            allowed=tuple(closing.allowed),
            lost=lost,
        )
    if not begun or _unheard(lines, responses):
        # Other lines of the lost attempt are dropped, because the CLI writes them again with the prompt.
        return Settlement(way="prompt", events=events, entries=tuple(entries), lost=lost)
    said = [fact for fact in facts if isinstance(fact, Said | Answered)]
    if not entries and said and isinstance(last := said[-1], Said) and _ends_here(found, turn_id):
        return Settlement(way="answered", events=events, text=_text(said, last), responses=responses)
    return Settlement(way="continue", events=events, entries=tuple(entries), responses=responses, lost=lost)


class _Closing:
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
        self._found = conversation
        self._timestamp = timestamp
        self._custom = custom
        self._begun = has_begun
        self._uses = {str(event.body.get("call_id")): event for event in turn_events if event.type in ev.TOOL_USES}
        self._results = {str(event.body.get("call_id")) for event in turn_events if event.type in ev.TOOL_RESULTS}
        self._asks, self._answers = _asked(turn_events)
        # Of the previous turn. They matter only before this turn begins, because then each of its calls has a result.
        self._asks_left, self._answers_left = _asked(superseded_events)
        self._words = approvals.answers([*superseded_events, *turn_events])
        self.events: list[Event] = []
        self.entries: list[Entry] = []
        self.pending: list[str] = []
        self.allowed: list[Allowed] = []
        self.lost: list[Event] = []

    def close(self, call: Call, line: JsonObject) -> None:
        entry, ledger = _kept(self._found, call), self._found.approvals
        request = ledger.asked.get(call.id)
        if request is not None and call.id not in ledger.started:
            self._judged(call, line, entry, request)
        elif (custom_call := self._asks.get(call.id)) is not None:
            self._answered(call, line, entry, self._answers.get(custom_call.id), custom_call)
        elif (superseded_call := self._asks_left.get(call.id)) is not None and superseded_call.id in self._answers_left:
            self._answered(call, line, entry, self._answers_left[superseded_call.id], superseded_call)
        else:
            custom = not self._begun and self._custom.had(call.name)
            use = request or self._uses.get(call.id)
            text = _unanswered(self._found, entry) if custom else self._why(call.id, use)
            self._end(call, line, entry, text, use)

    def _why(self, call_id: str, use: Event | None) -> str:
        """Why the call has no result, as text for the model."""
        if call_id in self._found.approvals.started:
            return UNKNOWN
        if use is None or not ev.asks(use):
            return _why(use, begun=self._begun)
        decision = self._words.get(use.id)
        if decision is None:
            self.lost.append(use)
            return f"Denied: {LOST} It had no effect."
        return NOT_STARTED if approvals.allows(decision) else approvals.denial(decision)

    def _judged(self, call: Call, line: JsonObject, entry: Entry, request: Event) -> None:
        """Applies the decision on a call, or keeps it pending. Calls of an earlier turn do not wait any longer."""
        decision, is_current_turn = self._words.get(request.id), entry.body.get("turn_id") == self._turn_id
        shown = self._found.approvals.digests.get(call.id)
        if shown is not None and shown != approvals.digest(tool_names.our_input(call.name, call.input)):
            self._end(call, line, entry, NOT_AS_SHOWN, request)
        elif decision is not None and approvals.allows(decision):
            directory = self._found.approvals.directories.get(call.id)
            key, edited = transcript.place_of(entry), approvals.edited(decision)
            turn_id = str(entry.body.get("turn_id", ""))
            self.allowed.append(Allowed(call, line, key, turn_id, request, directory, edited))
        elif decision is None and is_current_turn:
            self.pending.append(request.id)
        else:
            text = approvals.denial(decision) if decision is not None else _unallowed(self._found, entry)
            self._end(call, line, entry, text, request)

    def _answered(self, call: Call, line: JsonObject, entry: Entry, result_event: Event | None, custom_call: Event) -> None:
        if result_event is None:
            self.pending.append(custom_call.id)
            return
        content, is_error = answer_of(result_event)
        self._add(entry, transcript.closing_line(call, line, content, timestamp=self._timestamp, is_error=is_error))

    def _end(self, call: Call, line: JsonObject, entry: Entry, text: str, use: Event | None) -> None:
        if use is not None and call.id not in self._results:
            self.events.append(ev.result_of(use, [ev.text_block(text)], is_error=True, call_id=call.id))
        self._add(entry, transcript.closing_line(call, line, text, timestamp=self._timestamp))

    def inside(self) -> list[Event]:
        """Results of the subagents' open calls. The agent learns of them through the result of the call that started
        the subagent.
        """
        open_uses = {call_id: use for call_id, use in self._uses.items() if call_id not in self._results}
        return [
            threads.beside(use, ev.result_of(use, [ev.text_block(self._why(name, use))], is_error=True, call_id=name))
            for name, use in open_uses.items()
            if threads.THREAD_ID in use.body
        ]

    def _add(self, entry: Entry, line: JsonObject) -> None:
        """Adds a line to the call's turn. A later attempt of this turn may restart from its prompt and drop its own
        lines.
        """
        self.entries.append(transcript.entry(str(entry.body.get("turn_id", "")), transcript.place_of(entry), line))


def _unheard(lines: Sequence[JsonObject], responses: int) -> bool:
    """Whether the turn has only its prompt so far. Then the prompt is sent again."""
    return not responses and sum(transcript.inputs_of(line) is not None for line in lines) == 1


def _why(use: Event | None, *, begun: bool) -> str:
    if not begun:
        return LEFT_OPEN
    if use is not None and use.body.get("evaluated_permission") == "deny":
        return DENIED
    return NOT_STARTED if use is None else UNKNOWN


def _asked(turn_events: Sequence[Event]) -> tuple[dict[str, Event], dict[str, Event]]:
    """Custom tool calls by call id, and their results by the id of the call's event."""
    asks = [event for event in turn_events if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    answers = [event for event in turn_events if event.type == ev.USER_CUSTOM_TOOL_RESULT]
    return (
        {str(event.body.get("call_id")): event for event in asks},
        {str(event.body.get("custom_tool_use_id")): event for event in answers},
    )


def _unanswered(found: Transcript, asked: Entry) -> str:
    """The result of an earlier turn's custom tool call that the client did not return."""
    return STOPPED if found.interrupted(str(asked.body.get("turn_id"))) else UNANSWERED


def _unallowed(found: Transcript, asked: Entry) -> str:
    """The result of a call that was not decided before its turn ended."""
    return approvals.STOPPED if found.interrupted(str(asked.body.get("turn_id"))) else approvals.SUPERSEDED


def _kept(found: Transcript, call: Call) -> Entry:
    """The entry that contains the call."""
    for kept in reversed(found.main):
        fact = transcript.fact_of(transcript.line_of(kept))
        if isinstance(fact, Said) and any(made.id == call.id for made in fact.calls):
            return kept
    raise AssertionError(f"call {call.id} is in no line")


def _ends_here(found: Transcript, turn_id: str) -> bool:
    """Whether no input joined the conversation after the last response."""
    for line in reversed(found.of_turn(turn_id)):
        if isinstance(transcript.fact_of(line), Said):
            return True
        if transcript.inputs_of(line):
            return False
    return False


def _text(said: Sequence[Said | Answered], last: Said) -> str:
    """The text of the whole last response, which may have several lines."""
    parts = [fact for fact in said if isinstance(fact, Said) and fact.message_id == last.message_id]
    return "".join(
        part[1] for fact in parts for part in fact.parts if isinstance(part, tuple) and part[0] == "agent.message"
    )
