"""Restarts a service of `footplate dev` that dies, with growing delays. Gives up after repeated quick failures."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Final

from footplate.stack import Service, ServiceFailed

_STABLE_SECONDS: Final = 60.0
"""A service that ran this long did not fail because of its start, so the count of failures starts over."""
_MAX_FAILURES: Final = 5
_FIRST_DELAY: Final = 0.5
_MAX_DELAY: Final = 8.0


async def keep_running(
    service: Service,
    *,
    notify: Callable[[str], None],
    on_restart: Callable[[], None],
    first_exit: Awaitable[int] | None = None,
) -> None:
    """Raises `ServiceFailed` when it gives up. `first_exit` is awaited instead of the first end of the service."""
    failures, started_at = 0, time.monotonic()
    exit_code = await (first_exit or service.wait())
    while True:
        problem = _describe_exit(exit_code)
        failures = failures + 1 if time.monotonic() - started_at < _STABLE_SECONDS else 1
        while True:
            if failures > _MAX_FAILURES:
                raise service.failure(
                    f"{problem}, for the {failures}th time within a short time; all other services were stopped",
                    "Fix the cause and start `footplate dev` again: sessions continue where they stopped.",
                )
            notify(f"{service.title} {problem}. Restarting it; its log is at {service.log}.")
            await asyncio.sleep(min(_FIRST_DELAY * 2 ** (failures - 1), _MAX_DELAY))
            try:
                await service.start()
                break
            except ServiceFailed:
                problem, failures = "could not be started", failures + 1
        started_at = time.monotonic()
        on_restart()
        notify(f"{service.title} runs again (pid {service.pid}). Sessions continue where they stopped.")
        exit_code = await service.wait()


def _describe_exit(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
