"""Counts failed attempts to sign in by client address, refuses more than the limit, and records them in the audit
trail. The counts are in the database, so the limit holds for all API processes together.
"""

import time
from typing import Final

import asyncpg

from footplate.domain import audit
from footplate.domain.organisations.sign_in import Browser, SignInLimitExceeded
from footplate.store.database import SQL, Database
from footplate.store.resources.audit_trail import add_entry

DEFAULT_FAILURES: Final = 20
_SECONDS_PER_MINUTE: Final = 60
_STARTS_PER_FAILURE: Final = 5


class SignInFailures:
    def __init__(self, database: Database, organisation: str, *, limit: int = DEFAULT_FAILURES) -> None:
        """`organisation` has the audit entries of attempts that name no member of any organisation."""
        self._database = database
        self._organisation = organisation
        self._limit = limit

    async def check(self, browser: Browser) -> None:
        """Raises `SignInLimitExceeded` if too many attempts from this address failed in the last one to two minutes."""
        await self.check_count(browser.address, self._limit)

    async def check_count(self, subject: str, limit: int) -> None:
        """Raises `SignInLimitExceeded` if the subject has reached the limit in the last one to two minutes."""
        row = await self._database.fetchrow("recent_sign_in_failures", subject, _current_minute())
        if row is not None and row["failures"] >= limit:
            raise SignInLimitExceeded

    async def count_start(self, browser: Browser) -> None:
        """Counts an attempt that needs no secret to begin. Raises `SignInLimitExceeded` for too many."""
        await self.count(f"start {browser.address}", _STARTS_PER_FAILURE * self._limit)

    async def count(self, subject: str, limit: int) -> None:
        """Counts something by any subject. Raises `SignInLimitExceeded` beyond the limit of one to two minutes."""
        await self.check_count(subject, limit)
        async with self._database.connection() as connection:
            await connection.execute(SQL["count_sign_in_failure"], subject, _current_minute())

    async def record(self, method: str, browser: Browser, reason: str, row: asyncpg.Record | None = None) -> None:
        """Counts a failure and adds it to the audit trail. `row` is the credential that was used, if it is known."""
        organisation = self._organisation if row is None else row["organisation"]
        entry = audit.build_sign_in_entry(
            "sign_in.failure",
            browser.address,
            {"method": str(method), "reason": reason, "user_agent": browser.user_agent},
            is_failure=True,
        )
        async with self._database.transaction() as connection:
            await connection.execute(SQL["count_sign_in_failure"], browser.address, _current_minute())
            await add_entry(connection, organisation, entry, principal=None if row is None else row["principal"])


def _current_minute() -> int:
    return int(time.time()) // _SECONDS_PER_MINUTE
