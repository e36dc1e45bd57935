"""Wakes the workflows of webhook endpoints after a change of a session or of an endpoint.

Each process wakes the endpoints for the changes that it has committed itself. It knows which organisations have
endpoints, so a change in another one costs nothing. Many changes send one signal, because a flag in the database marks
an endpoint whose signal is on its way. The sweep finds the endpoints whose signal was lost.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.ports.engine import Chore
from footplate.domain.ports.webhooks import WebhookNotifier, WebhookStore
from footplate.engine.bounded_concurrency import call_for_each

log = structlog.get_logger(__name__)

ENDPOINTS_CHANGED: Final = "webhook-endpoints"
"""The nudge that tells workers that endpoints have changed."""
_REFRESH_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.05
"""Changes within this time are handled together."""
_CONCURRENCY: Final = 8


class WebhookSignals(Protocol):
    async def wake(self, organisation: str, endpoint_id: str) -> None: ...
    async def wake_overdue(self, organisation: str, endpoint_id: str) -> None: ...


class EndpointWaker(Chore, WebhookNotifier):
    def __init__(
        self,
        store: WebhookStore,
        signals: WebhookSignals,
        *,
        nudge: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`nudge` tells the workers that endpoints have changed."""
        self._store = store
        self._signals = signals
        self._nudge = nudge
        self._organisations: frozenset[str] = frozenset()
        self._refresh_at = 0.0
        self._announce = False
        self._changed: set[str] = set()
        self._requested = asyncio.Event()

    def notify_change(self, organisation: str) -> None:
        """Wake the endpoints of the organisation, after the commit of a change of one of its sessions."""
        if organisation in self._organisations:
            self._changed.add(organisation)
            self._requested.set()

    def endpoints_changed(self, organisation: str) -> None:
        self._changed.add(organisation)
        self._announce = True
        self.refresh_soon()

    def refresh_soon(self) -> None:
        """Read again which organisations have endpoints."""
        self._refresh_at = 0.0
        self._requested.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run(), name="webhook waker")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def run(self) -> None:
        """Wake the endpoints whose signal was lost. The sweep calls this."""
        await self._signal_all(await self._store.find_endpoints_to_wake(), self._signals.wake_overdue)

    async def _run(self) -> None:
        while True:
            try:
                await self._wake_changed()
            except Exception:  # the next change must still be handled
                log.warning("webhooks could not be woken; the sweep wakes them", action="webhook.down", exc_info=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._requested.wait(), _REFRESH_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS)
            self._requested.clear()

    async def _wake_changed(self) -> None:
        changed, self._changed = self._changed, set()
        if self._announce and self._nudge is not None:
            self._announce = False
            await self._nudge(ENDPOINTS_CHANGED)
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + _REFRESH_SECONDS
            self._organisations = await self._store.find_organisations()
        if changed:
            await self._signal_all(await self._store.mark_for_wake(sorted(changed)), self._signals.wake)

    async def _signal_all(
        self, endpoints: Iterable[tuple[str, str]], signal: Callable[[str, str], Awaitable[None]]
    ) -> None:
        async def signal_or_log(endpoint: tuple[str, str]) -> None:
            try:
                await signal(*endpoint)
            except FootplateError as error:
                log.warning(
                    "a webhook endpoint could not be woken; the sweep wakes it",
                    action="webhook.not_woken",
                    endpoint=endpoint[1],
                    reason=error.message,
                )

        await call_for_each(endpoints, signal_or_log, concurrency=_CONCURRENCY)
