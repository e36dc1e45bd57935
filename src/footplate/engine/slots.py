"""Slots: a session that was just created has its harness started and connected before anybody asks it anything.

Only ever an accelerator. The worker that makes it is the one that has the session's workflow at hand, where its first
turn most likely goes. A slot is the session's own, and used only if it fits the turn in every way (`kept.py`). Until
then it has no leave to ask models, it lives by the worker's lease, and when its time is over it is gone. A turn that
goes elsewhere, or is unlike what was expected, starts as if there were none.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextvars import Context
from typing import Final

import structlog

from footplate.domain.ports import Ahead, Harness, Prepares
from footplate.domain.running import Claim, ClaimStore, Environments, ModelAccess
from footplate.engine.conversations import Conversations
from footplate.engine.kept import KeptHarnesses
from footplate.engine.lodging import Lodging, lodge

log = structlog.get_logger(__name__)

_RENEWS_EVERY: Final = 0.5
_PATIENCE: Final = 20.0
"""Seconds that a turn waits for a slot that is being connected. It was begun before, so it is the quicker way."""


class Slots:
    def __init__(
        self,
        ready: KeptHarnesses,
        *,
        claims: ClaimStore,
        conversations: Conversations,
        environments: Environments,
        models: ModelAccess,
        harness: Callable[[str], Harness],
        deadline: Callable[[], float],
    ) -> None:
        """`ready`: where they wait, with their bounds of number and time. `deadline`: of this worker's commands."""
        self._ready = ready
        self._claims = claims
        self._conversations = conversations
        self._environments = environments
        self._models = models
        self._harness = harness
        self._deadline = deadline
        self._making: dict[str, asyncio.Task[None]] = {}
        self._queued: set[str] = set()
        self._one = asyncio.Semaphore(1)

    def prepare(self, organisation: str, session_id: str) -> None:
        """Begin with one, if there is room. Returns at once and never fails."""
        if session_id in self._making or self._ready.room <= len(self._making):
            return
        work = self._make(organisation, session_id)
        # In a context of its own: it outlives the activity that asked for it.
        task = asyncio.create_task(work, name=f"slot {session_id}", context=Context())
        self._making[session_id] = task
        self._queued.add(session_id)
        task.add_done_callback(lambda _: self._made(session_id))

    async def take(self, claim: Claim) -> Lodging | None:
        """For this turn alone; one that does not fit is dead when this returns."""
        task = self._making.get(claim.session_id)
        if task is not None:
            if claim.session_id not in self._queued:
                await asyncio.wait({task}, timeout=_PATIENCE)
            task.cancel()
            await asyncio.wait({task})
        return await self._ready.take(claim)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._ready.running():
            try:
                yield
            finally:
                left = [*self._making.values()]
                for task in left:
                    task.cancel()
                await asyncio.gather(*left, return_exceptions=True)

    def _made(self, session_id: str) -> None:
        self._making.pop(session_id, None)
        self._queued.discard(session_id)

    async def _make(self, organisation: str, session_id: str) -> None:
        try:
            # One after the other: a burst of new sessions does not hold up those that already have something to do.
            async with self._one:
                self._queued.discard(session_id)
                claim = await self._claims.outlook(organisation, session_id)
                # A program reads its working directory when it starts; what a tree begins with is its turn's to say.
                if claim is None or any(project.base is None for project in claim.config.projects):
                    return
                harness = self._harness(claim.config.harness)
                if isinstance(harness, Prepares):
                    await self._connect(claim, harness)
        except Exception as error:  # noqa: BLE001 - whatever it is, the turn starts without, and tells if it fails too
            log.info("no slot", action="slot.failed", session=session_id, reason=repr(error))

    async def _connect(self, claim: Claim, harness: Prepares) -> None:
        history = await self._conversations.load(claim)
        lodging = await lodge(self._environments, self._models, claim, deadline=self._deadline())
        lodging.models.pause()
        renewing = asyncio.create_task(self._renew(lodging))
        try:
            lodging.harness = await harness.prepare(
                Ahead(
                    session_id=claim.session_id,
                    config=claim.config,
                    history=history,
                    environment=lodging.environment,
                    endpoints=lodging.models.endpoints,
                )
            )
        finally:
            renewing.cancel()
            if lodging.harness is None:
                await lodging.aclose()
        if lodging.harness is not None:
            self._ready.put(claim, claim.entries, lodging)
            log.info("slot ready", action="slot.ready", session=claim.session_id)

    async def _renew(self, lodging: Lodging) -> None:
        while True:
            lodging.environment.renew(self._deadline())
            await asyncio.sleep(_RENEWS_EVERY)
