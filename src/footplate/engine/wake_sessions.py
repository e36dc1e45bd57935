"""Wakes sessions after a commit that gave them work. A session that cannot be woken is found by the sweep."""

import asyncio
from collections.abc import Iterable
from typing import Final

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.ports.engine import Waker
from footplate.domain.sessions.turns import SessionToWake

log = structlog.get_logger(__name__)

_CONCURRENCY: Final = 8
"""More requests at once would only wait in Temporal."""
_MAX_HEALTHY: Final = 100


async def wake_sessions(waker: Waker, sessions: Iterable[SessionToWake]) -> None:
    """Wake the sessions, a few at a time. They are started in their order."""
    remaining = iter(sessions)

    async def wake_next() -> None:
        for organisation, session_id, priority, ends_when_idle in remaining:
            try:
                await waker.wake(organisation, session_id, ends_when_idle=ends_when_idle, priority=priority)
            except FootplateError as error:
                log.warning(
                    "session could not be woken; the sweep will wake it",
                    action="wake.failed",
                    session=session_id,
                    reason=error.message,
                )

    await asyncio.gather(*(wake_next() for _ in range(_CONCURRENCY)))


async def wake_overdue_sessions(waker: Waker, sessions: Iterable[SessionToWake]) -> None:
    """Wake the sessions that the sweep has found. Stops after many in a row whose turns only wait for a worker: then
    the workers are busy, and few wake signals were lost. The sweep chooses the sessions of each round at random.
    """
    healthy = 0
    remaining = iter(sessions)

    async def wake_next() -> None:
        nonlocal healthy
        for organisation, session_id, priority, _ in remaining:
            if healthy >= _MAX_HEALTHY:
                return
            if await waker.wake_overdue(organisation, session_id, priority=priority):
                log.info("session woken by the sweep", action="sweep.wake", session=session_id)
                healthy = 0
            else:
                healthy += 1

    await asyncio.gather(*(wake_next() for _ in range(_CONCURRENCY)))
