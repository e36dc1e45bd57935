"""Stores the limits of organisations and members, and counts what they use in the database.

A count and the change that it permits are in one transaction, which holds a lock for the organisation and the limit. So
two processes never both use the last place. An organisation without a limit pays nothing for this.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from footplate.domain import audit
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.organisations.limits import (
    EACH_MEMBER,
    ORGANISATION,
    LimitName,
    LimitUnit,
    LimitValues,
    OrganisationLimits,
)
from footplate.domain.organisations.organisation_names import check_new_name
from footplate.domain.organisations.principals import Principal
from footplate.store.database import SQL, Connection, Database
from footplate.store.resources.audit_trail import AuditUnitOfWork
from footplate.store.row_mapping import Row

CACHE_SECONDS: Final = 2.0
"""A changed limit takes effect in every process within this time."""
_MAX_CACHED: Final = 10_000
_KNOWN_NAMES: Final = frozenset(LimitName)
"""Names that a newer version has stored are ignored."""
_MAX_REPORTED: Final = 100
"""Organisations whose use is reported to the operator's metrics."""


class LimitStore:
    def __init__(self, database: Database, defaults: LimitValues | None = None) -> None:
        """`defaults` are the operator's limits for organisations that have no other."""
        self._database = database
        self._defaults = defaults or {}
        self._cache: dict[str, tuple[float, OrganisationLimits]] = {}

    async def load(self, organisation: str, *, use_cache: bool = True) -> OrganisationLimits:
        cached = self._cache.get(organisation)
        if use_cache and cached is not None and cached[0] > time.monotonic():
            return cached[1]
        rows = await self._database.fetch("limits", organisation)
        limits = _load_limits(organisation, rows, self._defaults)
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        self._cache[organisation] = (time.monotonic() + CACHE_SECONDS, limits)
        return limits

    async def count_used(self, organisation: str, name: LimitName) -> Mapping[str | None, int]:
        """Returns the present use by member. Requests and streams are not in the database."""
        return _load_used(await self._database.fetch(f"used_{name}", organisation))

    async def find_limited_organisations(self) -> Sequence[str]:
        has_default = any(scope == ORGANISATION for _, scope in self._defaults)
        return [row["id"] for row in await self._database.fetch("limited_organisations", has_default, _MAX_REPORTED)]

    async def load_member_names(self, organisation: str, ids: Sequence[str]) -> Mapping[str, str]:
        return {row["id"]: row["name"] for row in await self._database.fetch("member_names", list(ids), organisation)}

    async def set_operator_limit(self, organisation: str, name: LimitName, scope: str, value: int | None) -> None:
        check_new_name(organisation)
        async with self._database.transaction() as connection:
            await connection.execute(SQL["insert_organisation"], organisation, organisation)
            await _write_limit(connection, organisation, name, scope, value, by_operator=True)


class LimitUnitOfWork(AuditUnitOfWork, LimitUnit):
    """The methods of a unit of work that change limits, and that check them before something is added."""

    _connection: Connection
    _limits: OrganisationLimits

    async def set_limit(self, principal: Principal, name: LimitName, scope: str, value: int | None) -> None:
        if scope not in {ORGANISATION, EACH_MEMBER} and not await self._connection.fetchval(
            SQL["member"], scope, principal.organisation
        ):
            raise NotFound("member", scope)
        highest = self._limits.operator_value(name, scope)
        if highest is not None and value is not None and value > highest:
            raise InvalidRequest(
                f"value: the operator of this server limits {name} to {highest}",
                field="value",
                help_text="Choose a lower value, or ask the operator to raise the limit.",
            )
        await _write_limit(self._connection, principal.organisation, name, scope, value, by_operator=False)
        entry = audit.build_change_entry("limit.set", f"{name}/{scope}", {"value": value})
        await self.record(principal, entry)

    async def check_limit(self, principal: Principal, name: LimitName, *, adding: int = 1) -> None:
        await check_limit(self._connection, self._limits, principal, name, adding=adding)


async def check_limit(
    connection: Connection, limits: OrganisationLimits, principal: Principal, name: LimitName, *, adding: int = 1
) -> None:
    """Raises `OrganisationLimitExceeded` unless the transaction may add `adding` more."""
    applied = limits.find_applied(name, principal)
    if not applied or not adding:
        return
    await lock_limit(connection, limits.organisation, name)
    used = _load_used(await connection.fetch(SQL[f"used_{name}"], limits.organisation))
    for limit in applied:
        limit.check(used, adding=adding)


async def lock_limit(connection: Connection, organisation: str, name: LimitName) -> None:
    """Each limit has its own lock, because other locks are taken before some and after others."""
    await connection.execute(SQL["lock_limit"], f"limits/{name}/{organisation}")


async def _write_limit(
    connection: Connection, organisation: str, name: LimitName, scope: str, value: int | None, *, by_operator: bool
) -> None:
    if value is None:
        await connection.execute(SQL["unset_limit"], organisation, name, scope, by_operator)
    else:
        await connection.execute(SQL["set_limit"], organisation, name, scope, by_operator, value)


def _load_limits(organisation: str, rows: Sequence[Row], defaults: LimitValues) -> OrganisationLimits:
    stored = {
        by_operator: {
            (LimitName(row["name"]), row["scope"]): row["value"]
            for row in rows
            if row["by_operator"] is by_operator and row["name"] in _KNOWN_NAMES
        }
        for by_operator in (True, False)
    }
    return OrganisationLimits(organisation, operator={**defaults, **stored[True]}, own=stored[False])


def _load_used(rows: Sequence[Row]) -> Mapping[str | None, int]:
    return {row["member"]: row["used"] for row in rows}
