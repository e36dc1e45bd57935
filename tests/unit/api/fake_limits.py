"""In-memory fakes of the limits of one organisation. Its counts belong to the caller as well."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from footplate.domain.organisations.limits import LimitName, LimitUse, OrganisationLimits, StreamLease
from footplate.domain.organisations.principals import Principal


@dataclass
class LimitWorld:
    limits: dict[tuple[LimitName, str], int] = field(default_factory=dict)
    used: Counter[LimitName] = field(default_factory=Counter)


class FakeLimitGuard:
    def __init__(self, world: LimitWorld) -> None:
        self._world = world

    async def check_request(self, principal: Principal) -> None:
        self._check(LimitName.REQUESTS_PER_SECOND, principal)
        self._world.used[LimitName.REQUESTS_PER_SECOND] += 1

    async def open_stream(self, principal: Principal) -> StreamLease:
        self._check(LimitName.STREAMS, principal)
        self._world.used[LimitName.STREAMS] += 1
        return _Lease(self._world)

    async def check_stored_bytes(self, principal: Principal, size: int) -> None:
        self._check(LimitName.STORED_BYTES, principal, adding=size)

    async def read_limits(self, principal: Principal) -> Sequence[LimitUse]:
        return [
            LimitUse(name, scope, value, self._world.used[name], principal.name if scope == principal.id else None)
            for (name, scope), value in self._world.limits.items()
        ]

    def _check(self, name: LimitName, principal: Principal, *, adding: int = 1) -> None:
        limits = OrganisationLimits(principal.organisation, own=self._world.limits)
        for limit in limits.find_applied(name, principal):
            limit.check({principal.id: self._world.used[name]}, adding=adding)


class _Lease:
    def __init__(self, world: LimitWorld) -> None:
        self._world = world

    def release(self) -> None:
        self._world.used[LimitName.STREAMS] -= 1


class FakeLimitUnit:
    limit_world: LimitWorld

    async def set_limit(self, principal: Principal, name: LimitName, scope: str, value: int | None) -> None:
        self.limit_world.limits.pop((name, scope), None)
        if value is not None:
            self.limit_world.limits[name, scope] = value
