"""Write leases in the database: one holder, a queue of waiters, and a token that detects a holder whose lease expired.

If a process dies, its place in the queue is skipped after `_DEAD_AFTER_SECONDS` without a poll, and a lease that it
holds expires. A statement whose acknowledgement was lost may be sent again.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from footplate.domain.errors import Unavailable
from footplate.domain.leases import HOLD, WAIT, LeaseHeld, LeaseLost
from footplate.store.database import Database

_GONE: Final = 10.0
"""A waiter that has not polled for this many seconds is considered dead."""
_ASK_FIRST: Final = 0.05
_ASK_EVERY: Final = 0.5

Where = tuple[str, str]
"""An organisation, and a resource of it such as a branch."""

log = structlog.get_logger(__name__)


class WriteLeases:
    def __init__(self, database: Database, *, hold: float = HOLD) -> None:
        self._database = database
        self._hold = hold

    @asynccontextmanager
    async def held(
        self,
        organisation: str,
        place: str,
        *,
        who: str,
        wait: float = WAIT,
        named: str | None = None,
        successor: bool = False,
    ) -> AsyncGenerator["Held", None]:
        lease = await self._wait((organisation, place), who, wait, named or place, successor=successor)
        renewing = asyncio.create_task(lease.renewing())
        try:
            yield lease
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing
            await _quietly(self._database, "end_to_write", organisation, place, lease.token)

    async def _wait(self, where: Where, who: str, wait: float, named: str, *, successor: bool) -> "Held":
        began = time.monotonic()
        row = await self._database.fetchrow("queue_to_write", *where, secrets.token_hex(16))
        assert row is not None
        ticket: int = row["ticket"]
        pause = _ASK_FIRST
        try:
            while True:
                await self._database.fetch("ask_to_write", ticket)
                taken = await self._database.fetchrow(
                    "take_to_write", *where, ticket, who, self._hold, _GONE, successor
                )
                if taken is not None:
                    return Held(self._database, where, taken["token"], self._hold, named)
                left = wait - (time.monotonic() - began)
                if left <= 0:
                    await self._give_up(where, ticket, wait, named)
                await asyncio.sleep(min(pause, max(left, 0.001)))
                pause = min(pause * 1.5, _ASK_EVERY)
        finally:
            await _quietly(self._database, "leave_queue", ticket)

    async def _give_up(self, where: Where, ticket: int, wait: float, named: str) -> None:
        """Raises `LeaseHeld`, unless the lease has just become free."""
        row = await self._database.fetchrow("writer", *where, ticket, _GONE)
        if row is not None:
            raise LeaseHeld(named, holder=row["holder"], since=row["since"], waited=wait, queue_length=row["before"])


class Held:
    def __init__(self, database: Database, where: Where, token: int, hold: float, named: str) -> None:
        self._database = database
        self._where = where
        self._hold = hold
        self._named = named
        self.token = token

    async def check(self) -> None:
        row = await self._database.fetchrow("renew_to_write", *self._where, self.token, self._hold)
        if row is None:
            raise LeaseLost(self._named)

    async def renewing(self) -> None:
        """Renews the lease in the background. Ignores a lost lease: the holder checks it before each write."""
        while True:
            await asyncio.sleep(self._hold / 3)
            with contextlib.suppress(Unavailable):
                await self.check()


async def _quietly(database: Database, query: str, *args: object) -> None:
    """Runs a cleanup query and only logs a failure, because leases and queue places expire by themselves."""
    try:
        async with asyncio.timeout(5):
            await database.fetch(query, *args)
    except (Unavailable, TimeoutError) as error:
        log.warning("write lease not released", action="lease.not_ended", reason=str(error))
