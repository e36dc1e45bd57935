"""A lazy environment is opened by its first use: once, with the newest deadline, and never after the turn."""

import asyncio
from pathlib import Path

import pytest

from footplate.domain.errors import Fenced
from footplate.domain.ports.engine import OpenEnvironment
from footplate.engine.lazy_environment import LazyEnvironment

pytestmark = pytest.mark.timing


class Recorded:
    """An environment that records calls."""

    root = "/tree"
    was_used = True

    def __init__(self) -> None:
        self.trees = {"scratch": Path("/tree")}
        self.deadlines: list[float] = []
        self.closed = 0

    def renew(self, deadline: float) -> None:
        self.deadlines.append(deadline)

    async def read(self, path: str) -> bytes:
        return path.encode()

    async def aclose(self) -> None:
        self.closed += 1


class Opening:
    def __init__(self) -> None:
        self.environment = Recorded()
        self.deadlines: list[float] = []
        self.failures = 0
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.lost = False

    def check_lease(self) -> None:
        if self.lost:
            raise Fenced("Another worker holds the session.")

    def late(self, deadline: float = 1.0) -> LazyEnvironment:
        return LazyEnvironment(self, deadline, self.check_lease)

    async def __call__(self, deadline: float) -> OpenEnvironment:
        self.deadlines.append(deadline)
        self.began.set()
        await self.may_end.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("no space left")
        return self.environment  # pyrefly: ignore[bad-return]  # the part of an environment that these tests use


@pytest.fixture
def opening() -> Opening:
    return Opening()


async def test_a_turn_that_uses_nothing_opens_nothing(opening: Opening) -> None:
    late = opening.late()
    late.renew(2.0)
    assert (late.trees, late.inside_paths, late.was_used) == ({}, {}, False)
    await late.aclose()
    assert opening.deadlines == []
    assert opening.environment.closed == 0


async def test_the_first_use_opens_it_once_with_the_newest_deadline(opening: Opening) -> None:
    late = opening.late()
    late.renew(2.0)
    assert [*await asyncio.gather(late.read("a"), late.read("b"))] == [b"a", b"b"]
    late.renew(3.0)
    assert opening.deadlines == [2.0]
    assert opening.environment.deadlines == [2.0, 3.0]
    assert (late.trees, late.was_used, late.root) == ({"scratch": Path("/tree")}, True, "/tree")
    await late.aclose()
    assert opening.environment.closed == 1


async def test_a_failed_opening_fails_its_caller_and_the_next_use_retries(opening: Opening) -> None:
    opening.failures = 1
    late = opening.late()
    with pytest.raises(OSError, match="no space left"):
        await late.ensure_open()
    assert await late.read("a") == b"a"


async def test_nothing_is_opened_after_the_end(opening: Opening) -> None:
    late = opening.late()
    await late.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await late.ensure_open()
    assert opening.deadlines == []


async def test_a_property_needs_an_open_environment(opening: Opening) -> None:
    with pytest.raises(RuntimeError, match="ensure_open"):
        _ = opening.late().root


async def test_a_cancelled_use_does_not_cancel_the_opening_and_closing_waits_for_it(opening: Opening) -> None:
    opening.may_end.clear()
    late = opening.late()
    use = asyncio.ensure_future(late.read("a"))
    await opening.began.wait()
    use.cancel()
    await asyncio.wait({use})
    closing = asyncio.ensure_future(late.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    opening.may_end.set()
    await closing
    assert opening.environment.closed == 1


async def test_a_deadline_renewed_during_opening_is_applied(opening: Opening) -> None:
    opening.may_end.clear()
    late = opening.late(1.0)
    use = asyncio.ensure_future(late.read("a"))
    await opening.began.wait()
    late.renew(2.0)
    opening.may_end.set()
    assert await use == b"a"
    assert opening.environment.deadlines == [2.0]


async def test_a_turn_that_is_lost_opens_nothing(opening: Opening) -> None:
    opening.lost = True
    with pytest.raises(Fenced):
        await opening.late().ensure_open()
    assert opening.deadlines == []


async def test_an_opening_in_the_background_is_the_one_that_the_first_use_waits_for(opening: Opening) -> None:
    opening.may_end.clear()
    late = opening.late()
    late.open_in_background()
    await opening.began.wait()
    use = asyncio.ensure_future(late.read("a"))
    opening.may_end.set()
    assert await use == b"a"
    assert opening.deadlines == [1.0]


async def test_a_failed_background_opening_fails_the_first_use(opening: Opening) -> None:
    opening.failures = 1
    late = opening.late()
    late.open_in_background()
    with pytest.raises(OSError, match="no space left"):
        await late.read("a")
    assert await late.read("a") == b"a"
