"""Slow clients of one organisation do not block the diffs and bundles of others."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from footplate.domain.organisations.fair_limiter import OrganisationLimiter

pytestmark = pytest.mark.timing


async def test_one_organisation_does_not_take_all_slots() -> None:
    slots = OrganisationLimiter(4)
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(slots.acquire_slot("slow"))
        third = asyncio.create_task(held.enter_async_context(slots.acquire_slot("slow")))
        await asyncio.sleep(0.01)
        assert not third.done()
        async with asyncio.timeout(5), slots.acquire_slot("other"), slots.acquire_slot("other"):
            pass
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)
    async with asyncio.timeout(5), slots.acquire_slot("slow"), slots.acquire_slot("slow"):
        pass


async def test_the_total_number_of_slots_is_limited() -> None:
    slots = OrganisationLimiter(2)
    async with slots.acquire_slot("a"), slots.acquire_slot("b"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), slots.acquire_slot("c"):
                pass
