"""The pool of warm harness processes, which stay running between the turns of a session. Limited in number and time.

A warm process is only used by its own session, and only if the log shows that nothing has changed: the same number of
entries and the same configuration. While it waits it may not call models. It depends on the worker's lease, so a lost
worker has no warm processes.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Final

import structlog

from footplate.domain.running import Claim
from footplate.engine.lodging import Lodging

log = structlog.get_logger(__name__)

_LOOK_EVERY: Final = 0.5


class KeptHarnesses:
    def __init__(self, *, most: int, seconds: float, deadline: Callable[[], float]) -> None:
        """`deadline` returns the time until which this worker's commands may currently live."""
        self._most = most
        self._seconds = seconds
        self._deadline = deadline
        self._kept: OrderedDict[str, tuple[Claim, int, Lodging]] = OrderedDict()
        self._ending: dict[str, asyncio.Task[None]] = {}

    @property
    def welcome(self) -> bool:
        """Whether the pool is enabled."""
        return self._most > 0

    @property
    def room(self) -> int:
        """How many more fit before the oldest is evicted."""
        return self._most - len(self._kept)

    async def take(self, claim: Claim) -> Lodging | None:
        """Remove and return the warm process of the session. If it does not match this turn, end it and return None."""
        if (ending := self._ending.get(claim.session_id)) is not None:
            await asyncio.wait({ending})
        found = self._kept.pop(claim.session_id, None)
        if found is None:
            return None
        before, entries, lodging = found
        harness = lodging.harness
        same = (before.config, before.context) == (claim.config, claim.context)
        if claim.attempt == 1 and entries == claim.entries and same and harness is not None and harness.alive:
            return lodging
        await lodging.aclose()
        return None

    def put(self, claim: Claim, entries: int, lodging: Lodging) -> None:
        """Add a process. `entries` is the number of entries in the conversation at the end of the turn."""
        lodging.models.pause()
        lodging.begin()
        self._drop(claim.session_id)
        self._kept[claim.session_id] = (claim, entries, lodging)
        while len(self._kept) > self._most:
            self._drop(next(iter(self._kept)))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            for session_id in [*self._kept]:
                self._drop(session_id)
            await asyncio.gather(*self._ending.values())

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            for session_id, (_, _, lodging) in [*self._kept.items()]:
                if lodging.harness is None or not lodging.harness.alive or lodging.age >= self._seconds:
                    self._drop(session_id)
                else:
                    lodging.environment.renew(self._deadline())

    def _drop(self, session_id: str) -> None:
        """End a process in the background, so that the others do not lose their lease meanwhile."""
        if (found := self._kept.pop(session_id, None)) is not None:
            task = asyncio.create_task(_end(session_id, found[2], after=self._ending.get(session_id)))
            self._ending[session_id] = task
            task.add_done_callback(lambda _: self._ended(session_id, task))

    def _ended(self, session_id: str, task: "asyncio.Task[None]") -> None:
        if self._ending.get(session_id) is task:
            del self._ending[session_id]


async def _end(session_id: str, lodging: Lodging, *, after: "asyncio.Task[None] | None") -> None:
    """End a process. Failures are only logged, because no turn depends on it."""
    try:
        await lodging.aclose()
        if after is not None:
            await after
    except Exception:
        log.exception("warm process not ended", action="kept.not_ended", session=session_id)
