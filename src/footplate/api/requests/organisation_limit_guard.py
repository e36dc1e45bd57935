"""Checks the limits of organisations and members for the API. The limits are in the database; what is used is counted
there, or in Redis.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from footplate.domain.errors import FootplateError
from footplate.domain.organisations.limits import (
    EACH_MEMBER,
    ORGANISATION,
    AppliedLimit,
    LimitName,
    LimitUse,
    OrganisationLimits,
    StreamLease,
)
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, permissions_of
from footplate.telemetry import metrics

_COUNTED_IN_REDIS: Final = frozenset({LimitName.REQUESTS_PER_SECOND, LimitName.STREAMS})
_MAX_COUNT_SECONDS: Final = 2.0
"""How long a scrape waits for the database."""


class StoredLimits(Protocol):
    async def load(self, organisation: str, *, use_cache: bool = True) -> OrganisationLimits: ...

    async def count_used(self, organisation: str, name: LimitName) -> Mapping[str | None, int]:
        """Return what is used, by member."""

    async def find_limited_organisations(self) -> Sequence[str]: ...

    async def load_member_names(self, organisation: str, ids: Sequence[str]) -> Mapping[str, str]: ...


class RequestRates(Protocol):
    async def count_request(self, applied: Sequence[AppliedLimit]) -> None:
        """Raise `LimitReached` for a request above one of the limits."""

    async def read_rate(self, limit: AppliedLimit) -> float | None: ...


class StreamCounts(Protocol):
    async def open_stream(self, principal: Principal, applied: Sequence[AppliedLimit]) -> StreamLease: ...

    async def count_open(self, limit: AppliedLimit) -> int | None: ...

    def renewing(self, is_limited: Callable[[str], Awaitable[bool]]) -> AbstractAsyncContextManager[None]:
        """Renew the leases of the open streams in organisations with a limit."""


class OrganisationLimitGuard:
    def __init__(self, store: StoredLimits, rates: RequestRates, streams: StreamCounts) -> None:
        self._store = store
        self._rates = rates
        self._streams = streams

    def renewing_stream_leases(self) -> AbstractAsyncContextManager[None]:
        async def is_limited(organisation: str) -> bool:
            return (await self._store.load(organisation)).has_limit(LimitName.STREAMS)

        return self._streams.renewing(is_limited)

    async def check_request(self, principal: Principal) -> None:
        if applied := await self._find_applied(LimitName.REQUESTS_PER_SECOND, principal):
            await self._rates.count_request(applied)

    async def open_stream(self, principal: Principal) -> StreamLease:
        return await self._streams.open_stream(principal, await self._find_applied(LimitName.STREAMS, principal))

    async def check_stored_bytes(self, principal: Principal, size: int) -> None:
        if applied := await self._find_applied(LimitName.STORED_BYTES, principal):
            used = await self._store.count_used(principal.organisation, LimitName.STORED_BYTES)
            for limit in applied:
                limit.check(used, adding=size)

    async def read_limits(self, principal: Principal) -> Sequence[LimitUse]:
        limits = await self._store.load(principal.organisation, use_cache=False)  # what was just set must be shown
        sees_all = Permission.MANAGE_MEMBERS in permissions_of(principal.roles)
        others = {scope for _, scope in limits.own if scope not in {ORGANISATION, EACH_MEMBER}} if sees_all else set()
        ids = others | {principal.id}
        names = await self._store.load_member_names(principal.organisation, sorted(ids))
        members = [Principal(principal.organisation, each, names.get(each, each), frozenset()) for each in sorted(ids)]
        found: list[LimitUse] = []
        for name in LimitName:
            used = await self._count_in_database(limits, name)
            # The use of the organisation would reveal how many sessions are hidden from the caller.
            total = await self._count(limits, name, used) if sees_all else None
            found.append(limits.describe_use(name, ORGANISATION, total))
            if limits.value(name, EACH_MEMBER) is not None:
                found.append(limits.describe_use(name, EACH_MEMBER))
            for member in members:
                value = limits.value(name, member.id)
                if value is not None and (member.id == principal.id or (name, member.id) in limits.own):
                    member_used = await self._count(limits, name, used, member)
                    found.append(limits.describe_use(name, member.id, member_used, member.name))
        return found

    async def read_all(self) -> Mapping[tuple[str, str], LimitUse]:
        """Returns the limits of organisations as a whole, with their use, by organisation and name."""
        found: dict[tuple[str, str], LimitUse] = {}
        for organisation in await self._store.find_limited_organisations():
            limits = await self._store.load(organisation)
            for name in LimitName:
                if (value := limits.value(name, ORGANISATION)) is not None:
                    used = await self._count(limits, name, await self._count_in_database(limits, name))
                    found[organisation, name.value] = LimitUse(name, ORGANISATION, value, used)
        return found

    async def _find_applied(self, name: LimitName, principal: Principal) -> Sequence[AppliedLimit]:
        return (await self._store.load(principal.organisation)).find_applied(name, principal)

    async def _count_in_database(self, limits: OrganisationLimits, name: LimitName) -> Mapping[str | None, int]:
        return {} if name in _COUNTED_IN_REDIS else await self._store.count_used(limits.organisation, name)

    async def _count(
        self,
        limits: OrganisationLimits,
        name: LimitName,
        used: Mapping[str | None, int],
        member: Principal | None = None,
    ) -> float | None:
        """Returns what a member uses, or the organisation. `used`: what is counted in the database, by member."""
        value = limits.value(name, ORGANISATION if member is None else member.id)
        if name not in _COUNTED_IN_REDIS:
            return sum(used.values()) if member is None else used.get(member.id, 0)
        if value is None:
            return None
        limit = AppliedLimit(name, value, limits.organisation, member)
        is_rate = name is LimitName.REQUESTS_PER_SECOND
        return await (self._rates.read_rate(limit) if is_rate else self._streams.count_open(limit))


def export_limits(guard: OrganisationLimitGuard, loop: asyncio.AbstractEventLoop) -> None:
    """Exports limits and their use. The metrics server runs in a thread; without a scrape, nothing is read."""
    uses: Mapping[tuple[str, str], LimitUse] = {}

    def read_limits() -> Mapping[tuple[str, ...], float]:
        nonlocal uses
        reading = asyncio.run_coroutine_threadsafe(guard.read_all(), loop)
        try:
            uses = reading.result(_MAX_COUNT_SECONDS)
        except (FootplateError, TimeoutError):
            reading.cancel()
            uses = {}
        return {labels: use.value for labels, use in uses.items() if use.value is not None}

    metrics.LIMITS.read_values = read_limits
    # Prometheus reads this gauge after the one above.
    metrics.LIMITS_USED.read_values = lambda: {labels: use.used for labels, use in uses.items() if use.used is not None}
