"""What a new attempt finds in the log, and what it has to do before the CLI starts. Pure.

The CLI forgets a call that has no result, and the model would ask for it again: it would run twice. So every call
gets a result here before a transcript is handed to a CLI. A call with an `agent.tool_use` event may have taken effect,
and nobody can know; one without was never let through. The client's answers to calls of custom tools are results too:
while one is missing, no CLI is needed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from footplate.domain import events as ev
from footplate.domain import threads
from footplate.domain.events import Event
from footplate.domain.json import JsonObject
from footplate.domain.ports import Entry
from footplate.harness.claude import transcript
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.mapping import Answered, Call, Said
from footplate.harness.claude.transcript import Transcript
from footplate.harness.leftovers import LEFT_OPEN, STOPPED, UNANSWERED, UNKNOWN, answer_of, open_spans

NOT_STARTED: Final = (
    "This call was not started: the process that should have run it was lost before. It had no effect. Ask for it "
    "again if it is still needed."
)

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
    """Ids of the events that the client has to answer."""


def settle(
    turn_id: str, found: Transcript, turn_events: Sequence[Event], *, timestamp: str, custom: CustomTools
) -> Settlement:
    """`timestamp`: for lines of ours."""
    spans = open_spans(turn_events)
    lines = found.of_turn(turn_id)
    facts = [transcript.fact_of(line) for line in lines]
    responses = len({fact.message_id for fact in facts if isinstance(fact, Said)})
    if found.interrupted(turn_id):
        return Settlement(way="interrupted", events=spans, responses=responses)
    begun = transcript.own_uuid(turn_id) in found.inputs
    uses = {str(event.body.get("call_id")): event for event in turn_events if event.type in ev.TOOL_USES}
    asks, answers = _asked(turn_events)
    results = {str(event.body.get("call_id")) for event in turn_events if event.type in ev.TOOL_RESULTS}
    events: list[Event] = [*spans, *_inside(uses, results), *threads.left_open(turn_events)]
    entries: list[Entry] = []
    pending: list[str] = []
    for call, asked in found.open_calls():
        kept = _kept(found, call)
        use, ask = uses.get(call.id), asks.get(call.id)
        if ask is None:
            text = _why(use, begun=begun) if begun or not custom.had(call.name) else _unanswered(found, kept)
            line = transcript.closing_line(call, asked, text, timestamp=timestamp)
            if use is not None and call.id not in results:
                events.append(ev.result_of(use, [ev.text_block(text)], is_error=True, call_id=call.id))
        elif (answer := answers.get(ask.id)) is not None:
            content, is_error = answer_of(answer)
            line = transcript.closing_line(call, asked, content, timestamp=timestamp, is_error=is_error)
        else:
            pending.append(ask.id)
            continue
        # It belongs to the turn of the call: a later attempt of this one may begin anew, without its own lines.
        owner = str(kept.body.get("turn_id", ""))
        entries.append(transcript.entry(owner, transcript.place_of(kept), line))
    if pending:
        return Settlement(
            way="waiting", events=tuple(events), entries=tuple(entries), responses=responses, pending=tuple(pending)
        )
    if not begun or _unheard(lines, responses):
        # What the lost attempt wrote down beside the prompt is left out: the CLI writes it anew.
        return Settlement(way="prompt", events=tuple(events), entries=tuple(entries))
    said = [fact for fact in facts if isinstance(fact, Said | Answered)]
    if not entries and said and isinstance(last := said[-1], Said) and _ends_here(found, turn_id):
        return Settlement(way="answered", events=tuple(events), text=_text(said, last), responses=responses)
    return Settlement(way="continue", events=tuple(events), entries=tuple(entries), responses=responses)


def _inside(uses: Mapping[str, Event], results: Collection[str]) -> list[Event]:
    """Of calls that subagents were making. Who asked for one hears of it by the call that began its work."""
    return [
        threads.beside(use, ev.result_of(use, [ev.text_block(UNKNOWN)], is_error=True, call_id=call_id))
        for call_id, use in uses.items()
        if call_id not in results and threads.THREAD_ID in use.body
    ]


def _unheard(lines: Sequence[JsonObject], responses: int) -> bool:
    """The prompt is all there is of the turn: it is sent again, as if for the first time."""
    return not responses and sum(transcript.inputs_of(line) is not None for line in lines) == 1


def _why(use: Event | None, *, begun: bool) -> str:
    if not begun:
        return LEFT_OPEN
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
