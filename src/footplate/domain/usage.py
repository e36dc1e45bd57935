"""What was used, added up: the question, a line of the answer, and the port that answers it (F9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from footplate.domain.events import Usage
from footplate.domain.principals import Principal

Grouping = Literal["day", "agent", "model", "session", "harness", "key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuestion:
    """About the turns that began from `start` on and before `end`."""

    start: datetime
    end: datetime
    group_by: frozenset[Grouping]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    group: dict[str, str | None]
    """By grouping; `day` is a date in UTC."""
    turns: int
    statuses: dict[str, int]
    seconds: float
    """Of turns that ended, from their beginning to their end, waits included."""
    usage: Usage
    unpriced_turns: int
    """Turns that asked a model whose price is not known: the cost is without them."""


class UsageReads(Protocol):
    async def usage(self, principal: Principal, question: UsageQuestion) -> Sequence[UsageLine]:
        """Of the principal's organisation, in the order of the groups; at most `limit` lines."""
