"""Redis clients for the three ways in which this package talks to Redis; they differ in how long they wait."""

from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff

COMMAND_SECONDS: Final = 0.5
BLOCK_MILLISECONDS: Final = 1000
_READ_SECONDS: Final = BLOCK_MILLISECONDS / 1000 + 2
_FOREVER: Final = -1


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
        retry=Retry(ExponentialWithJitterBackoff(cap=1.0, base=0.02), _FOREVER),
    )
