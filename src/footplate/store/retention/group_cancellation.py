"""Cancels the members of groups that nothing waits for any more, and starts members that were passed over.

Each member ends in a transaction of its own. A transaction that holds the lock of a parent therefore never waits for a
child, and a crash in between leaves the rest to the sweep, which repeats the cancellation.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from footplate.domain.errors import Unavailable
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import Input
from footplate.domain.ports.child_store import StoppedSessions
from footplate.domain.sessions import events
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.turns import SessionToWake
from footplate.store.database import SQL, Database, call_with_retries
from footplate.store.log.inputs import append_inputs
from footplate.store.log.session_ending import end_session, request_end
from footplate.store.log.session_groups.member_ends import start_next_member
from footplate.store.object_store import Objects

_RETRY_SECONDS: Final = 5.0
_CANCELLED = SessionEnd(outcome=EndOutcome.CANCELLED, reason="The group of the session was cancelled.")


class GroupCancellation:
    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects

    async def cancel(self, group_id: str) -> StoppedSessions:
        """Ends the members that have not ended. One that runs a turn ends with the turn, which is interrupted."""
        await self._database.fetch("cancel_group", group_id)
        stopped = StoppedSessions()
        for row in await self._database.fetch("unended_members", group_id):
            # The end of a turn locks a row of `usage_by_day`, which sessions share, before the group and the parent's
            # head. So two ends may deadlock, and the database then rolls one of them back.
            stopped += await call_with_retries(
                partial(self._cancel_member, row["organisation"], row["id"], row["principal"]),
                on=(Unavailable,),
                seconds=_RETRY_SECONDS,
                wait_max=0.5,
            )
        return stopped

    async def cancel_abandoned(self, parent_id: str | None = None) -> StoppedSessions:
        """Cancels the groups whose parent no longer waits for them: all, or those of one session."""
        stopped = StoppedSessions()
        for row in await self._database.fetch("abandoned_groups", parent_id):
            stopped += await self.cancel(row["id"])
        return stopped

    async def fill_groups(self) -> Sequence[SessionToWake]:
        """Starts members that could not start because another transaction had locked them."""
        to_wake: list[SessionToWake] = []
        for row in await self._database.fetch("groups_with_room"):
            async with self._database.transaction() as connection:
                group = await connection.fetchrow(SQL["lock_group"], row["id"])
                if group is not None and group["cancelled_at"] is None and group["ended_at"] is None:
                    to_wake += await start_next_member(connection, group["organisation"], group["id"])
        return to_wake

    async def _cancel_member(self, organisation: str, session_id: str, principal_id: str) -> StoppedSessions:
        async with self._database.transaction() as connection:
            head = await connection.fetchrow(SQL["lock_head"], session_id, organisation)
            if head is None or head["ended_at"] is not None or head["end_request"] is not None:
                return StoppedSessions()
            if head["status"] != "running":
                ended = await end_session(connection, organisation, session_id, _CANCELLED)
                return StoppedSessions(ended.to_wake, [session_id], [(organisation, session_id, ended.positions)])
            await request_end(connection, session_id, _CANCELLED)
            principal = Principal(organisation, principal_id, "", frozenset())
            interrupt = Input(type=events.USER_INTERRUPT, body={})
            accepted = await append_inputs(connection, self._objects, principal, session_id, [interrupt])
            return StoppedSessions((), [session_id], [(organisation, session_id, accepted.positions)])
