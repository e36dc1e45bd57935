"""Creates Redis clients with the timeouts that the `stream` package needs, and stops tasks that use them."""

import asyncio
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff

COMMAND_SECONDS: Final = 0.5
BLOCK_MILLISECONDS: Final = 1000
_READ_SECONDS: Final = BLOCK_MILLISECONDS / 1000 + 2
_FOREVER: Final = -1
_HEALTH_SECONDS: Final = 30
"""Interval after which a silently dead connection is noticed."""
_CANCEL_RETRY_SECONDS: Final = 0.5


def create_command_client(url: str) -> Redis:
    """Returns a client for commands that must not block for long. It retries once, for a connection that a restart
    closed.
    """
    return Redis.from_url(
        url,
        socket_timeout=COMMAND_SECONDS,
        socket_connect_timeout=COMMAND_SECONDS,
        retry=Retry(NoBackoff(), 1),
    )


def create_reader_client(url: str) -> Redis:
    """Returns a client for background readers. It reconnects for as long as it takes."""
    return Redis.from_url(
        url,
        socket_timeout=_READ_SECONDS,
        socket_connect_timeout=COMMAND_SECONDS,
        health_check_interval=_HEALTH_SECONDS,
        retry=Retry(ExponentialWithJitterBackoff(cap=1.0, base=0.02), _FOREVER),
    )


async def cancel_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks that use Redis, repeatedly until they end. redis-py sends with `asyncio.wait_for`, and in Python
    3.11 that loses a cancellation that arrives at the moment its work is done.
    """
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_CANCEL_RETRY_SECONDS)
