"""Prewarming: starts the harness process of a new session before the session's first input arrives.

Prewarming runs on the worker that has the session's workflow cached, because the first turn most likely runs there. The
first turn uses the process only if the conversation and configuration match exactly. Otherwise the turn starts its own
process. An unused process cannot call models, and ends with the worker's lease or after a time limit.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextvars import Context
from typing import Final

import structlog

from footplate.domain.ports.engine import Claim, ClaimStore, Environments, ModelAccess
from footplate.domain.ports.harness import Harness, SupportsPrepare, UpcomingTurn
from footplate.engine.conversation_cache import ConversationCache
from footplate.engine.turn_resources import TurnResources, open_turn_resources
from footplate.engine.warm.warm_pool import WarmPool

log = structlog.get_logger(__name__)

_RENEW_INTERVAL: Final = 0.5
_MAX_WAIT: Final = 20.0
"""Seconds that a turn waits for a process that is being prepared. It has a head start, so waiting is faster."""


class Prewarmer:
    def __init__(
        self,
        pool: WarmPool,
        *,
        claims: ClaimStore,
        conversations: ConversationCache,
        environments: Environments,
        models: ModelAccess,
        harness: Callable[[str], Harness],
        deadline: Callable[[], float],
    ) -> None:
        """`pool` limits the number and idle time of prepared processes. `deadline`: as in the pool."""
        self._pool = pool
        self._claims = claims
        self._conversations = conversations
        self._environments = environments
        self._models = models
        self._harness = harness
        self._deadline = deadline
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._queued: set[str] = set()
        self._one_at_a_time = asyncio.Semaphore(1)

    def prepare(self, organisation: str, session_id: str) -> None:
        """Start to prepare a session if there is room. Returns immediately and never fails."""
        if session_id in self._tasks or self._pool.free_slots <= len(self._tasks):
            return
        work = self._prewarm(organisation, session_id)
        # In its own context, because it outlives the activity that started it.
        task = asyncio.create_task(work, name=f"slot {session_id}", context=Context())
        self._tasks[session_id] = task
        self._queued.add(session_id)
        task.add_done_callback(lambda _: self._forget_task(session_id))

    async def acquire(self, claim: Claim) -> TurnResources | None:
        """Remove and return the prepared resources of this turn. Those that do not match are ended first."""
        task = self._tasks.get(claim.session_id)
        if task is not None:
            if claim.session_id not in self._queued:
                await asyncio.wait({task}, timeout=_MAX_WAIT)
            task.cancel()
            await asyncio.wait({task})
        return await self._pool.acquire(claim)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._pool.running():
            try:
                yield
            finally:
                tasks = [*self._tasks.values()]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _forget_task(self, session_id: str) -> None:
        self._tasks.pop(session_id, None)
        self._queued.discard(session_id)

    async def _prewarm(self, organisation: str, session_id: str) -> None:
        try:
            # One at a time, so that a burst of new sessions does not delay sessions that have work to do.
            async with self._one_at_a_time:
                self._queued.discard(session_id)
                claim = await self._claims.predict_next_turn(organisation, session_id)
                # The CLI reads its working directory at the start. Only the first turn fixes the base commits, and runs
                # the setups before anything else. Files are restored only under the claim of a turn.
                if (
                    claim is None
                    or claim.files.snapshots
                    or any(project.base is None or project.setup is not None for project in claim.config.projects)
                ):
                    return
                harness = self._harness(claim.config.harness)
                if isinstance(harness, SupportsPrepare):
                    await self._start_process(claim, harness)
        except Exception as error:  # noqa: BLE001 - the turn starts without it, and reports its own failure
            log.info("session could not be prewarmed", action="slot.failed", session=session_id, reason=repr(error))

    async def _start_process(self, claim: Claim, harness: SupportsPrepare) -> None:
        history = await self._conversations.load(claim)
        resources = await open_turn_resources(self._environments, self._models, claim, deadline=self._deadline())
        resources.models.pause()
        renewing = asyncio.create_task(self._renew(resources))
        try:
            resources.warm_process = await harness.prepare(
                UpcomingTurn(
                    session_id=claim.session_id,
                    config=claim.config,
                    history=history,
                    environment=resources.environment,
                    endpoints=resources.models.endpoints,
                )
            )
        finally:
            renewing.cancel()
            if resources.warm_process is None:
                await resources.aclose()
        if resources.warm_process is not None:
            self._pool.add(claim, claim.entries, resources)
            log.info("session prewarmed", action="slot.ready", session=claim.session_id)

    async def _renew(self, resources: TurnResources) -> None:
        while True:
            resources.environment.renew(self._deadline())
            await asyncio.sleep(_RENEW_INTERVAL)
