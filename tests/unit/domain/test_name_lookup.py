"""Slow lookups of host names are limited in time, in threads, and per domain."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Any

import pytest

from footplate.domain.network.dns_lookup import MAX_LOOKUPS_PER_DOMAIN, NameLookup

pytestmark = pytest.mark.timing


class Resolver:
    """Lookups of names in `slow.test` block until `released` is set."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked: list[str] = []

    def look_up(self, host: str, port: int, _family: int, _kind: int) -> Sequence[tuple[Any, ...]]:
        self.asked.append(host)
        if host.endswith("slow.test"):
            self.released.wait(30)
        return [(2, 1, 6, "", ("192.0.2.7", port)), (2, 1, 6, "", ("192.0.2.7", port))]


@pytest.fixture
def resolver() -> Iterator[Resolver]:
    made = Resolver()
    yield made
    made.released.set()


async def test_slow_names_of_one_domain_delay_no_other_name(resolver: Resolver) -> None:
    names = NameLookup(resolver.look_up, seconds=1.0)
    slow = [asyncio.create_task(names.resolve(f"n{number}.slow.test", 443)) for number in range(100)]
    await asyncio.sleep(0.05)
    begun = time.monotonic()
    assert await names.resolve("example.org", 443) == [ip_address("192.0.2.7")]
    await asyncio.to_thread(lambda: None)  # the threads of the event loop are free
    assert time.monotonic() - begun < 0.9
    failed = await asyncio.gather(*slow, return_exceptions=True)
    assert all(isinstance(error, OSError) for error in failed)
    assert sum(name.endswith("slow.test") for name in resolver.asked) == MAX_LOOKUPS_PER_DOMAIN


async def test_an_abandoned_thread_still_counts(resolver: Resolver) -> None:
    names = NameLookup(resolver.look_up, seconds=0.05)
    for _ in range(2 * MAX_LOOKUPS_PER_DOMAIN):
        with pytest.raises(OSError, match="longer than"):
            await names.resolve("a.slow.test", 443)
    assert len(resolver.asked) == MAX_LOOKUPS_PER_DOMAIN


async def test_an_address_is_not_looked_up(resolver: Resolver) -> None:
    assert await NameLookup(resolver.look_up).resolve("::1", 443) == [ip_address("::1")]
    assert resolver.asked == []
