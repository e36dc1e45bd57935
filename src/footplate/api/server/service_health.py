"""Checks what the API depends on, for `/readyz`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from footplate.domain.ports.api import OK, HealthReport

log = structlog.get_logger(__name__)

CHECK_SECONDS: Final = 2.0
_CACHE_SECONDS: Final = 1.0
_ESSENTIAL: Final = frozenset({"database"})
"""Without these the API can serve nothing. Without the others it loses only some functions."""
_PROBLEM: Final = "does not respond"
"""The whole text, because `/readyz` needs no key. The log has the reason."""

Check = Callable[[], Awaitable[object]]


class ApiHealth:
    """Checks all dependencies at once, each within `CHECK_SECONDS`. Requests within a second share one result."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self._lock = asyncio.Lock()
        self._checked_at = -_CACHE_SECONDS
        self._parts: dict[str, str] = {}

    async def check(self) -> HealthReport:
        async with self._lock:
            if time.monotonic() - self._checked_at >= _CACHE_SECONDS:
                states = await asyncio.gather(*(self._check_part(name) for name in self._checks))
                self._parts = dict(zip(self._checks, states, strict=True))
                self._checked_at = time.monotonic()
        return HealthReport(self._parts, is_ready=all(self._parts.get(name) == OK for name in _ESSENTIAL))

    async def _check_part(self, name: str) -> str:
        before = self._parts.get(name, OK)
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._checks[name]()
        except Exception as error:  # noqa: BLE001 - whatever a driver raises, the part cannot be used
            if before == OK:
                log.warning(
                    "a service that the API needs does not respond",
                    action="health.lost",
                    part=name,
                    reason=repr(error)[:500],
                )
            return _PROBLEM
        if before != OK:
            log.info("a service that the API needs responds again", action="health.restored", part=name)
        return OK
