"""Resolves untrusted host names in a separate small thread pool, with a timeout.

The owner of a domain can make its lookups slow, and each lookup blocks a thread. The pool is therefore separate from
the event loop's threads, and each domain can block only a few threads at once. The blocking lookup function is a
parameter, so this module does no I/O itself.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, Final
from weakref import WeakValueDictionary

from footplate.domain.network.address_policy import Address

MAX_THREADS: Final = 16
DEFAULT_TIMEOUT_SECONDS: Final = 5.0
MAX_LOOKUPS_PER_DOMAIN: Final = 4
_STREAM: Final = 1
"""`socket.SOCK_STREAM`."""
_DOMAIN_LABELS: Final = 2

BlockingLookup = Callable[[str, int, int, int], Sequence[tuple[Any, ...]]]


class NameLookup:
    def __init__(self, blocking: BlockingLookup, *, seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """`blocking` is usually `socket.getaddrinfo`."""
        self._blocking = blocking
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="name-lookup")
        self._domains: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, host: str, port: int) -> list[Address]:
        """Return the distinct addresses of a host. Raises `OSError`, also on timeout, and `UnicodeError`."""
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        try:
            async with asyncio.timeout(self._seconds):
                entries = await self._look_up(host, port)
        except TimeoutError:
            raise OSError(f"the lookup took longer than {self._seconds:g} s") from None
        return list(dict.fromkeys(ip_address(str(entry[4][0])) for entry in entries))

    async def _look_up(self, host: str, port: int) -> Sequence[tuple[Any, ...]]:
        domain = ".".join(host.lower().rstrip(".").split(".")[-_DOMAIN_LABELS:])
        slots = self._domains.setdefault(domain, asyncio.Semaphore(MAX_LOOKUPS_PER_DOMAIN))
        await slots.acquire()
        lookup = asyncio.get_running_loop().run_in_executor(self._pool, self._blocking, host, port, 0, _STREAM)

        def release_slot(done: "asyncio.Future[Sequence[tuple[Any, ...]]]") -> None:
            slots.release()  # only now: the thread keeps running after its caller has timed out
            if not done.cancelled():
                done.exception()

        lookup.add_done_callback(release_slot)
        return await asyncio.shield(lookup)
