"""Starts turns that waited because a limit on concurrent turns was reached.

Every worker checks once a second, and right after a turn of a limited organisation has ended. Any worker can start a
turn, so a turn still starts if the worker that deferred it is lost.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog

from footplate.domain.ports.engine import DeferredTurnStore, Waker
from footplate.engine.wake_sessions import wake_sessions

log = structlog.get_logger(__name__)

_CHECK_SECONDS: Final = 1.0
_MIN_PAUSE_SECONDS: Final = 0.05
"""Turns that end within this time are handled together."""


class DeferredTurnStarter:
    def __init__(self, store: DeferredTurnStore, waker: Waker) -> None:
        self._store = store
        self._waker = waker
        self._check_requested = asyncio.Event()

    def check_soon(self) -> None:
        """Check now, because a turn has ended."""
        self._check_requested.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run(), name="deferred turns")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._check_requested.wait(), _CHECK_SECONDS)
            await asyncio.sleep(_MIN_PAUSE_SECONDS)
            self._check_requested.clear()
            try:
                await self._start_turns()
            except Exception:  # the next check must still run
                log.warning("deferred turns could not be started; will retry", action="limit.unchecked", exc_info=True)

    async def _start_turns(self) -> None:
        await wake_sessions(self._waker, await self._store.release_turns())
