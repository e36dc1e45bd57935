"""Renews this worker's lease in the database. A turn is stopped when the lease expires or another worker claims the
turn.

No command may outlive the lease, even if the machine is suspended. The worker therefore renews the lease in this order:

1. It notes the current time (CLOCK_BOOTTIME, which also advances while the machine is suspended).
2. It renews the lease in the database.
3. It sets the deadline of its commands to the noted time plus the lease duration.

The time is noted before the renewal, so the commands end before the lease in the database does. A turn whose deadline
has passed stays lost even if a later renewal succeeds, because another worker may have claimed the turn.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog

from footplate.domain.errors import Fenced, Unavailable
from footplate.domain.ports.engine import Claim, LeaseStore
from footplate.lease_clock import lease_clock

log = structlog.get_logger(__name__)

_RELEASE_INTERVAL_SECONDS: Final = 10.0
_FORGOTTEN_AFTER_SECONDS: Final = 30.0
"""Longer than a claim takes until the worker holds it."""


@dataclass(slots=True)
class HeldTurn:
    """A turn in this process. The callbacks must not block."""

    claim: Claim
    deadline: float
    on_renew: Callable[[float], None] = lambda _: None
    on_lost: Callable[[], object] = lambda: None
    on_control: Callable[[], None] = lambda: None
    lost: bool = False
    control_seq: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self) -> None:
        if self.lost or lease_clock() >= self.deadline:
            raise Fenced(f"This worker's lease on session {self.claim.session_id} has expired.")

    def mark_lost(self) -> None:
        if not self.lost:
            self.lost = True
            log.warning(
                "this worker lost its lease on a turn",
                action="turn.lost",
                session=self.claim.session_id,
                turn=self.claim.turn_id,
            )
            self.on_lost()


class WorkerLease:
    def __init__(self, store: LeaseStore, *, worker_id: str, host: str, lease_seconds: float) -> None:
        self.worker_id = worker_id
        self._store = store
        self._host = host
        self._lease_seconds = lease_seconds
        self._deadline = 0.0
        self._turns: dict[str, HeldTurn] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.renew()
        # This is the only log line that maps the holder of a session to a process.
        log.info("worker lease acquired", action="lease.held", worker=self.worker_id)
        task = asyncio.create_task(self._renew_periodically())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._store.end_lease(self.worker_id)

    @property
    def deadline(self) -> float:
        """The time until which this worker's commands may live."""
        return self._deadline

    def check(self) -> None:
        """Raise `Unavailable` without a valid lease, because a new turn would be lost before it began."""
        if lease_clock() >= self._deadline:
            raise Unavailable("This worker's lease has expired. It is renewed as soon as the database responds.")

    def add_turn(self, claim: Claim) -> HeldTurn:
        turn = HeldTurn(claim, self._deadline, control_seq=claim.control_seq)
        self._turns[claim.session_id] = turn
        return turn

    def find_turn(self, session_id: str) -> HeldTurn | None:
        return self._turns.get(session_id)

    def remove_turn(self, turn: HeldTurn) -> None:
        turn.done.set()
        if self._turns.get(turn.claim.session_id) is turn:
            del self._turns[turn.claim.session_id]

    async def renew(self) -> None:
        turns = list(self._turns.values())
        start = lease_clock()
        heads = await self._store.renew_lease(
            self.worker_id, self._host, self._lease_seconds, [turn.claim.session_id for turn in turns]
        )
        self._deadline = start + self._lease_seconds
        states = {head.session_id: head for head in heads}
        for turn in turns:
            head = states.get(turn.claim.session_id)
            if head is None or head.epoch != turn.claim.epoch or lease_clock() >= turn.deadline:
                turn.mark_lost()
                continue
            turn.deadline = self._deadline
            turn.on_renew(self._deadline)
            if head.control_seq > turn.control_seq:
                turn.control_seq = head.control_seq
                turn.on_control()

    async def release_forgotten(self) -> None:
        """Release turns that this worker has lost, in case that Temporal does not repeat them."""
        released = await self._store.release_forgotten(
            self.worker_id, list(self._turns), older_than=_FORGOTTEN_AFTER_SECONDS
        )
        for session_id in released:
            log.warning("a lost turn was released for the sweep", action="turn.released", session=session_id)

    async def _renew_periodically(self) -> None:
        next_release = lease_clock()
        while True:
            await asyncio.sleep(min(1.0, self._lease_seconds / 4))
            try:
                await self.renew()
                if lease_clock() >= next_release:
                    next_release = lease_clock() + _RELEASE_INTERVAL_SECONDS
                    await self.release_forgotten()
            except Exception as error:  # noqa: BLE001 - not renewing is always safe, and the next beat retries
                log.warning("worker lease could not be renewed; will retry", action="lease.failed", reason=repr(error))
                for turn in list(self._turns.values()):
                    if lease_clock() >= turn.deadline:
                        turn.mark_lost()
