"""Wakes sessions after a commit that gave them work. A session that cannot be woken is found by the sweep."""

import itertools
from collections.abc import Iterable
from typing import Final

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.ports.engine import Waker
from footplate.domain.sessions.turns import SessionToWake
from footplate.engine.bounded_concurrency import call_for_each

log = structlog.get_logger(__name__)

_CONCURRENCY: Final = 8
"""More requests at once would only wait in Temporal."""
_MAX_HEALTHY: Final = 100


async def wake_sessions(waker: Waker, sessions: Iterable[SessionToWake]) -> None:
    """Wake the sessions, a few at a time. They are started in their order."""

    async def wake(session: SessionToWake) -> None:
        organisation, session_id, priority, ends_when_idle = session
        try:
            await waker.wake(organisation, session_id, ends_when_idle=ends_when_idle, priority=priority)
        except FootplateError as error:
            log.warning(
                "session could not be woken; the sweep will wake it",
                action="wake.failed",
                session=session_id,
                reason=error.message,
            )

    await call_for_each(sessions, wake, concurrency=_CONCURRENCY)


async def wake_overdue_sessions(waker: Waker, sessions: Iterable[SessionToWake]) -> None:
    """Wake the sessions that the sweep has found. Stops after many in a row whose turns only wait for a worker: then
    the workers are busy, and few wake signals were lost. The sweep chooses the sessions of each round at random.
    """
    healthy = 0

    async def wake(session: SessionToWake) -> None:
        nonlocal healthy
        organisation, session_id, priority, _ = session
        if await waker.wake_overdue(organisation, session_id, priority=priority):
            log.info("session woken by the sweep", action="sweep.wake", session=session_id)
            healthy = 0
        else:
            healthy += 1

    chosen = itertools.takewhile(lambda _: healthy < _MAX_HEALTHY, sessions)
    await call_for_each(chosen, wake, concurrency=_CONCURRENCY)
