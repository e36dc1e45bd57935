"""Collects the events, entries and usage of the turn's next commit."""

from collections.abc import Callable
from dataclasses import dataclass, field

from footplate.domain import threads
from footplate.domain.events import Event, Usage
from footplate.domain.ports import Entry
from footplate.harness.claude import mapping
from footplate.harness.claude.calls import Calls
from footplate.harness.claude.mapping import Answered, Call


@dataclass(slots=True)
class Batch:
    events: list[Event] = field(default_factory=list)
    usage: Usage | None = None
    asked: list[tuple[Calls, Call]] = field(default_factory=list)
    """Calls that the model made, with their thread."""
    answered: list[tuple[Calls, str]] = field(default_factory=list)
    """Ids of the calls whose results are in this commit, with their thread."""
    marks: list[Entry] = field(default_factory=list)
    goes_on: bool = False
    """Whether there are more lines to commit after this commit."""
    _taken: list[tuple[list[Entry], int]] = field(default_factory=list)

    def add(self, used: Usage | None) -> None:
        if used is not None:
            self.usage = used if self.usage is None else self.usage + used

    def results(self, calls: Calls, fact: Answered, refused_event: Callable[[Call], Event]) -> None:
        """Adds the results of calls. `refused_event`: makes the event of a call that was never permitted."""
        for result in fact.results:
            use = calls.uses.get(result.call_id)
            if use is None:
                # The CLI refused the call itself: the tool does not exist, or its input is invalid.
                call = self._wanted(calls).get(result.call_id) or Call(result.call_id, "unknown", {})
                use = refused_event(call)
                self.events.append(use)
            self.events.append(threads.inside(mapping.tool_result(use, result), calls.thread_id))
            self.answered.append((calls, result.call_id))

    def leaves_open(self, calls: Calls) -> bool:
        """Whether calls of this thread are still open after this commit."""
        return bool({*self._wanted(calls)} - {call_id for of, call_id in self.answered if of is calls})

    def take(self, pending: list[Entry], count: int) -> None:
        """Adds the first `count` of the pending lines to this commit."""
        if count:
            self._taken.append((pending, count))

    @property
    def entries(self) -> list[Entry]:
        return [*(entry for pending, count in self._taken for entry in pending[:count]), *self.marks]

    def committed(self) -> None:
        for pending, count in self._taken:
            del pending[:count]
        for calls, call in self.asked:
            calls.open[call.id] = call
        for calls, call_id in self.answered:
            calls.end(call_id)

    def _wanted(self, calls: Calls) -> dict[str, Call]:
        return {**calls.open, **{call.id: call for of, call in self.asked if of is calls}}
