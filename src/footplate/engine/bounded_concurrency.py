"""Calls a function for many items, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def call_for_each(items: Iterable[T], function: Callable[[T], Awaitable[object]], *, concurrency: int) -> None:
    """Call the function for the items, in their order. After an error, no further call starts, and the error is raised
    when the calls that have started are done.
    """
    remaining, errors = iter(items), list[Exception]()

    async def call_for_next() -> None:
        for item in remaining:
            try:
                await function(item)
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)
            if errors:
                return

    await asyncio.gather(*(call_for_next() for _ in range(concurrency)))
    if errors:
        raise errors[0]
