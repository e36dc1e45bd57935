"""The pool of warm harness processes, which keep running between the turns of a session.

The number of processes and the idle time of each process are limited. A warm process is used only by its own session,
and only if the conversation and the configuration have not changed. While it waits, the process may not call models,
and it ends when the worker's lease ends.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from typing import Final

import structlog

from footplate.domain.ports.engine import Claim, Nudges
from footplate.engine.turn_resources import TurnResources

log = structlog.get_logger(__name__)

_CHECK_INTERVAL: Final = 0.5


class WarmPool:
    def __init__(
        self,
        *,
        max_processes: int,
        max_idle_seconds: float,
        deadline: Callable[[], float],
        nudges: Nudges | None = None,
    ) -> None:
        """`deadline` returns the time until which this worker's commands may currently live. A nudge of an idle session
        means that it has ended; without `nudges`, its process ends after its idle time.
        """
        self._nudges = nudges
        self._max_processes = max_processes
        self._max_idle_seconds = max_idle_seconds
        self._deadline = deadline
        self._idle: OrderedDict[str, tuple[Claim, int, TurnResources]] = OrderedDict()
        self._watches: dict[str, ExitStack] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether the pool is enabled."""
        return self._max_processes > 0

    @property
    def free_slots(self) -> int:
        """How many more fit before the oldest is evicted."""
        return self._max_processes - len(self._idle)

    async def acquire(self, claim: Claim) -> TurnResources | None:
        """Remove and return the warm process of the session. If it does not match this turn, end it and return None."""
        if (closing := self._closing.get(claim.session_id)) is not None:
            await asyncio.wait({closing})
        found = self._remove(claim.session_id)
        if found is None:
            return None
        last_claim, entries, resources = found
        process = resources.warm_process
        is_same_setup = (last_claim.config, last_claim.context) == (claim.config, claim.context)
        if claim.attempt == 1 and entries == claim.entries and is_same_setup and process is not None and process.alive:
            return resources
        await resources.aclose()
        return None

    def add(self, claim: Claim, entries: int, resources: TurnResources) -> None:
        """Add a process. `entries` is the number of entries in the conversation at the end of the turn."""
        resources.models.pause()
        resources.start_waiting()
        self._evict(claim.session_id)
        self._idle[claim.session_id] = (claim, entries, resources)
        if self._nudges is not None:
            watch = self._watches[claim.session_id] = ExitStack()
            watch.enter_context(self._nudges.watch(claim.session_id, lambda: self._evict(claim.session_id)))
        while len(self._idle) > self._max_processes:
            self._evict(next(iter(self._idle)))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._check_periodically())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            for session_id in [*self._idle]:
                self._evict(session_id)
            await asyncio.gather(*self._closing.values())

    async def _check_periodically(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            for session_id, (_, _, resources) in [*self._idle.items()]:
                if (
                    resources.warm_process is None
                    or not resources.warm_process.alive
                    or resources.waiting_seconds >= self._max_idle_seconds
                ):
                    self._evict(session_id)
                else:
                    resources.environment.renew(self._deadline())

    def _evict(self, session_id: str) -> None:
        """End a process in the background, so that the others do not lose their lease meanwhile."""
        if (found := self._remove(session_id)) is not None:
            task = asyncio.create_task(_close(session_id, found[2], after=self._closing.get(session_id)))
            self._closing[session_id] = task
            task.add_done_callback(lambda _: self._forget_closed(session_id, task))

    def _remove(self, session_id: str) -> tuple[Claim, int, TurnResources] | None:
        if (watch := self._watches.pop(session_id, None)) is not None:
            watch.close()
        return self._idle.pop(session_id, None)

    def _forget_closed(self, session_id: str, task: "asyncio.Task[None]") -> None:
        if self._closing.get(session_id) is task:
            del self._closing[session_id]


async def _close(session_id: str, resources: TurnResources, *, after: "asyncio.Task[None] | None") -> None:
    """End a process. Failures are only logged, because no turn depends on it."""
    try:
        await resources.aclose()
        if after is not None:
            await after
    except Exception:
        log.exception("warm process could not be ended", action="kept.not_ended", session=session_id)
