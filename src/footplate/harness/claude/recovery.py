"""What a new attempt finds in the log, and what it has to do before the CLI starts. Pure.

The CLI forgets a call that has no result, and the model would ask for it again: it would run twice. So every call
gets a result here before a transcript is handed to a CLI. A call with an `agent.tool_use` event may have taken effect,
and nobody can know; one without was never let through. The client's answers to calls of custom tools are results too:
while one is missing, no CLI is needed.
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
    "This call was not started: the process that should have run it was lost before. It had no effect. Ask for it "
    "again if it is still needed."
)

NOT_AS_SHOWN: Final = (
    "This call was not made: its input is not the one that a person was asked about. It had no effect. Make the call "
    "again."
)

DENIED: Final = "Denied by the rules that are in force. The call had no effect."

Way: TypeAlias = Literal["prompt", "continue", "answered", "interrupted", "waiting"]
"""How a turn goes on: from its prompt; from what the log has; not at all, because only its last commit was lost; or
because a person stopped it; or not before the client has answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    way: Way
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()
    text: str = ""
    """The answer, when it is all there."""
    responses: int = 0
    """Of this turn so far."""
    pending: tuple[str, ...] = ()
    """Ids of the events that somebody has to answer."""
    allowed: tuple[Allowed, ...] = ()
    """Calls to be made before anything else."""
    lost: tuple[Event, ...] = ()
    """Asks that a lost process held, and that nobody has answered."""


def settle(
    turn_id: str,
    found: Transcript,
    turn_events: Sequence[Event],
    *,
    timestamp: str,
    custom: CustomTools,
    left: Sequence[Event] = (),
) -> Settlement:
    """`timestamp`: for lines of ours. `left`: what was said of the turn whose place this one took."""
    spans = open_spans(turn_events)
    lines = found.of_turn(turn_id)
    facts = [transcript.fact_of(line) for line in lines]
    responses = len({fact.message_id for fact in facts if isinstance(fact, Said)})
    if found.interrupted(turn_id):
        return Settlement(way="interrupted", events=spans, responses=responses)
    begun = transcript.own_uuid(turn_id) in found.inputs
    closing = _Closing(turn_id, found, turn_events, left, timestamp=timestamp, custom=custom, begun=begun)
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
        # What the lost attempt wrote down beside the prompt is left out: the CLI writes it anew.
        return Settlement(way="prompt", events=events, entries=tuple(entries), lost=lost)
    said = [fact for fact in facts if isinstance(fact, Said | Answered)]
    if not entries and said and isinstance(last := said[-1], Said) and _ends_here(found, turn_id):
        return Settlement(way="answered", events=events, text=_text(said, last), responses=responses)
    return Settlement(way="continue", events=events, entries=tuple(entries), responses=responses, lost=lost)


class _Closing:
    """Calls that have no result: each gets one, or is left to whom it waits for."""

    def __init__(
        self,
        turn_id: str,
        found: Transcript,
        turn_events: Sequence[Event],
        left: Sequence[Event],
        *,
        timestamp: str,
        custom: CustomTools,
        begun: bool,
    ) -> None:
        self._turn_id = turn_id
        self._found = found
        self._timestamp = timestamp
        self._custom = custom
        self._begun = begun
        self._uses = {str(event.body.get("call_id")): event for event in turn_events if event.type in ev.TOOL_USES}
        self._results = {str(event.body.get("call_id")) for event in turn_events if event.type in ev.TOOL_RESULTS}
        self._asks, self._answers = _asked(turn_events)
        # Of an earlier turn, and so only of use before this one begins: then each of its calls has a result.
        self._asks_left, self._answers_left = _asked(left)
        self._words = approvals.answers([*left, *turn_events])
        self.events: list[Event] = []
        self.entries: list[Entry] = []
        self.pending: list[str] = []
        self.allowed: list[Allowed] = []
        self.lost: list[Event] = []

    def close(self, call: Call, line: JsonObject) -> None:
        kept, ledger = _kept(self._found, call), self._found.approvals
        question = ledger.asked.get(call.id)
        if question is not None and call.id not in ledger.started:
            self._judged(call, line, kept, question)
        elif (ask := self._asks.get(call.id)) is not None:
            self._answered(call, line, kept, self._answers.get(ask.id), ask)
        elif (asked := self._asks_left.get(call.id)) is not None and asked.id in self._answers_left:
            self._answered(call, line, kept, self._answers_left[asked.id], asked)
        else:
            custom = not self._begun and self._custom.had(call.name)
            use = question or self._uses.get(call.id)
            text = _unanswered(self._found, kept) if custom else self._why(call.id, use)
            self._end(call, line, kept, text, use)

    def _why(self, call_id: str, use: Event | None) -> str:
        """There is no result."""
        if call_id in self._found.approvals.started:
            return UNKNOWN
        if use is None or not ev.asks(use):
            return _why(use, begun=self._begun)
        word = self._words.get(use.id)
        if word is None:
            self.lost.append(use)
            return f"Denied: {LOST} It had no effect."
        return NOT_STARTED if approvals.allows(word) else approvals.denial(word)

    def _judged(self, call: Call, line: JsonObject, kept: Entry, question: Event) -> None:
        """By a person, or not yet; a turn that is over waits for nobody."""
        word, is_own = self._words.get(question.id), kept.body.get("turn_id") == self._turn_id
        shown = self._found.approvals.digests.get(call.id)
        if shown is not None and shown != approvals.digest(tool_names.our_input(call.name, call.input)):
            self._end(call, line, kept, NOT_AS_SHOWN, question)
        elif word is not None and approvals.allows(word):
            directory = self._found.approvals.directories.get(call.id)
            place, edited = transcript.place_of(kept), approvals.edited(word)
            turn_id = str(kept.body.get("turn_id", ""))
            self.allowed.append(Allowed(call, line, place, turn_id, question, directory, edited))
        elif word is None and is_own:
            self.pending.append(question.id)
        else:
            text = approvals.denial(word) if word is not None else _unallowed(self._found, kept)
            self._end(call, line, kept, text, question)

    def _answered(self, call: Call, line: JsonObject, kept: Entry, answer: Event | None, ask: Event) -> None:
        if answer is None:
            self.pending.append(ask.id)
            return
        content, is_error = answer_of(answer)
        self._add(kept, transcript.closing_line(call, line, content, timestamp=self._timestamp, is_error=is_error))

    def _end(self, call: Call, line: JsonObject, kept: Entry, text: str, use: Event | None) -> None:
        if use is not None and call.id not in self._results:
            self.events.append(ev.result_of(use, [ev.text_block(text)], is_error=True, call_id=call.id))
        self._add(kept, transcript.closing_line(call, line, text, timestamp=self._timestamp))

    def inside(self) -> list[Event]:
        """Of calls that subagents were making. Who asked for one hears of it by the call that began its work."""
        left = {call_id: use for call_id, use in self._uses.items() if call_id not in self._results}
        return [
            threads.beside(use, ev.result_of(use, [ev.text_block(self._why(name, use))], is_error=True, call_id=name))
            for name, use in left.items()
            if threads.THREAD_ID in use.body
        ]

    def _add(self, kept: Entry, line: JsonObject) -> None:
        """It belongs to the turn of the call: a later attempt of this one may begin anew, without its own lines."""
        self.entries.append(transcript.entry(str(kept.body.get("turn_id", "")), transcript.place_of(kept), line))


def _unheard(lines: Sequence[JsonObject], responses: int) -> bool:
    """The prompt is all there is of the turn: it is sent again, as if for the first time."""
    return not responses and sum(transcript.inputs_of(line) is not None for line in lines) == 1


def _why(use: Event | None, *, begun: bool) -> str:
    if not begun:
        return LEFT_OPEN
    if use is not None and use.body.get("evaluated_permission") == "deny":
        return DENIED
    return NOT_STARTED if use is None else UNKNOWN


def _asked(turn_events: Sequence[Event]) -> tuple[dict[str, Event], dict[str, Event]]:
    """What the client was asked, by call, and what it answered, by question."""
    asks = [event for event in turn_events if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    answers = [event for event in turn_events if event.type == ev.USER_CUSTOM_TOOL_RESULT]
    return (
        {str(event.body.get("call_id")): event for event in asks},
        {str(event.body.get("custom_tool_use_id")): event for event in answers},
    )


def _unanswered(found: Transcript, asked: Entry) -> str:
    """Of an earlier turn's question."""
    return STOPPED if found.interrupted(str(asked.body.get("turn_id"))) else UNANSWERED


def _unallowed(found: Transcript, asked: Entry) -> str:
    """Of a call that nobody said a word about before the turn ended."""
    return approvals.STOPPED if found.interrupted(str(asked.body.get("turn_id"))) else approvals.SUPERSEDED


def _kept(found: Transcript, call: Call) -> Entry:
    """Where the call itself is."""
    for kept in reversed(found.main):
        fact = transcript.fact_of(transcript.line_of(kept))
        if isinstance(fact, Said) and any(made.id == call.id for made in fact.calls):
            return kept
    raise AssertionError(f"call {call.id} is in no line")


def _ends_here(found: Transcript, turn_id: str) -> bool:
    """No input came into the conversation after the last answer."""
    for line in reversed(found.of_turn(turn_id)):
        if isinstance(transcript.fact_of(line), Said):
            return True
        if transcript.inputs_of(line):
            return False
    return False


def _text(said: Sequence[Said | Answered], last: Said) -> str:
    """Of the whole last answer, which may be several lines."""
    parts = [fact for fact in said if isinstance(fact, Said) and fact.message_id == last.message_id]
    return "".join(
        part[1] for fact in parts for part in fact.parts if isinstance(part, tuple) and part[0] == "agent.message"
    )
