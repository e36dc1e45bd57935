"""Accounts for the end of a session that belongs to a group: the children of a session, or a batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from footplate.domain.sessions.ending import SessionEnd
from footplate.store.database import Connection


@dataclass(frozen=True, slots=True)
class AccountedEnd:
    to_wake: Sequence[tuple[str, str]] = ()
    """Organisation and id of the sessions that have work because a member of their group has ended."""


async def record_member_end(
    _connection: Connection, _organisation: str, _session_id: str, _end: SessionEnd
) -> AccountedEnd:
    """Records the end of a member. The caller holds the lock of the member's head."""
    return AccountedEnd()
