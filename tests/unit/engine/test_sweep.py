"""The sweep: urgent jobs do not wait for those that take minutes, and many waiting turns cost little."""

import asyncio
from collections.abc import Sequence

import pytest

from footplate.domain.sessions.turns import SessionToWake
from footplate.engine.temporal.activities import SweepActivities

pytestmark = pytest.mark.timing


class Store:
    def __init__(self, *overdue: SessionToWake) -> None:
        self.overdue = overdue

    async def find_sessions_to_wake(self, **_: float) -> Sequence[SessionToWake]:
        return self.overdue

    async def delete_stale_rows(self) -> None: ...


class Waker:
    def __init__(self, *lost: str) -> None:
        self.lost = lost
        self.asked: list[tuple[str, int | None]] = []

    async def wake(
        self, organisation: str, session_id: str, *, ends_when_idle: bool = False, priority: int | None = None
    ) -> None: ...

    async def wake_overdue(self, organisation: str, session_id: str, *, priority: int | None = None) -> bool:
        self.asked.append((session_id, priority))
        return session_id in self.lost

    async def end_wait(self, organisation: str, session_id: str) -> None: ...

    async def prepare(self, organisation: str, session_id: str) -> None: ...


class Archiving:
    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()


class Sealing:
    def __init__(self) -> None:
        self.runs = 0

    async def run(self) -> None:
        self.runs += 1


async def test_sealing_continues_while_archiving_takes_long() -> None:
    sealing = Sealing()
    sweep = SweepActivities(Store(), Waker(), [Archiving()], urgent=[sealing])
    for _ in range(3):
        await sweep.sweep()
        await asyncio.sleep(0.01)
    await sweep.aclose()
    assert sealing.runs == 3


async def test_the_sweep_does_not_ask_about_every_turn_that_waits_for_a_worker() -> None:
    waker = Waker("lost")
    waiting = [SessionToWake("org", f"waiting-{number}", 4) for number in range(500)]
    await SweepActivities(Store(*waiting[:50], SessionToWake("org", "lost"), *waiting[50:]), waker).sweep()
    assert ("lost", None) in waker.asked
    assert 150 <= len(waker.asked) < 170
    assert ("waiting-0", 4) in waker.asked


async def test_the_sweep_wakes_all_sessions_that_were_lost() -> None:
    lost = [f"lost-{number}" for number in range(500)]
    waker = Waker(*lost)
    await SweepActivities(Store(*(SessionToWake("org", session_id) for session_id in lost)), waker).sweep()
    assert len(waker.asked) == 500
