"""A timer on the event loop that can be started, stopped and started again."""

import asyncio
from collections.abc import Callable


class Timer:
    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, expire: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._expire: Callable[[], None] | None = expire
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float | None = None) -> None:
        """Starts the timer. A running timer is not extended, so no client can postpone its deadline."""
        if self._handle is None and self._expire is not None:
            self._handle = self._loop.call_later(self._seconds if seconds is None else seconds, self._on_expired)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def discard(self) -> None:
        """Stops permanently and drops the reference to the owner. The reference cycle would otherwise wait for the
        garbage collector.
        """
        self.stop()
        self._expire = None

    def _on_expired(self) -> None:
        self._handle = None
        if self._expire is not None:
            self._expire()
