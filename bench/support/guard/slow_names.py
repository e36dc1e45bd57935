"""Host names that resolve slowly: an agent fetches a few of them, and all other work of the worker waits."""

import asyncio
import socket
import threading
import time
from typing import Any

_released = threading.Event()


def _slow(*_: Any, **__: Any) -> Any:
    _released.wait(8)
    raise socket.gaierror


async def attack() -> str | None:
    socket.getaddrinfo = _slow
    from footplate.domain.network.address_policy import AddressPolicy
    from footplate.harness import address_check

    looking = [
        asyncio.create_task(address_check.resolve_allowed_addresses(AddressPolicy(), f"n{number}.evil.test", 443))
        for number in range(50)
    ]
    await asyncio.sleep(0.2)
    began = time.monotonic()
    await asyncio.to_thread(lambda: None)
    waited = time.monotonic() - began
    _released.set()
    await asyncio.gather(*looking, return_exceptions=True)
    return f"The worker's other work waited for {waited:.1f} s." if waited > 3 else None
