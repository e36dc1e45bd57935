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
from bench.support.crash import interrupted_turn
from bench.support.crash.stream_watcher import StreamWatcher
from bench.support.orphan_search import lingering_commands
from bench.support.orphan_search.resource_search import Orphans, OrphanSearch
from footplate.stack.orphan_processes import wait_until

CLEANUP_LIMIT_SECONDS: Final = 5.0
_PATIENCE: Final = 180.0
_SEARCH_INTERVAL: Final = 0.1


@dataclass(slots=True)
class EndingTally:
    commands: int = 0
    processes_before: int = 0
    """Processes that were alive before the turns were ended."""
    slowest: float = 0.0
    last_gone: str = ""
    """What disappeared last."""
    orphans: list[str] = field(default_factory=list)


@dataclass(slots=True)
class TestBed:
    cluster: Cluster
    client: Client
    agent: str
    search: OrphanSearch
    tallies: dict[str, EndingTally] = field(default_factory=dict)

    async def run_round(self, ending: str, count: int) -> None:
        script, end, judged_when_idle = ENDINGS[ending]
        tally = self.tallies.setdefault(ending, EndingTally())
        sessions = [await self.client.session(self.agent, title=f"{ending} {n}") for n in range(count)]
        async with asyncio.TaskGroup() as group:
            ended = [group.create_task(self._run_turn(session_id, script)) for session_id in sessions]
            await self._wait_until_ready(sessions)
            tally.processes_before += await asyncio.to_thread(self._record_turns)
            began = time.monotonic()
            await end(self, sessions)
            if judged_when_idle:
                await asyncio.gather(*ended)
                began = time.monotonic()
            seconds, orphans, last = await self.wait_until_gone(began)
            if not self.cluster.workers[0].is_running:
                await self.cluster.restart_worker(0)
        tally.commands += count
        if seconds > tally.slowest:
            tally.slowest, tally.last_gone = seconds, last
        tally.orphans += [f"{ending}: {kind} {things}" for kind, things in orphans.by_kind.items()]

    async def wait_until_gone(self, began: float) -> tuple[float, Orphans, str]:
        """Searches until nothing remains or the time limit is reached.

        Returns the seconds until the last search, its findings, and the findings of the search before it.
        """
        last = ""
        while True:
            seconds = time.monotonic() - began
            orphans = await asyncio.to_thread(self.search.find_orphans)
            if not orphans.by_kind or seconds >= CLEANUP_LIMIT_SECONDS:
                return seconds, orphans, last
            last = str(orphans.by_kind)
            await asyncio.sleep(_SEARCH_INTERVAL)

    async def _run_turn(self, session_id: str, script: str) -> None:
        async with StreamWatcher(self.client, session_id) as watcher:
            await self.client.send_text(session_id, f"Stay. [[script:{script}]]")
            await watcher.wait_for_turns(patience=_PATIENCE)

    async def _wait_until_ready(self, sessions: list[str]) -> None:
        """Waits until every command has started all its processes."""

        async def ready() -> bool:
            return all(
                (interrupted_turn.workspace_path(self.cluster, each) / lingering_commands.READY).exists()
                for each in sessions
            )

        require(holds=await wait_until(ready, _PATIENCE), otherwise="a command did not start")

    def _record_turns(self) -> int:
        self.search.record_turns()
        return len(self.search.find_orphans().processes)


EndTurns = Callable[[TestBed, list[str]], Awaitable[None]]


async def _by_itself(_site: TestBed, _sessions: list[str]) -> None:
    """Does nothing: the command exits or reaches its timeout, and the turn ends."""


async def _interrupt(test_bed: TestBed, sessions: list[str]) -> None:
    await asyncio.gather(*(test_bed.client.interrupt(session_id) for session_id in sessions))


async def _kill_worker(test_bed: TestBed, _sessions: list[str]) -> None:
    """Kills the only worker, so that only its death watch can clean up."""
    await test_bed.cluster.kill_worker(0)


async def _kill_guardians(test_bed: TestBed, _sessions: list[str]) -> None:
    for lease_id in test_bed.search.running_lease_ids():
        if pid := test_bed.search.guardians.get(lease_id):
            os.kill(pid, signal.SIGKILL)


ENDINGS: Final[dict[str, tuple[str, EndTurns, bool]]] = {
    "exit": ("leaves", _by_itself, True),
    "timeout": ("times_out", _by_itself, True),
    "interrupt": ("stays", _interrupt, True),
    "worker SIGKILL": ("stays", _kill_worker, False),
    "guardian SIGKILL": ("stays", _kill_guardians, False),
}
"""For each way: the script, the function that ends the turn, and whether time counts from the end of the turn (or else
from the kill).
"""
