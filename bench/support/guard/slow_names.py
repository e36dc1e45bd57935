"""Host names that are answered slowly: an agent fetches a few of them, and nothing else of the worker goes on."""

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
    from footplate.domain.addresses import Reach
    from footplate.harness import reaching

    looking = [asyncio.create_task(reaching.addresses(Reach(), f"n{number}.evil.test", 443)) for number in range(50)]
    await asyncio.sleep(0.2)
    began = time.monotonic()
    await asyncio.to_thread(lambda: None)
    waited = time.monotonic() - began
    _released.set()
    await asyncio.gather(*looking, return_exceptions=True)
    return f"The worker's other work waited for {waited:.1f} s." if waited > 3 else None
