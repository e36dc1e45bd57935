"""Tasks that use Redis can be stopped reliably."""

import asyncio

import pytest

from footplate.stream import redis_connections

pytestmark = pytest.mark.timing


async def test_a_task_that_loses_a_cancellation_still_ends() -> None:
    sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def reads_on() -> None:
        await asyncio.wait_for(sent, 60)
        await asyncio.Event().wait()

    task = asyncio.create_task(reads_on())
    await asyncio.sleep(0.01)
    sent.set_result(None)  # Python 3.11 returns this result instead of the cancellation that follows
    async with asyncio.timeout(30):
        await redis_connections.cancel_tasks(task)
    assert task.cancelled()


async def test_a_completed_task_is_ignored() -> None:
    async def fails() -> None:
        raise ValueError

    task = asyncio.create_task(fails())
    await asyncio.wait({task})
    await redis_connections.cancel_tasks(task)
    await redis_connections.cancel_tasks()
    assert isinstance(task.exception(), ValueError)
