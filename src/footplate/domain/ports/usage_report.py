"""Data types of usage reports (the query and a result row), and the interface (port) that runs the query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol

from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import TurnStatus

Grouping = Literal[
    "session", "day", "hour", "agent", "model", "harness", "key", "member", "project", "parameters", "status", "tool"
]
"""`key` and `member` are both the sender of the message. `key` is the older name. `project` is the session's first
project. `parameters` are the turn's model parameters and limits."""
Filter = Literal["session", "agent", "model", "harness", "member", "project", "status", "tool"]

_OPEN: Final = frozenset({TurnStatus.PENDING.value, TurnStatus.RUNNING.value, TurnStatus.AWAITING.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """A query over the turns that began at or after `start` and before `end`."""

    start: datetime
    end: datetime
    group_by: frozenset[Grouping]
    limit: int
    filters: Mapping[Filter, Sequence[str]] = field(default_factory=dict)
    """Only turns with one of the values, for each name."""
    parameters: JsonObject = field(default_factory=dict)
    """Only turns with these values of parameters."""
    min_requests: int = 0
    """Only groups with at least so many requests to models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """The calls of a tool in turns that have ended."""

    calls: int
    failed: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    group: Mapping[str, Json]
    """The value of each grouping. `day` is a date in UTC. A group by `member` also has the `member_name`."""
    turns: int
    statuses: dict[str, int]
    seconds: float
    """Total duration of ended turns, including waits."""
    usage: Usage
    unpriced_turns: int
    """Turns with a model whose price is unknown. The cost does not include them."""
    tool_calls: ToolCalls | None = None
    """Only in a group by `tool`. All other figures are those of the turns that called the tool."""

    @property
    def ended_turns(self) -> int:
        return sum(count for status, count in self.statuses.items() if status not in _OPEN)

    @property
    def success_rate(self) -> float | None:
        """The share of ended turns that completed. None if no turn has ended."""
        ended = self.ended_turns
        return self.statuses.get(TurnStatus.COMPLETED.value, 0) / ended if ended else None


class UsageReads(Protocol):
    async def query_usage(self, principal: Principal, query: UsageQuery) -> Sequence[UsageRow]:
        """Return the usage of the principal's organisation, sorted by group, at most `limit` rows."""
