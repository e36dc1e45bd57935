"""Follows the stream of one session through every disconnection, and records the positions that it received."""

import asyncio
from types import TracebackType
from typing import Final, Self

import anthropic
import httpx2

from bench.prove.figure import NotHeld
from bench.support.clients import Client
from footplate.domain.sessions import events

_PAUSE: Final = 0.1


class StreamWatcher:
    """`async with Watcher(client, session_id) as watcher:` reads from the first position on."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.session_id = session_id
        self.seen: list[int] = []
        """The position of each frame, in the order of arrival."""
        self.cuts = 0
        self._client = client
        self._idle = 0
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow(), name=f"watcher {self.session_id}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    async def wait_for_turns(self, turns: int = 1, *, patience: float = 90.0) -> None:
        """Waits until this number of turns has ended, as this client sees it."""
        assert self._task is not None
        waiting = asyncio.create_task(self._wait(turns))
        try:
            await asyncio.wait({waiting, self._task}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                self._task.result()
            if not waiting.done():
                raise NotHeld(f"a turn of {self.session_id} did not end in {patience:.0f} s: saw {self.seen}")
        finally:
            waiting.cancel()

    async def _wait(self, turns: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._idle >= turns)

    async def _follow(self) -> None:
        """Reads streams, each from where the last one was cut. The SDK itself retries failed connections."""
        while True:
            try:
                await self._read()
            except (httpx2.TransportError, anthropic.APIError):
                self.cuts += 1
                await asyncio.sleep(_PAUSE)

    async def _read(self) -> None:
        last = str(self.seen[-1]) if self.seen else "0"
        async with self._client.stream(self.session_id, last_event_id=last) as stream:
            async for event in stream:
                self.seen.append(int(stream.last_id))
                if event["type"] == events.STATUS_IDLE:
                    async with self._changed:
                        self._idle += 1
                        self._changed.notify_all()
