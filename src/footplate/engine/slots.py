"""Prewarming: starts and connects the harness of a new session before its first input arrives.

This is only an optimisation. It runs on the worker that caches the session's workflow, where the first turn most likely
runs. The process belongs to the session, and is used only if it matches the turn exactly, as in the warm pool. Until
then it may not call models, depends on the worker's lease, and expires after a while. A turn that runs elsewhere, or
differs from the expectation, starts without it.
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
"""Seconds that a turn waits for a process that is being prepared. It has a head start, so waiting is faster."""


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
        """`pool` is the pool of prepared processes, limited in number and time. `deadline`: as in the pool."""
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
        """Start to prepare a session if there is room. Returns immediately and never fails."""
        if session_id in self._making or self._ready.room <= len(self._making):
            return
        work = self._make(organisation, session_id)
        # In its own context, because it outlives the activity that started it.
        task = asyncio.create_task(work, name=f"slot {session_id}", context=Context())
        self._making[session_id] = task
        self._queued.add(session_id)
        task.add_done_callback(lambda _: self._made(session_id))

    async def take(self, claim: Claim) -> Lodging | None:
        """Remove and return the prepared resources of this turn. Those that do not match are ended first."""
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
            # One at a time, so that a burst of new sessions does not delay sessions that have work to do.
            async with self._one:
                self._queued.discard(session_id)
                claim = await self._claims.outlook(organisation, session_id)
                # The CLI reads its working directory at the start, and only the first turn fixes the base commits.
                if claim is None or any(project.base is None for project in claim.config.projects):
                    return
                harness = self._harness(claim.config.harness)
                if isinstance(harness, Prepares):
                    await self._connect(claim, harness)
        except Exception as error:  # noqa: BLE001 - the turn starts without it, and reports its own failure
            log.info("session not prewarmed", action="slot.failed", session=session_id, reason=repr(error))

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
            log.info("session prewarmed", action="slot.ready", session=claim.session_id)

    async def _renew(self, lodging: Lodging) -> None:
        while True:
            lodging.environment.renew(self._deadline())
            await asyncio.sleep(_RENEWS_EVERY)
