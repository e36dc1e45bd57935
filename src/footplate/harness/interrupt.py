"""Work that a person may stop."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """A person asked the turn to stop."""


async def unless_interrupted(interrupt: asyncio.Event, work: Coroutine[None, None, T]) -> T:
    """Finish the work, or stop it as soon as the interrupt is set. Work that is done counts as done."""
    task = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(interrupt.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await _cancel(task)
            if task.cancelled() or task.exception() is not None:
                raise Interrupted
        return task.result()
    finally:
        stop.cancel()
        # Reached with the task alive when the turn itself is cancelled: nothing may outlive it.
        if not task.done():
            await _cancel(task)


async def _cancel(task: asyncio.Future[T]) -> None:
    task.cancel()
    await asyncio.wait({task})
