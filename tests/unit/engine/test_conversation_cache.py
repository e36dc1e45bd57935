"""The cache of conversations: which entries it reads, and its limits in size and time."""

from dataclasses import replace
from typing import cast

from tests.unit.engine.fake_resources import CLAIM

from footplate.domain.ports.engine import Claim, TurnStore
from footplate.domain.ports.harness import Entry
from footplate.engine.conversation_cache import ConversationCache


class FakeStore:
    """Has entries for every session, and records the position from which each was read."""

    def __init__(self, size: int = 100) -> None:
        self.asked: list[tuple[str, int]] = []
        self._text = "x" * size

    async def entries(self, claim: Claim, after: int) -> list[Entry]:
        self.asked.append((claim.session_id, after))
        return [Entry("line", {"n": number, "text": self._text}) for number in range(after, claim.entries)]


def make_claim(session_id: str, entries: int) -> Claim:
    return replace(CLAIM, session_id=session_id, entries=entries)


async def test_only_new_entries_are_read() -> None:
    store = FakeStore()
    cache = ConversationCache(cast("TurnStore", store), max_bytes=1 << 20, max_idle_seconds=300)
    assert len(await cache.load(make_claim("a", 3))) == 3
    cache.add(make_claim("a", 3), [Entry("line", {"text": "a lone \ud800 surrogate"})])
    assert len(await cache.load(make_claim("a", 4))) == 4
    assert len(await cache.load(make_claim("a", 6))) == 6
    assert store.asked == [("a", 0), ("a", 4)]


async def test_a_cached_conversation_longer_than_the_log_is_discarded() -> None:
    store = FakeStore()
    cache = ConversationCache(cast("TurnStore", store), max_bytes=1 << 20, max_idle_seconds=300)
    await cache.load(make_claim("a", 3))
    assert len(await cache.load(make_claim("a", 2))) == 2
    assert store.asked == [("a", 0), ("a", 0)]


async def test_the_cache_is_limited_in_bytes_and_evicts_the_oldest() -> None:
    store = FakeStore(size=1000)
    cache = ConversationCache(cast("TurnStore", store), max_bytes=10_000, max_idle_seconds=300)
    await cache.load(make_claim("a", 4))
    await cache.load(make_claim("b", 4))
    cache.add(make_claim("b", 4), [Entry("line", {"text": "x" * 4000})])
    await cache.load(make_claim("b", 5))
    assert store.asked == [("a", 0), ("b", 0)]
    await cache.load(make_claim("a", 4))
    assert store.asked[2:] == [("a", 0)]


async def test_the_current_conversation_is_cached_whatever_its_size() -> None:
    store = FakeStore(size=1000)
    cache = ConversationCache(cast("TurnStore", store), max_bytes=0, max_idle_seconds=300)
    await cache.load(make_claim("a", 4))
    await cache.load(make_claim("a", 4))
    assert store.asked == [("a", 0)]


async def test_a_conversation_expires_after_its_last_use() -> None:
    store, now = FakeStore(), [0.0]
    cache = ConversationCache(cast("TurnStore", store), max_bytes=1 << 20, max_idle_seconds=10, clock=lambda: now[0])
    await cache.load(make_claim("a", 3))
    await cache.load(make_claim("b", 3))
    now[0] = 8.0
    cache.add(make_claim("a", 3), [Entry("line", {"text": "a is in use"})])
    now[0] = 12.0
    await cache.load(make_claim("c", 3))
    await cache.load(make_claim("a", 4))
    await cache.load(make_claim("b", 3))
    assert store.asked == [("a", 0), ("b", 0), ("c", 0), ("b", 0)]
