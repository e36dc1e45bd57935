"""How a session ends: its outcome, the reason, and who ended it. An ended session can be read and forked."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from footplate.domain.errors import Conflict


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


def check_same_end(session_id: str, first: SessionEnd, repeated: SessionEnd) -> None:
    """Raise `Conflict` if a request to end a session differs from the end that was stored or requested first."""
    if repeated.outcome is not first.outcome:
        raise Conflict(
            f"Session {session_id!r} has already ended as {first.outcome}, so it cannot end as {repeated.outcome}.",
            help_text="An end cannot be changed.",
        )
