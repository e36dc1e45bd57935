"""Defers turns that exceed a limit on concurrent turns, and finds those that may start.

A turn that runs, or that waits for its next attempt after a failure, occupies a slot. A turn that waits for a person
does not. A deferred turn has no claim and occupies no worker: its session keeps the wake flag, and its head names the
limit. The turns of an organisation start by priority, and then in the order in which they were woken.
"""

import itertools
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from footplate.domain.organisations.limits import (
    ORGANISATION,
    DeferredTurn,
    LimitName,
    OrganisationLimits,
    choose_turns_to_start,
)
from footplate.domain.sessions.turns import SessionToWake
from footplate.store.database import SQL, Connection, Database
from footplate.store.resources.limits import LimitStore

_MAX_STARTED: Final = 100
"""Deferred turns of one organisation that are read at once."""


class TurnDeferred(Exception):
    """The turn has to wait for a slot. Rolls the claim back."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope


async def check_turn_slots(
    connection: Connection, limits: OrganisationLimits, session_id: str, woken_at: datetime | None
) -> None:
    """Raises `TurnDeferred` if the turn that was claimed in this transaction exceeds a limit, or if turns that were
    woken before it need the free slots. The caller holds the lock of the limit.
    """
    rows = await connection.fetch(SQL["turn_slots"], limits.organisation, session_id, woken_at)
    claimed = next((row for row in rows if row["is_claimed"]), None)
    if claimed is None:  # a process of an older version has made the session active, without its organisation
        return
    own = limits.value(LimitName.CONCURRENT_TURNS, claimed["member"] or "")
    if own is not None and claimed["used"] + claimed["member_waiting_before"] > own:
        raise TurnDeferred(claimed["member"] or "")
    whole = limits.value(LimitName.CONCURRENT_TURNS, ORGANISATION)
    if whole is not None and sum(row["used"] for row in rows) + claimed["waiting_before"] > whole:
        raise TurnDeferred(ORGANISATION)


async def defer_turn(connection: Connection, session_id: str, scope: str) -> None:
    await connection.execute(SQL["defer_turn"], session_id, scope)


class DeferredTurns:
    def __init__(self, database: Database, limits: LimitStore) -> None:
        self._database = database
        self._limits = limits

    async def release_turns(self) -> Sequence[SessionToWake]:
        """Returns the sessions whose turns may start now. From here on the caller must wake them; if
        it dies, the sweep does.
        """
        rows = await self._database.fetch("deferred_turns", _MAX_STARTED)
        rows.sort(key=lambda row: row["organisation"])  # stable: each organisation keeps its order
        released: list[SessionToWake] = []
        for organisation, group in itertools.groupby(rows, key=lambda row: row["organisation"]):
            turns = [DeferredTurn(row["session_id"], row["deferred"]) for row in group]
            running = await self._limits.count_used(organisation, LimitName.CONCURRENT_TURNS)
            chosen = choose_turns_to_start(turns, running, await self._limits.load(organisation))
            if chosen:
                rows = await self._database.fetch("release_deferred_turns", chosen)
                released += [SessionToWake(organisation, row["session_id"], row["priority"]) for row in rows]
        return released
