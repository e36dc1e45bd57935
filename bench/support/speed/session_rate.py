"""Measures one-turn sessions per second against bare Temporal with as many workers, on the same server.

Both sides are used as their users do: a session is created with its message and its stream is read until idle; a
workflow is started with a signal and its result awaited. The sides alternate, round by round. A session's workflow
lingers on a timer after its turn and then completes. Rounds are long enough that as many workflows finish their linger
in the measured time as start it, and the last ones finish between rounds.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from bench.support.cluster import Cluster
from bench.support.minimal_client import MinimalClient, Received, events_path, message, validate_frames
from bench.support.speed import bare_temporal
from bench.support.speed.bare_temporal import WAKE, BareWorkflow
from bench.support.speed.measurement import ROOT, Measurement
from footplate.stack import PythonService
from footplate.stack.temporal_connection import connect_temporal
from footplate.testing import replies, reply, text

SLOTS: Final = 100
"""The default of FOOTPLATE_MAX_TURNS."""
_AT_ONCE: Final = 16
_SCRIPT: Final = "one-turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    rounds: int
    seconds: float
    """Measured seconds per round and side. A warm-up as long as the linger precedes them."""
    linger: float
    """The cluster's FOOTPLATE_LINGER."""

    @classmethod
    def create(cls, *, quick: bool) -> "Plan":
        return cls(rounds=1, seconds=3, linger=1) if quick else cls(rounds=3, seconds=10, linger=4)


async def measure(cluster: Cluster, plan: Plan, *, min_ratio: float, slack: float = 1.0) -> Measurement:
    await cluster.model.install(_SCRIPT, replies(reply(text("One two three four."), repeat=True)))
    client = await connect_temporal(cluster.settings.temporal_address)
    queue = f"bare-{cluster.id}"
    numbers = itertools.count()
    received: list[Received] = []

    async def workflow() -> None:
        number = next(numbers)
        handle = await client.start_workflow(
            BareWorkflow.run, args=[number], id=f"{queue}-{number}", task_queue=queue, start_signal=WAKE
        )
        await handle.result()

    async with open_bare_workers(cluster, queue), MinimalClient(cluster.base_urls[0], cluster.key) as api:
        session_fields = await api.create_session_fields()
        first = {**session_fields, "initial_events": [message(f"Hello [[script:{_SCRIPT}]]")]}

        async def session() -> None:
            session_id = (await api.post("/v1/sessions", first))["id"]
            async with api.stream(events_path(session_id, after=0)) as frames:
                received.extend(await frames.until_idle())

        bare, ours = 0, 0
        for _ in range(plan.rounds):
            bare += await _count_finished(workflow, plan)
            ours += await _count_finished(session, plan)
            await asyncio.sleep(plan.linger + 1)
    seconds = plan.rounds * plan.seconds
    ratio = ours / bare
    return Measurement(
        text=f"{ours / seconds:.1f} one-turn sessions/s, {bare / seconds:.1f} bare workflows/s: {ratio:.2f} times "
        f"(at least {min_ratio}), linger included",
        holds=ratio * slack >= min_ratio,
        details={
            "sessions": ours,
            "workflows": bare,
            "seconds": seconds,
            "at_once": _AT_ONCE,
            "workers": len(cluster.workers),
            "linger": plan.linger,
            "events_validated": validate_frames(received),
        },
        figures={"ratio": ratio},
    )


async def _count_finished(work: Callable[[], Awaitable[None]], plan: Plan) -> int:
    """Repeats the work in parallel tasks and returns how often it finished in the measured seconds."""
    start = time.monotonic() + plan.linger
    end = start + plan.seconds
    done = 0

    async def repeat_work() -> None:
        nonlocal done
        while time.monotonic() < end:
            await work()
            done += start <= time.monotonic() < end

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(repeat_work())
    return done


@asynccontextmanager
async def open_bare_workers(cluster: Cluster, queue: str, slots: int = SLOTS) -> AsyncIterator[None]:
    programs = [
        PythonService(
            cluster.directory / f"bare-{number}",
            title=f"bare worker {number}",
            module=bare_temporal.__name__,
            arguments=(cluster.settings.temporal_address, queue, str(slots)),
            environment={**cluster.environment(), "PYTHONPATH": str(ROOT)},
            log_file=cluster.directory / "logs" / f"bare-{number}.log",
            ready_mark=bare_temporal.READY,
        )
        for number in range(len(cluster.workers))
    ]
    try:
        for program in programs:
            await program.start()
        yield
    finally:
        for program in programs:
            await program.stop()
