"""Redis clients for the ways in which this package talks to Redis, which differ in how long they wait; their end."""

import asyncio
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff

COMMAND_SECONDS: Final = 0.5
BLOCK_MILLISECONDS: Final = 1000
_READ_SECONDS: Final = BLOCK_MILLISECONDS / 1000 + 2
_FOREVER: Final = -1
_HEALTH_SECONDS: Final = 30
"""A connection that died without a word is noticed by then."""
_HEARD_SECONDS: Final = 0.5


def short(url: str) -> Redis:
    """For commands that are not worth a wait. The one retry is for a connection that a restart left dead."""
    return Redis.from_url(
        url,
        socket_timeout=COMMAND_SECONDS,
        socket_connect_timeout=COMMAND_SECONDS,
        retry=Retry(NoBackoff(), 1),
    )


def patient(url: str) -> Redis:
    """For a background reader: it reconnects for as long as it takes."""
    return Redis.from_url(
        url,
        socket_timeout=_READ_SECONDS,
        socket_connect_timeout=COMMAND_SECONDS,
        health_check_interval=_HEALTH_SECONDS,
        retry=Retry(ExponentialWithJitterBackoff(cap=1.0, base=0.02), _FOREVER),
    )


async def stop(*tasks: asyncio.Task[None]) -> None:
    """End tasks that talk to Redis. They are told until they hear it: redis-py sends with `asyncio.wait_for`, and that
    of Python 3.11 loses a cancellation that comes in the very moment in which its work is done.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_HEARD_SECONDS)
