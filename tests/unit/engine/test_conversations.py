"""The cache of conversations: which entries it reads, and its limits in size and time."""

from dataclasses import replace
from typing import cast

from tests.unit.engine.parts import CLAIM

from footplate.domain.ports import Entry
from footplate.domain.running import Claim, TurnStore
from footplate.engine.conversations import ConversationCache


class Store:
    """Has entries for every session, and records the position from which each was read."""

    def __init__(self, size: int = 100) -> None:
        self.asked: list[tuple[str, int]] = []
        self._text = "x" * size

    async def entries(self, claim: Claim, after: int) -> list[Entry]:
        self.asked.append((claim.session_id, after))
        return [Entry("line", {"n": number, "text": self._text}) for number in range(after, claim.entries)]


def claim(session_id: str, entries: int) -> Claim:
    return replace(CLAIM, session_id=session_id, entries=entries)


async def test_only_what_is_new_is_read() -> None:
    store = Store()
    kept = ConversationCache(cast("TurnStore", store), max_bytes=1 << 20, max_idle_seconds=300)
    assert len(await kept.load(claim("a", 3))) == 3
    kept.add(claim("a", 3), [Entry("line", {"text": "a lone \ud800 surrogate"})])
    assert len(await kept.load(claim("a", 4))) == 4
    assert len(await kept.load(claim("a", 6))) == 6
    assert store.asked == [("a", 0), ("a", 4)]


async def test_what_is_longer_than_the_log_is_not_believed() -> None:
    store = Store()
    kept = ConversationCache(cast("TurnStore", store), max_bytes=1 << 20, max_idle_seconds=300)
    await kept.load(claim("a", 3))
    assert len(await kept.load(claim("a", 2))) == 2
    assert store.asked == [("a", 0), ("a", 0)]


async def test_it_is_bounded_by_its_bytes_and_the_oldest_goes_first() -> None:
    store = Store(size=1000)
    kept = ConversationCache(cast("TurnStore", store), max_bytes=10_000, max_idle_seconds=300)
    await kept.load(claim("a", 4))
    await kept.load(claim("b", 4))
    kept.add(claim("b", 4), [Entry("line", {"text": "x" * 4000})])
    await kept.load(claim("b", 5))
    assert store.asked == [("a", 0), ("b", 0)]
    await kept.load(claim("a", 4))
    assert store.asked[2:] == [("a", 0)]


async def test_the_one_that_runs_is_kept_however_long_it_is() -> None:
    store = Store(size=1000)
    kept = ConversationCache(cast("TurnStore", store), max_bytes=0, max_idle_seconds=300)
    await kept.load(claim("a", 4))
    await kept.load(claim("a", 4))
    assert store.asked == [("a", 0)]


async def test_it_is_bounded_in_time_from_its_last_use() -> None:
    store, now = Store(), [0.0]
    kept = ConversationCache(cast("TurnStore", store), max_bytes=1 << 20, max_idle_seconds=10, clock=lambda: now[0])
    await kept.load(claim("a", 3))
    await kept.load(claim("b", 3))
    now[0] = 8.0
    kept.add(claim("a", 3), [Entry("line", {"text": "a is in use"})])
    now[0] = 12.0
    await kept.load(claim("c", 3))
    await kept.load(claim("a", 4))
    await kept.load(claim("b", 3))
    assert store.asked == [("a", 0), ("b", 0), ("c", 0), ("b", 0)]
