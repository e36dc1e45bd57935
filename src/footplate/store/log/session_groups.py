"""Accounts for the end of a session that belongs to a group: the children of a session, or a batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from footplate.domain.sessions.ending import SessionEnd
from footplate.domain.sessions.turns import SessionToWake
from footplate.store.database import SQL, Connection


@dataclass(frozen=True, slots=True)
class AccountedEnd:
    to_wake: Sequence[SessionToWake] = ()
    """Organisation and id of the sessions that have work because a member of their group has ended."""


async def record_member_end(
    connection: Connection, organisation: str, session_id: str, end: SessionEnd
) -> AccountedEnd:
    """Records the end of a member. The caller holds the lock of the member's head."""
    await connection.execute(SQL["count_member_end"], session_id, end.outcome)
    return AccountedEnd()
