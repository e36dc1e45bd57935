"""Kills API replicas during POSTs: each time the replica that handles the POST, at a random time of its duration.

The replicas are behind one address. Usually the others are up and a retry reaches one; in some rounds the killed
replica is the only one, and the SDK gives up unless it is back in time. In some rounds two callers with different keys
post the same content at once, and in some a caller deliberately repeats a POST of its own or of another program with
its key.
"""

import asyncio
import itertools
import os
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Literal

from bench.prove.figure import NotHeld
from bench.support.cluster import Cluster
from bench.support.retries.balancer import Balancer
from bench.support.retries.sdk_posts import KINDS, Caller, Kind, Posted, SharedObjects, message_text
from bench.support.speed.measurement import median
from footplate.failpoints import API_POINTS
from footplate.stack.orphan_processes import wait_until

_MEASURED_POSTS: Final = 5
_RECENT_POSTS: Final = 11
_DIES_WITHIN: Final = 10.0
TENTHS: Final = 10


@dataclass(frozen=True, slots=True)
class Round:
    kind: Kind
    mark: str
    with_other_key: bool = False
    """Whether a caller with another key posts the same content at the same time."""
    repeat: Literal["no", "before", "after"] = "no"
    """Whether another program with the same key posts the same content before or after, without a kill."""
    only_replica: bool = False
    """Whether the killed replica is the only one."""


def rounds(label: str) -> Iterator[Round]:
    """Yields rounds without end. Every ten contain all kinds of POST and all ways to repeat one."""
    for ten in itertools.count():
        name = f"{label} {ten}"
        yield Round("send", message_text(f"{name}: once"))
        yield Round("session", message_text(f"{name}: a session"))
        yield Round("send", message_text(f"{name}: together"), with_other_key=True)
        yield Round("send", message_text(f"{name}: and again"), repeat="after")
        yield Round("send", message_text(f"{name}: as before"), repeat="before")
        yield Round("agent", f"{name}: an agent")
        yield Round("send", message_text(f"{name}: one replica"), only_replica=True)
        yield Round("agent", f"{name}: agents together", with_other_key=True)
        yield Round("session", message_text(f"{name}: a session, one replica"), only_replica=True)
        yield Round("session", message_text(f"{name}: a session again"), repeat="after")


@dataclass(frozen=True, slots=True)
class Kill:
    at: float
    """Seconds since the epoch."""
    posted: Sequence[Posted]


@dataclass(slots=True)
class ApiKills:
    cluster: Cluster
    balancer: Balancer
    caller: Caller
    stranger: Caller
    """A caller with another key."""
    twin: Caller
    """Another program with the caller's key."""
    shared: SharedObjects
    rng: random.Random
    times: dict[Kind, deque[float]] = field(
        default_factory=lambda: {kind: deque(maxlen=_RECENT_POSTS) for kind in KINDS}
    )
    """Seconds that the last POSTs without a kill took."""
    kills: list[Kill] = field(default_factory=list)
    undisturbed: list[Posted] = field(default_factory=list)
    tenths: Counter[str] = field(default_factory=Counter)
    _restarts: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _turn: int = 0

    @property
    def posted(self) -> list[Posted]:
        return [*self.undisturbed, *(post for kill in self.kills for post in kill.posted)]

    def usual_seconds(self, kind: Kind) -> float:
        return median(self.times[kind])

    async def measure(self) -> None:
        """Measures the duration of undisturbed POSTs.

        It is also measured before each kill, because it depends on the load, such as replicas that are starting.
        """
        for kind in KINDS:
            for _ in range(_MEASURED_POSTS):
                await self._measure(kind)

    async def kill_anywhere(self, count: int) -> None:
        """Kills replicas at times that are uniform over the usual duration of the POST."""
        for plan in itertools.islice(rounds("anywhere"), count):
            part = self.rng.random()
            self.tenths[f"{int(part * TENTHS)}/{TENTHS}"] += 1
            await self._run_round(plan, part)

    async def kill_before_responses(self, count: int) -> None:
        """Kills replicas between the commit and the response."""
        for plan in itertools.islice(rounds("before the response"), count):
            await self._run_round(plan, None)

    async def aclose(self) -> None:
        await asyncio.gather(*self._restarts.values())
        self._threads.shutdown()

    async def _measure(self, kind: Kind) -> None:
        label = f"measured {len(self.undisturbed)}"
        post = await self.caller.post(kind, self.shared, message_text(label))
        self.undisturbed.append(post)
        if post.retries == 0:
            self.times[kind].append(post.seconds)

    async def _run_round(self, plan: Round, part: float | None) -> None:
        """Runs one POST and kills its replica after this fraction of the usual time.

        With `part` None, the replica dies at the failpoint between the commit and the response.
        """
        if plan.repeat == "before":
            await self._post_undisturbed(plan)
        victim = await self._choose_victim(plan)
        await self._measure(plan.kind)
        pid = self.cluster.apis[victim].pid
        assert pid is not None
        began = time.perf_counter()
        if part is None:
            (self.cluster.failpoints / API_POINTS[0]).write_text("kill")
            killing = asyncio.create_task(self._wait_for_failpoint_kill(victim))
        else:
            kill_at = began + part * self.usual_seconds(plan.kind)
            thread = asyncio.get_running_loop().run_in_executor(self._threads, _kill, pid, kill_at)
            killing = asyncio.ensure_future(thread)
        posts = [asyncio.create_task(caller.post(plan.kind, self.shared, plan.mark)) for caller in self._callers(plan)]
        killed = await killing
        await self.cluster.kill_api(victim)  # it is already dead; this updates the cluster's state
        self._restarts[victim] = asyncio.create_task(self.cluster.restart_api(victim))
        self.kills.append(Kill(killed, await asyncio.gather(*posts)))
        if plan.repeat == "after":
            await self._post_undisturbed(plan)

    async def _post_undisturbed(self, plan: Round) -> None:
        self.undisturbed.append(await self.twin.post(plan.kind, self.shared, plan.mark))

    def _callers(self, plan: Round) -> Sequence[Caller]:
        return (self.caller, self.stranger) if plan.with_other_key else (self.caller,)

    async def _choose_victim(self, plan: Round) -> int:
        """Returns the replica that was killed longest ago, after connecting all callers to it."""
        count = len(self.cluster.apis)
        self._turn += 1
        victim, *others = [(self._turn + number) % count for number in range(count)]
        for number in (victim, others[0]):
            if number in self._restarts:
                await self._restarts.pop(number)
        ports = [self.cluster.ports[number] for number in (victim, *others)]
        self.balancer.turn_to(*(ports[:1] if plan.only_replica else ports))
        for caller in self._callers(plan):
            await caller.open_connection(self.shared)
        return victim

    async def _wait_for_failpoint_kill(self, victim: int) -> float:
        async def dead() -> bool:
            return not self.cluster.apis[victim].is_running

        if not await wait_until(dead, _DIES_WITHIN):
            raise NotHeld("no POST reached the failpoint between commit and response")
        return time.time()


def _kill(pid: int, kill_at: float) -> float:
    """Kills the process at a given time. Runs in a thread, because the event loop may be busy with the SDK."""
    time.sleep(max(0.0, kill_at - time.perf_counter()))
    os.kill(pid, signal.SIGKILL)
    return time.time()
