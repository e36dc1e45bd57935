"""A function is called for many items, a few at a time, and an error stops further calls."""

import asyncio

import pytest

from footplate.engine.bounded_concurrency import call_for_each

pytestmark = pytest.mark.timing


async def test_items_are_started_in_their_order_and_a_few_at_a_time() -> None:
    started: list[int] = []
    running = most = 0

    async def call(item: int) -> None:
        nonlocal running, most
        started.append(item)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await call_for_each(range(20), call, concurrency=3)
    assert started == [*range(20)]
    assert most == 3


async def test_after_an_error_no_further_call_starts_and_the_others_end() -> None:
    started: list[int] = []
    ended: list[int] = []

    async def call(item: int) -> None:
        started.append(item)
        if item == 1:
            raise ValueError(item)
        for _ in range(3):
            await asyncio.sleep(0)
        ended.append(item)

    with pytest.raises(ValueError, match="1"):
        await call_for_each(range(20), call, concurrency=3)
    assert (started, ended) == ([0, 1, 2], [0, 2])
