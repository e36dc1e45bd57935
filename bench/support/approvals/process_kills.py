"""Kills the worker, the api, the harness or Temporal at chosen points while sessions wait for approval."""

import asyncio
import itertools
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from bench.support.claude import process_kills
from bench.support.cluster import Cluster
from footplate.stack.orphan_processes import wait_until

FAILPOINTS_WHILE_ASKING: Final = ("after_ask", "before_turn_commit", "after_turn_commit")
"""Failpoints that a turn passes when it requests approval and parks."""
FAILPOINTS_AFTER_DECISION: Final = (
    "before_intent",
    "after_intent",
    "in_tool",
    "before_result_commit",
    "after_result_commit",
    "before_turn_commit",
    "after_turn_commit",
)
"""Failpoints that a turn passes when it resumes."""
VICTIMS: Final = ("worker", "api", "harness", "temporal")
ListSessions: TypeAlias = Callable[[], Sequence[str]]
"""Returns the sessions whose harness processes may be killed. They can change while a failpoint is awaited."""
_PAUSE_SECONDS: Final = "1.5"
"""Seconds for which a worker waits at a failpoint while another process is killed."""
_REACHED_WITHIN: Final = 60.0
_KILLS_WITHIN: Final = 0.3


@dataclass(frozen=True, slots=True)
class KillPoint:
    when: str
    """One of never, asking, waiting, answering or after."""
    victim: str = ""
    point: str = ""

    @property
    def title(self) -> str:
        return " ".join(part for part in (self.when, self.victim, self.point) if part)

    @property
    def interrupts_calls(self) -> bool:
        """Whether the kill can interrupt a call that has started."""
        return self.victim in {"worker", "harness"}


def list_kill_points() -> list[KillPoint]:
    return [
        KillPoint("never"),
        *(KillPoint("asking", "worker", point) for point in FAILPOINTS_WHILE_ASKING),
        *(KillPoint("asking", victim, "after_ask") for victim in VICTIMS[1:]),
        *(KillPoint(when, victim) for when in ("waiting", "answering") for victim in VICTIMS),
        KillPoint("answering", "api", "before_answer"),
        *(KillPoint("after", victim, point) for point, victim in itertools.product(FAILPOINTS_AFTER_DECISION, VICTIMS)),
    ]


@dataclass(slots=True)
class ProcessKiller:
    cluster: Cluster
    chance: random.Random
    count: Counter[str] = field(default_factory=Counter)
    _restarts: int = 0

    async def kill_at(self, kill: KillPoint, sessions: ListSessions) -> bool:
        """Kills the victim and waits until it runs again. Returns False if the failpoint was not reached."""
        if kill.point:
            return await self._kill_at_failpoint(kill, sessions)
        if kill.when == "answering":
            await asyncio.sleep(self.chance.random() * _KILLS_WITHIN)
        await self._kill_victim(kill.victim, sessions)
        return True

    async def _kill_at_failpoint(self, kill: KillPoint, sessions: ListSessions) -> bool:
        """Arms the failpoint. A worker, or the api at its own failpoint, kills itself there; for other victims it waits
        there.
        """
        kills_itself = kill.victim == "worker" or kill.point == "before_answer"
        armed, hit = (self.cluster.failpoints / name for name in (kill.point, f"{kill.point}.hit"))
        hit.unlink(missing_ok=True)
        armed.write_text("kill" if kills_itself else _PAUSE_SECONDS)

        async def met() -> bool:
            return hit.exists()

        found = await wait_until(met, _REACHED_WITHIN)
        armed.unlink(missing_ok=True)
        if not found:
            return False
        if kills_itself:
            await self._restart_dead(kill.victim)
        else:
            await self._kill_victim(kill.victim, sessions)
        return True

    async def _restart_dead(self, victim: str) -> None:
        """Restarts the programs that killed themselves."""
        programs = self.cluster.workers if victim == "worker" else self.cluster.apis

        async def dead() -> bool:
            return not all(program.is_running for program in programs)

        await wait_until(dead, _REACHED_WITHIN)
        for program in programs:
            if not program.is_running:
                self.count[victim] += 1
                await program.restart()

    async def _kill_victim(self, victim: str, sessions: ListSessions) -> None:
        cluster = self.cluster
        if victim == "worker":
            for number in range(len(cluster.workers)):
                await cluster.kill_worker(number)
                await cluster.restart_worker(number)
                self.count[victim] += 1
        elif victim == "api":
            await cluster.kill_api(0)
            await cluster.restart_api(0)
            self.count[victim] += 1
        elif victim == "temporal":
            await self._restart_temporal()
        else:
            await asyncio.to_thread(self._kill_harnesses, sessions)

    async def _restart_temporal(self) -> None:
        """Restarts Temporal, every other time with SIGKILL."""
        temporal = self.cluster.stack.temporal
        assert temporal is not None
        self._restarts += 1
        if self._restarts % 2:
            await temporal.kill()
            await temporal.start()
        else:
            await temporal.restart()
        self.count["temporal"] += 1

    def _kill_harnesses(self, sessions: ListSessions) -> None:
        """Kills all processes in the environments of these sessions: CLIs, shells and their children."""
        for session_id in sessions():
            for pid in process_kills.list_processes(self.cluster, session_id):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.count["harness"] += 1
