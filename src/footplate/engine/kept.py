"""What harnesses keep running between the turns of a session, within bounds of number and time.

It is only ever used by the session that it comes from, and only if the log says that nothing happened in between: the
same number of entries, the same configuration. While it waits it has no leave to ask models, and it lives by the
worker's lease like everything else: a worker that is lost has nothing kept.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from footplate.domain.ports import Kept
from footplate.domain.running import Claim, ModelGrant, OpenEnvironment

log = structlog.get_logger(__name__)

_LOOK_EVERY: Final = 0.5


@dataclass(slots=True)
class Lodging:
    """A kept harness, with the environment that it runs in and its leave to ask models."""

    environment: OpenEnvironment
    models: ModelGrant
    harness: Kept | None = None
    since: float = field(default_factory=time.monotonic)

    async def aclose(self) -> None:
        """The environment last: whatever the harness does not end, that does."""
        if self.harness is not None:
            harness, self.harness = self.harness, None
            with contextlib.suppress(Exception):
                await harness.aclose()
        try:
            await self.environment.aclose()
        finally:
            await self.models.aclose()


class KeptHarnesses:
    def __init__(self, *, most: int, seconds: float, deadline: Callable[[], float]) -> None:
        """`deadline`: until when this worker's commands may live, as of now."""
        self._most = most
        self._seconds = seconds
        self._deadline = deadline
        self._kept: OrderedDict[str, tuple[Claim, int, Lodging]] = OrderedDict()

    @property
    def welcome(self) -> bool:
        """Whether any is kept at all."""
        return self._most > 0

    async def take(self, claim: Claim) -> Lodging | None:
        """For this turn alone. One that does not fit is dead when this returns."""
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

    async def put(self, claim: Claim, entries: int, lodging: Lodging) -> None:
        """`entries`: how many the conversation has at the end of this turn."""
        lodging.models.pause()
        lodging.since = time.monotonic()
        self._kept[claim.session_id] = (claim, entries, lodging)
        while len(self._kept) > self._most:
            gone, (_, _, oldest) = self._kept.popitem(last=False)
            await _end(gone, oldest)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            left = [lodging for _, _, lodging in self._kept.values()]
            self._kept.clear()
            await asyncio.gather(*(lodging.aclose() for lodging in left), return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            for session_id, (_, _, lodging) in list(self._kept.items()):
                living = lodging.harness is not None and lodging.harness.alive
                if living and time.monotonic() - lodging.since < self._seconds:
                    lodging.environment.renew(self._deadline())
                elif self._kept.pop(session_id, None) is not None:
                    await _end(session_id, lodging)


async def _end(session_id: str, lodging: Lodging) -> None:
    """Whatever goes wrong is nobody's turn."""
    try:
        await lodging.aclose()
    except Exception:
        log.exception("not ended", action="kept.not_ended", session=session_id)
