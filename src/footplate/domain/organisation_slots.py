"""Limits concurrent expensive work, and shares the slots fairly among organisations."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class OrganisationSlots:
    """Gives each organisation a share of the slots. Its further work waits until one of its own slots is free.

    A client that reads a patch slowly, or imports a long transcript, holds a slot for minutes.
    """

    def __init__(self, at_once: int, *, each: int | None = None) -> None:
        """`each` is the limit per organisation. Default: half of `at_once`."""
        self._at_once = asyncio.Semaphore(at_once)
        self._each = max(1, at_once // 2 if each is None else each)
        self._organisations: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def held(self, organisation: str) -> AsyncGenerator[None, None]:
        own = self._organisations.setdefault(organisation, asyncio.Semaphore(self._each))
        async with own, self._at_once:
            yield
