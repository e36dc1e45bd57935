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

from bench.support.claude import victims
from bench.support.cluster import Cluster
from footplate.stack.leftovers import wait_until

BEFORE: Final = ("after_ask", "before_turn_commit", "after_turn_commit")
"""Failpoints that a turn passes when it requests approval and parks."""
AFTER: Final = (
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
Sessions: TypeAlias = Callable[[], Sequence[str]]
"""Returns the sessions whose harness processes may be killed. They can change while a failpoint is awaited."""
_HELD_FOR: Final = "1.5"
"""Seconds for which a worker waits at a failpoint while another process is killed."""
_MEETS_WITHIN: Final = 60.0
_STRIKES_WITHIN: Final = 0.3


@dataclass(frozen=True, slots=True)
class Moment:
    when: str
    """One of never, asking, waiting, answering or after."""
    victim: str = ""
    point: str = ""

    @property
    def title(self) -> str:
        return " ".join(part for part in (self.when, self.victim, self.point) if part)

    @property
    def cuts(self) -> bool:
        """Whether the kill can interrupt a call that has started."""
        return self.victim in {"worker", "harness"}


def moments() -> list[Moment]:
    return [
        Moment("never"),
        *(Moment("asking", "worker", point) for point in BEFORE),
        *(Moment("asking", victim, "after_ask") for victim in VICTIMS[1:]),
        *(Moment(when, victim) for when in ("waiting", "answering") for victim in VICTIMS),
        Moment("answering", "api", "before_answer"),
        *(Moment("after", victim, point) for point, victim in itertools.product(AFTER, VICTIMS)),
    ]


@dataclass(slots=True)
class Fire:
    cluster: Cluster
    chance: random.Random
    count: Counter[str] = field(default_factory=Counter)
    _restarts: int = 0

    async def at(self, moment: Moment, sessions: Sessions) -> bool:
        """Kills the victim and waits until it runs again. Returns False if the failpoint was not reached."""
        if moment.point:
            return await self._at_point(moment, sessions)
        if moment.when == "answering":
            await asyncio.sleep(self.chance.random() * _STRIKES_WITHIN)
        await self._strike(moment.victim, sessions)
        return True

    async def _at_point(self, moment: Moment, sessions: Sessions) -> bool:
        """Arms the failpoint. A worker, or the api at its own failpoint, kills itself there; for other victims it waits
        there.
        """
        own = moment.victim == "worker" or moment.point == "before_answer"
        armed, hit = (self.cluster.failpoints / name for name in (moment.point, f"{moment.point}.hit"))
        hit.unlink(missing_ok=True)
        armed.write_text("kill" if own else _HELD_FOR)

        async def met() -> bool:
            return hit.exists()

        found = await wait_until(met, _MEETS_WITHIN)
        armed.unlink(missing_ok=True)
        if not found:
            return False
        if own:
            await self._raise_dead(moment.victim)
        else:
            await self._strike(moment.victim, sessions)
        return True

    async def _raise_dead(self, victim: str) -> None:
        """Restarts the programs that killed themselves."""
        programs = self.cluster.workers if victim == "worker" else self.cluster.apis

        async def dead() -> bool:
            return not all(program.is_running for program in programs)

        await wait_until(dead, _MEETS_WITHIN)
        for program in programs:
            if not program.is_running:
                self.count[victim] += 1
                await program.restart()

    async def _strike(self, victim: str, sessions: Sessions) -> None:
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

    def _kill_harnesses(self, sessions: Sessions) -> None:
        """Kills all processes in the environments of these sessions: CLIs, shells and their children."""
        for session_id in sessions():
            for pid in victims.of(self.cluster, session_id):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.count["harness"] += 1
