"""Write leases (C2): one writer at a time where two would meet. Pure.

A lease is a row in the database with a token that only ever grows. Its holder renews it while it lives; one that is
dead, or stopped, loses it when its time is over, and finds that out before it writes. Whoever waits stands in a queue.
"""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Final, Protocol

from footplate.domain.errors import Conflict, Unavailable

HOLD: Final = 30.0
"""Seconds that a holder may be silent."""
WAIT: Final = 300.0
"""Seconds that others wait for it, unless they say less."""


class LeaseHeld(Conflict):
    """Somebody else writes there, for longer than the one who waited wanted to wait."""

    code = "lease_held"

    def __init__(self, place: str, *, holder: str, since: datetime, waited: float, before: int) -> None:
        held = f"{since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        queue = f" {before} more wait in front." if before else ""
        super().__init__(
            f"Somebody else writes to {place}: {holder}, since {held}. Waited {waited:.0f} s for it.{queue}",
            help_text="Nothing was changed. Try again when that is done; one that died frees it by itself.",
        )
        self.holder = holder
        self.since = since


class LeaseLost(Unavailable):
    """We were silent for so long that another took it: what we were about to write is not written."""

    code = "lease_lost"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"This server's process was held up, and lost its turn to write to {place}.",
            retry_after=1,
            help_text="Nothing was changed by this request. Try again.",
        )


class HeldLease(Protocol):
    token: int

    async def check(self) -> None:
        """Right before something is written: it is still ours, for as long as `HOLD`. Raises `LeaseLost`."""


class WriteLeases(Protocol):
    def held(
        self,
        organisation: str,
        place: str,
        *,
        who: str,
        wait: float = WAIT,
        named: str | None = None,
        successor: bool = False,
    ) -> AbstractAsyncContextManager[HeldLease]:
        """Waits in the queue. `who`, and `named`, are for people: who writes, and where. `successor`: a holder with the
        same `who` is known to be dead, and is not waited for.

        Raises `LeaseHeld` when the wait is over.
        """
