"""Data types of usage reports (the query and a result row), and the interface (port) that runs the query."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from footplate.domain.organisations.principals import Principal
from footplate.domain.sessions.events import Usage

Grouping = Literal["day", "agent", "model", "session", "harness", "key", "member"]
"""`key` and `member` are both the sender of the message. `key` is the older name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """A query over the turns that began at or after `start` and before `end`."""

    start: datetime
    end: datetime
    group_by: frozenset[Grouping]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    group: dict[str, str | None]
    """The value of each grouping. `day` is a date in UTC. A group by `member` also has the `member_name`."""
    turns: int
    statuses: dict[str, int]
    seconds: float
    """Total duration of ended turns, including waits."""
    usage: Usage
    unpriced_turns: int
    """Turns with a model whose price is unknown. The cost does not include them."""


class UsageReads(Protocol):
    async def query_usage(self, principal: Principal, query: UsageQuery) -> Sequence[UsageRow]:
        """Return the usage of the principal's organisation, sorted by group, at most `limit` rows."""
