"""Ends and deletes sessions that have been inactive for a configured time.

A session is not deleted while it has an unfinished turn, a queued message, a pending approval or an existing fork.
Expired sessions are deleted in the same way as sessions that a client deletes. A session does not end while a person
has to decide or a step is queued.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

import structlog

from footplate.domain.ports.child_store import StoppedSessions
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.store.database import SQL, Connection, Database
from footplate.store.log.session_ending import EndedSession, end_member, end_session
from footplate.store.retention.session_deletion import delete_session_rows
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

_SESSIONS_PER_RUN: Final = 2000
_UNITS: Final = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


class _SessionWalk(ABC):
    """Checks all sessions in batches. Each run checks one batch, and later runs continue after it."""

    _name: str

    def __init__(
        self,
        database: Database,
        older_than: timedelta | None,
        notify: Callable[[StoppedSessions], Awaitable[None]] | None = None,
    ) -> None:
        """`older_than`: how long a session must be inactive. None: nothing happens. `notify` is called after each
        commit that ends a session.
        """
        self._database = database
        self._older_than = older_than
        self._notify = notify

    async def run(self) -> None:
        if self._older_than is None:
            return
        progress = await self._database.fetchrow("expiry_place", self._name)
        heads = await self._next_session_ids(progress["place"] if progress else "")
        await self._database.fetch("expiry_walked", self._name, heads[-1] if len(heads) == _SESSIONS_PER_RUN else "")
        for row in await self._find(self._database, heads):
            await self._handle_if_due(row["organisation"], row["session_id"])

    async def _handle_if_due(self, organisation: str, session_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(SQL["lock_head_only"], session_id)
            if not await self._find(connection, [session_id]):  # it may have been used meanwhile
                return
            ended = await self._handle(connection, organisation, session_id)
        if self._notify is not None:
            await self._notify(
                StoppedSessions(ended.to_wake, [session_id], [(organisation, session_id, ended.positions)])
            )

    async def _next_session_ids(self, after: str) -> list[str]:
        return [row["session_id"] for row in await self._database.fetch("heads_after", after, _SESSIONS_PER_RUN)]

    @abstractmethod
    async def _find(self, source: Database | Connection, session_ids: list[str]) -> Sequence[Row]:
        """Returns those of the sessions that are due."""

    @abstractmethod
    async def _handle(self, connection: Connection, organisation: str, session_id: str) -> EndedSession:
        """Ends or deletes a session that is due. The caller holds the lock of its head."""


class IdleSessionEnding(_SessionWalk):
    """Ends sessions that were not used for a configured time."""

    _name = "ending"

    async def _find(self, source: Database | Connection, session_ids: list[str]) -> Sequence[Row]:
        return await _fetch(source, "unused_sessions", session_ids, self._older_than)

    async def _handle(self, connection: Connection, organisation: str, session_id: str) -> EndedSession:
        end = _expired_after(self._older_than)
        ended = await end_session(connection, organisation, session_id, end)
        log.info("idle session ended", action="expiry.ended", session=session_id)
        return ended


class SessionExpiry(_SessionWalk):
    """Deletes sessions that were not used for a configured time."""

    _name = "expiry"

    async def list_expired(self) -> AsyncIterator[Row]:
        """Yields all sessions that are expired now."""
        heads = await self._next_session_ids("") if self._older_than is not None else []
        while heads:
            for row in await self._find(self._database, heads):
                yield row
            heads = await self._next_session_ids(heads[-1])

    async def _find(self, source: Database | Connection, session_ids: list[str]) -> Sequence[Row]:
        return await _fetch(source, "expired", session_ids, self._older_than, False)

    async def _handle(self, connection: Connection, organisation: str, session_id: str) -> EndedSession:
        ended = await end_member(connection, organisation, session_id, _expired_after(self._older_than))
        await delete_session_rows(connection, organisation, session_id)
        log.info("expired session deleted", action="expiry.deleted", session=session_id)
        return ended


def _expired_after(unused: timedelta | None) -> SessionEnd:
    assert unused is not None
    return SessionEnd(outcome=EndOutcome.EXPIRED, reason=f"The session was not used for {_describe_duration(unused)}.")


def _describe_duration(duration: timedelta) -> str:
    """Returns a duration in its largest unit that divides it: `30 days`, `1 hour`, `90 minutes`."""
    seconds = round(duration.total_seconds())
    size, unit = next(found for found in _UNITS if seconds % found[0] == 0)
    count = seconds // size
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"


async def _fetch(source: Database | Connection, query: str, *args: object) -> Sequence[Row]:
    return await (source.fetch(query, *args) if isinstance(source, Database) else source.fetch(SQL[query], *args))
