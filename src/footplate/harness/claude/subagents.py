"""Records the work of a turn's subagents as events, each subagent in its own thread.

A subagent starts and ends with the call that started it. A new attempt does not resume it: the outcome of that call is
then unknown, as for any other call. So its lines are recorded as they arrive, without waiting for a complete response.
The usage of a response is recorded with the line that completes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from footplate.domain import agents, ids, threads
from footplate.domain import events as ev
from footplate.domain.events import Event, Usage
from footplate.domain.mcp import Names
from footplate.domain.ports import Entry, TurnContext
from footplate.harness import approvals
from footplate.harness.claude import mapping, transcript
from footplate.harness.claude.batch import Batch
from footplate.harness.claude.calls import DELEGATING, Calls
from footplate.harness.claude.mapping import Answered, Call, Compacted, Said
from footplate.harness.leftovers import LEFT_OPEN

_TAKEN: Final = frozenset({"description", "prompt", "subagent_type"})
"""Parameters that the call may have. Others would override the subagent's definition."""
_MOST_KNOWN: Final = 1000
_FOLDER: Final = "subagents/agent-"


def refusal(call: Call, known: Sequence[agents.Subagent]) -> str | None:
    """Why the subagent is not started, as a message for the model. None if it may start."""
    if call.name not in DELEGATING:
        return None
    names = [agent.name for agent in known]
    if call.input.get("subagent_type") not in names:
        return f"This subagent does not exist. Set `subagent_type` to one of: {', '.join(names)}."
    more = sorted(name for name, value in call.input.items() if name not in _TAKEN and value)
    if more:
        return (
            f"These parameters of a subagent cannot be set in the call: {', '.join(more)}. Remove them and try again."
        )
    return None


class Subagents:
    """The subagents of one turn, by the id of the call that started each."""

    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self._found: dict[str, Subagent] = {}
        self._asked_by: dict[str, str] = {}
        """The id of the starting call, by the CLI's id of the subagent."""

    def learn(self, agent_id: str, call_id: str) -> None:
        if len(self._asked_by) < _MOST_KNOWN:
            self._asked_by[agent_id] = call_id

    def calls_of(self, agent_id: str) -> Calls | None:
        subagent = self._found.get(self._asked_by.get(agent_id, ""))
        return subagent.calls if subagent is not None else None

    def begin(self, call: Call) -> list[Event]:
        """The events of a started subagent. Empty if the call does not start one."""
        if call.name not in DELEGATING:
            return []
        self._found[call.id] = subagent = Subagent(call, self._turn)
        return subagent.begin()

    def hold(self, subpath: str, entry: Entry) -> bool:
        """Adds a line of a subagent's transcript. Returns False if no call of this turn started the subagent."""
        agent_id = subpath.removeprefix(_FOLDER)
        if (call_id := transcript.asked_by(transcript.line_of(entry))) is not None:
            self.learn(agent_id, call_id)
        subagent = self._found.get(self._asked_by.get(agent_id, ""))
        if subagent is not None:
            subagent.hold(entry)
        return subagent is not None

    @property
    def held(self) -> list[Entry]:
        return [entry for subagent in self._found.values() for entry in subagent.held]

    def gather(self, batch: Batch, names: Names, *, all_of_it: bool) -> None:
        for subagent in self._found.values():
            subagent.gather(batch, names, all_of_it=all_of_it)

    def speaking(self, call_ids: Iterable[str] | None = None) -> "list[Subagent]":
        """Subagents whose last line has not arrived: those that these calls started, or all."""
        return [subagent for subagent in self._working(call_ids) if not subagent.quiet]

    def end(self, batch: Batch, call_ids: Iterable[str] | None = None) -> None:
        for subagent in self._working(call_ids):
            subagent.end(batch)

    def _working(self, call_ids: Iterable[str] | None) -> "list[Subagent]":
        wanted = {*(self._found if call_ids is None else call_ids)}
        return [subagent for call_id, subagent in self._found.items() if call_id in wanted and not subagent.over]


class Subagent:
    def __init__(self, call: Call, turn: TurnContext) -> None:
        self.thread_id = ids.new_id(ids.THREAD)
        self.name = str(call.input.get("subagent_type"))
        self.calls = Calls(self.thread_id, self.name)
        self.held: list[Entry] = []
        self.quiet = False
        """Whether the transcript has its last line."""
        self.over = False
        self._call = call
        self._primary = threads.primary_id(turn.session_id)
        self._interrupt = turn.interrupt
        self._request: Event | None = None
        self._answer: tuple[str, str, Mapping[str, Any]] | None = None
        """The current response: its id, model and token counts so far."""
        self._known: set[str] = set()
        self._report = ""
        self._used = Usage()

    def begin(self) -> list[Event]:
        prompt = str(self._call.input.get("prompt") or "")
        self._request = ev.model_request_start()
        return [
            threads.created(self.thread_id, self.name, self._call.id),
            threads.running(self.thread_id, self.name),
            threads.sent(prompt, self.thread_id, self.name),
            *self._inside(threads.received(prompt, self._primary, None), self._request),
        ]

    def hold(self, entry: Entry) -> None:
        self.held.append(entry)
        line = transcript.line_of(entry)
        if isinstance(transcript.fact_of(line, inside=True), Said | Answered):
            self.quiet = transcript.counted(line)[2] not in {None, "tool_use"}
        elif transcript.is_error_notice(line):
            self.quiet = True

    def gather(self, batch: Batch, names: Names, *, all_of_it: bool) -> None:
        """Adds the events of its lines. A line without an event is committed with the next line that has one."""
        count = 0
        for index, entry in enumerate(self.held):
            line = transcript.line_of(entry)
            match transcript.fact_of(line, inside=True):
                case Said() as fact:
                    self._says(batch, fact, line)
                case Answered() as fact:
                    self._is_told(batch, fact, names)
                case Compacted():
                    batch.events += self._inside(ev.context_compacted())
                case _:
                    continue
            count = index + 1
        batch.take(self.held, len(self.held) if all_of_it else count)

    def end(self, batch: Batch) -> None:
        """Ends the subagent's thread, because the call that started it has ended. Closes its open calls."""
        self.over = True
        self._complete(batch)
        done = {call_id for _, call_id in batch.answered}
        for call_id, use in self.calls.uses.items():
            if call_id not in done:
                text = LEFT_OPEN if call_id in self.calls.running else approvals.STOPPED
                result = ev.result_of(use, [ev.text_block(text)], is_error=True, call_id=call_id)
                batch.events += self._inside(result)
                batch.answered.append((self.calls, call_id))
        if self._request is not None:
            batch.events += self._inside(self._ended(Usage(), is_error=True))
        if self._report:
            batch.events += self._inside(threads.sent(self._report, self._primary, None))
            batch.events.append(threads.received(self._report, self.thread_id, self.name))
        batch.events.append(threads.idle(self.thread_id, self.name, self._used))

    def _says(self, batch: Batch, fact: Said, line: Mapping[str, Any]) -> None:
        model, counted, stopped = transcript.counted(line)
        if self._answer is not None and self._answer[0] != fact.message_id:
            self._complete(batch)
        if fact.message_id not in self._known or self._answer is not None:
            self._known.add(fact.message_id)
            self._answer = (fact.message_id, model, counted)
        if self._answer is not None and self._request is None:
            self._request = ev.model_request_start()
            batch.events += self._inside(self._request)
        batch.events += self._inside(*mapping.spoken(fact.parts, {}))
        self._report = fact.text or self._report
        if stopped is not None:
            self._complete(batch)
        batch.asked += [(self.calls, call) for call in fact.calls]

    def _is_told(self, batch: Batch, fact: Answered, names: Names) -> None:
        self._complete(batch)
        batch.results(self.calls, fact, lambda call: self.calls.refused(call, names))
        if not batch.leaves_open(self.calls) and self._request is None and not self._interrupt.is_set():
            self._request = ev.model_request_start()
            batch.events += self._inside(self._request)

    def _complete(self, batch: Batch) -> None:
        """Ends the current response, if there is one: logs the end of its request, and its usage once."""
        if self._answer is None:
            return
        _, model, counted = self._answer
        self._answer = None
        used = mapping.usage(model, counted)
        self._used += used
        batch.add(used)
        batch.events += self._inside(self._ended(used, is_error=False))

    def _ended(self, used: Usage, *, is_error: bool) -> Event:
        assert self._request is not None
        request, self._request = self._request, None
        return ev.model_request_end(request.id, used, is_error=is_error)

    def _inside(self, *events: Event) -> list[Event]:
        return [threads.inside(event, self.thread_id) for event in events]
