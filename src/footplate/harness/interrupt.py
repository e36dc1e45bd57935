"""Runs an awaitable of a turn, and cancels it if the user interrupts the turn."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """The user asked the turn to stop."""


async def unless_interrupted(interrupt: asyncio.Event, work: Coroutine[None, None, T]) -> T:
    """Finishes the work, or cancels it when the interrupt is set. Work that completes anyway counts as done."""
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
        # The task is still running here if the turn itself was cancelled. Nothing may outlive the turn.
        if not task.done():
            await _cancel(task)


async def _cancel(task: asyncio.Future[T]) -> None:
    task.cancel()
    await asyncio.wait({task})
