"""One commit of a turn in the making."""

from dataclasses import dataclass, field

from footplate.domain.events import Event, Usage
from footplate.domain.ports import Entry
from footplate.harness.claude.mapping import Call


@dataclass(slots=True)
class Batch:
    events: list[Event] = field(default_factory=list)
    usage: Usage | None = None
    calls: dict[str, Call] = field(default_factory=dict)
    """That the model asked for."""
    results: list[str] = field(default_factory=list)
    """Calls that have theirs with it."""
    marks: list[Entry] = field(default_factory=list)
    upto: int = 0
    """How many of the held lines it takes."""

    def add(self, used: Usage | None) -> None:
        if used is not None:
            self.usage = used if self.usage is None else self.usage + used
