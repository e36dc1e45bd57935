"""The urgent jobs of the sweep do not wait for jobs that take minutes."""

import asyncio

import pytest

from footplate.engine.temporal.activities import SweepActivities

pytestmark = pytest.mark.timing


class Store:
    async def find_sessions_to_wake(self, **_: float) -> list[tuple[str, str]]:
        return []

    async def delete_stale_rows(self) -> None: ...


class Waker:
    async def wake(self, organisation: str, session_id: str, *, ends_when_idle: bool = False) -> None: ...

    async def wake_overdue(self, organisation: str, session_id: str) -> None: ...

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
