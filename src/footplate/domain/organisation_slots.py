"""Places for work that is expensive for the host, shared fairly: no organisation takes all of them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class OrganisationSlots:
    """Who reads a patch slowly, or imports a long transcript, holds a place for minutes. So an organisation has only
    some of the places, and what it asks for beyond waits until one of its own is free.
    """

    def __init__(self, at_once: int, *, each: int | None = None) -> None:
        """`each`: of one organisation; half of them if it is not given."""
        self._at_once = asyncio.Semaphore(at_once)
        self._each = max(1, at_once // 2 if each is None else each)
        self._organisations: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def held(self, organisation: str) -> AsyncGenerator[None, None]:
        own = self._organisations.setdefault(organisation, asyncio.Semaphore(self._each))
        async with own, self._at_once:
            yield
