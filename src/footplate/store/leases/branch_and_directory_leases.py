"""Stores write leases in the database. A lease allows only one process at a time to write to a branch or a directory.

Other processes wait in a queue. A waiter whose last poll is more than `_DEAD_AFTER_SECONDS` ago loses its place. Each
lease has a number (fencing token), which detects a holder whose lease has expired. Every SQL statement is idempotent,
so it can be repeated if its acknowledgement was lost.
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
from footplate.domain.projects.write_leases import DEFAULT_WAIT_SECONDS, LEASE_SECONDS, LeaseHeld, LeaseLost
from footplate.store.database import Database

_DEAD_AFTER_SECONDS: Final = 10.0
"""A waiter that has not polled for this many seconds is considered dead."""
_FIRST_POLL_SECONDS: Final = 0.05
_MAX_POLL_SECONDS: Final = 0.5

LeaseTarget = tuple[str, str]
"""An organisation, and a resource of it such as a branch."""

log = structlog.get_logger(__name__)


class WriteLeases:
    def __init__(self, database: Database, *, hold: float = LEASE_SECONDS) -> None:
        self._database = database
        self._hold = hold

    @asynccontextmanager
    async def hold(
        self,
        organisation: str,
        target: str,
        *,
        owner: str,
        wait: float = DEFAULT_WAIT_SECONDS,
        display_name: str | None = None,
        successor: bool = False,
    ) -> AsyncGenerator["HeldWriteLease", None]:
        lease = await self._wait_in_queue(
            (organisation, target), owner, wait, display_name or target, successor=successor
        )
        renewing = asyncio.create_task(lease.renew_until_cancelled())
        try:
            yield lease
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing
            await _run_cleanup_query(self._database, "end_to_write", organisation, target, lease.token)

    async def _wait_in_queue(
        self, target: LeaseTarget, owner: str, wait: float, display_name: str, *, successor: bool
    ) -> "HeldWriteLease":
        began = time.monotonic()
        row = await self._database.fetchrow("queue_to_write", *target, secrets.token_hex(16))
        assert row is not None
        ticket: int = row["ticket"]
        pause = _FIRST_POLL_SECONDS
        try:
            while True:
                await self._database.fetch("ask_to_write", ticket)
                acquired = await self._database.fetchrow(
                    "take_to_write",
                    organisation=target[0],
                    place=target[1],
                    ticket=ticket,
                    holder=owner,
                    lease_seconds=self._hold,
                    dead_after_seconds=_DEAD_AFTER_SECONDS,
                    is_successor=successor,
                )
                if acquired is not None:
                    return HeldWriteLease(self._database, target, acquired["token"], self._hold, display_name)
                remaining = wait - (time.monotonic() - began)
                if remaining <= 0:
                    await self._raise_held(target, ticket, wait, display_name)
                await asyncio.sleep(min(pause, max(remaining, 0.001)))
                pause = min(pause * 1.5, _MAX_POLL_SECONDS)
        finally:
            await _run_cleanup_query(self._database, "leave_queue", ticket)

    async def _raise_held(self, target: LeaseTarget, ticket: int, wait: float, display_name: str) -> None:
        """Raises `LeaseHeld`, unless the lease has just become free."""
        row = await self._database.fetchrow("writer", *target, ticket, _DEAD_AFTER_SECONDS)
        if row is not None:
            raise LeaseHeld(
                display_name, holder=row["holder"], since=row["since"], waited=wait, queue_length=row["before"]
            )


class HeldWriteLease:
    def __init__(self, database: Database, target: LeaseTarget, token: int, hold: float, display_name: str) -> None:
        self._database = database
        self._target = target
        self._hold = hold
        self._display_name = display_name
        self.token = token

    async def check(self) -> None:
        row = await self._database.fetchrow("renew_to_write", *self._target, self.token, self._hold)
        if row is None:
            raise LeaseLost(self._display_name)

    async def renew_until_cancelled(self) -> None:
        """Renews the lease in the background. Ignores a lost lease: the holder checks it before each write."""
        while True:
            await asyncio.sleep(self._hold / 3)
            with contextlib.suppress(Unavailable):
                await self.check()


async def _run_cleanup_query(database: Database, query: str, *args: object) -> None:
    """Runs a cleanup query and only logs a failure, because leases and queue places expire by themselves."""
    try:
        async with asyncio.timeout(5):
            await database.fetch(query, *args)
    except (Unavailable, TimeoutError) as error:
        log.warning("write lease could not be released", action="lease.not_ended", reason=str(error))
