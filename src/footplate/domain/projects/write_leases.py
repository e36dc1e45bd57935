"""Write leases, which allow at most one writer at a time for a branch or a directory.

A lease is a database row with a fencing token that only increases. The holder renews the lease; other writers wait in a
queue. A holder that is dead or suspended loses the lease when it expires, and detects the loss before it writes.
"""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Final, Protocol

from footplate.domain.errors import Conflict, Unavailable

LEASE_SECONDS: Final = 30.0
"""Seconds after which a lease that is not renewed expires."""
DEFAULT_WAIT_SECONDS: Final = 300.0
"""Default number of seconds to wait for a lease."""


class LeaseHeld(Conflict):
    """Another writer held the lease for longer than the caller was willing to wait."""

    code = "lease_held"

    def __init__(self, target: str, *, holder: str, since: datetime, waited: float, queue_length: int) -> None:
        since_text = f"{since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        queue = f" Other writers waiting ahead of this request: {queue_length}." if queue_length else ""
        super().__init__(
            f"Another writer uses {target}: {holder}, since {since_text}. The request waited {waited:.0f} s.{queue}",
            help_text="Nothing was changed. Retry later. If the other writer has crashed, its lease expires by itself.",
        )
        self.holder = holder
        self.since = since


class LeaseLost(Unavailable):
    """This process did not renew the lease in time, so nothing was written."""

    code = "lease_lost"

    def __init__(self, target: str) -> None:
        super().__init__(
            f"The server process was delayed and lost its lease on {target}.",
            retry_after=1,
            help_text="Nothing was changed by this request. Retry it.",
        )


class HeldLease(Protocol):
    token: int

    async def check(self) -> None:
        """Renew the lease for `LEASE_SECONDS` seconds right before a write. Raises `LeaseLost`."""


class WriteLeases(Protocol):
    def hold(
        self,
        organisation: str,
        target: str,
        *,
        owner: str,
        wait: float = DEFAULT_WAIT_SECONDS,
        display_name: str | None = None,
        successor: bool = False,
    ) -> AbstractAsyncContextManager[HeldLease]:
        """Wait in the queue for the lease, and hold it inside the context.

        `owner` and `display_name` describe the writer and the target in messages. `successor`: a holder with the same
        `owner` is known to be dead, so its lease is taken over without waiting. Raises `LeaseHeld` when the wait is
        over.
        """
