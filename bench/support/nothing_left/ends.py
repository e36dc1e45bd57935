"""Ends turns in different ways: starts several at once, ends them, and waits until nothing of them remains."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from bench.prove.figure import require
from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.crash import work
from bench.support.crash.watcher import StreamWatcher
from bench.support.nothing_left import commands
from bench.support.nothing_left.search import Left, Search
from footplate.stack.orphan_processes import wait_until

LIMIT: Final = 5.0
_PATIENCE: Final = 180.0
_LOOK_EVERY: Final = 0.1


@dataclass(slots=True)
class Tally:
    commands: int = 0
    seen: int = 0
    """Processes that were alive before the turns were ended."""
    slowest: float = 0.0
    last: str = ""
    """What disappeared last."""
    left: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Site:
    cluster: Cluster
    client: Client
    agent: str
    search: Search
    tallies: dict[str, Tally] = field(default_factory=dict)

    async def round(self, way: str, count: int) -> None:
        script, end, judged_when_idle = WAYS[way]
        tally = self.tallies.setdefault(way, Tally())
        sessions = [await self.client.session(self.agent, title=f"{way} {n}") for n in range(count)]
        async with asyncio.TaskGroup() as group:
            ended = [group.create_task(self._turn(session_id, script)) for session_id in sessions]
            await self._ready(sessions)
            tally.seen += await asyncio.to_thread(self._learn)
            began = time.monotonic()
            await end(self, sessions)
            if judged_when_idle:
                await asyncio.gather(*ended)
                began = time.monotonic()
            seconds, left, last = await self.gone(began)
            if not self.cluster.workers[0].is_running:
                await self.cluster.restart_worker(0)
        tally.commands += count
        if seconds > tally.slowest:
            tally.slowest, tally.last = seconds, last
        tally.left += [f"{way}: {kind} {things}" for kind, things in left.kinds.items()]

    async def gone(self, began: float) -> tuple[float, Left, str]:
        """Searches until nothing remains or the time limit is reached.

        Returns the seconds until the last search, its findings, and the findings of the search before it.
        """
        last = ""
        while True:
            seconds = time.monotonic() - began
            left = await asyncio.to_thread(self.search.left)
            if not left.kinds or seconds >= LIMIT:
                return seconds, left, last
            last = str(left.kinds)
            await asyncio.sleep(_LOOK_EVERY)

    async def _turn(self, session_id: str, script: str) -> None:
        async with StreamWatcher(self.client, session_id) as watcher:
            await self.client.send_text(session_id, f"Stay. [[script:{script}]]")
            await watcher.wait_for_turns(patience=_PATIENCE)

    async def _ready(self, sessions: list[str]) -> None:
        """Waits until every command has started all its processes."""

        async def ready() -> bool:
            return all((work.workspace_path(self.cluster, each) / commands.READY).exists() for each in sessions)

        require(holds=await wait_until(ready, _PATIENCE), otherwise="a command did not start")

    def _learn(self) -> int:
        self.search.learn()
        return len(self.search.left().processes)


End = Callable[[Site, list[str]], Awaitable[None]]


async def _by_itself(_site: Site, _sessions: list[str]) -> None:
    """Does nothing: the command exits or reaches its timeout, and the turn ends."""


async def _interrupt(site: Site, sessions: list[str]) -> None:
    await asyncio.gather(*(site.client.interrupt(session_id) for session_id in sessions))


async def _kill_worker(site: Site, _sessions: list[str]) -> None:
    """Kills the only worker, so that only its death watch can clean up."""
    await site.cluster.kill_worker(0)


async def _kill_guardians(site: Site, _sessions: list[str]) -> None:
    for lease_id in site.search.living():
        if pid := site.search.guardians.get(lease_id):
            os.kill(pid, signal.SIGKILL)


WAYS: Final[dict[str, tuple[str, End, bool]]] = {
    "exit": ("leaves", _by_itself, True),
    "timeout": ("times_out", _by_itself, True),
    "interrupt": ("stays", _interrupt, True),
    "worker SIGKILL": ("stays", _kill_worker, False),
    "guardian SIGKILL": ("stays", _kill_guardians, False),
}
"""For each way: the script, the function that ends the turn, and whether time counts from the end of the turn (or else
from the kill).
"""
