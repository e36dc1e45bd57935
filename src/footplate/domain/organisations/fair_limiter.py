"""Limits the number of concurrent expensive operations, and shares the slots fairly among organisations."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class OrganisationLimiter:
    """Gives each organisation a share of the slots. Its further work waits until one of its own slots is free.

    A client that reads a patch slowly, or imports a long transcript, holds a slot for minutes.
    """

    def __init__(self, max_concurrent: int, *, max_per_organisation: int | None = None) -> None:
        """`max_per_organisation` is the limit per organisation. Default: half of `max_concurrent`."""
        self._all_slots = asyncio.Semaphore(max_concurrent)
        self._max_per_organisation = max(
            1, max_concurrent // 2 if max_per_organisation is None else max_per_organisation
        )
        self._organisations: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def acquire_slot(self, organisation: str) -> AsyncGenerator[None, None]:
        organisation_slots = self._organisations.setdefault(organisation, asyncio.Semaphore(self._max_per_organisation))
        async with organisation_slots, self._all_slots:
            yield
