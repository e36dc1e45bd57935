"""How a session ends: its outcome, the reason, and who ended it. An ended session can be read and forked."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EndOutcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It did nothing for longer than its policy allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    outcome: EndOutcome
    reason: str | None = None
    ended_by: str | None = None
    """The principal who ended it. None: it ended by itself, or by a policy."""
    ended_at: datetime | None = None
    """Set when the end is stored."""
