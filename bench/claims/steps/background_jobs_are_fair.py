"""Of thousands of background jobs, most of one organisation, all end, and those of the others do not wait behind them.

One organisation creates a batch of most of the jobs, and then two others create small ones. How long their jobs wait is
compared with a third of the slots reserved for each organisation, which would complete a third of the jobs per second
that all slots completed. The rate is compared with bare Temporal: as many workflows on the same server, with as many
workers and slots, each with one activity that takes as long as the model.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from bench.prove.figure import Figure
from bench.support.cluster import Cluster, open_cluster
from bench.support.minimal_client import MinimalClient
from bench.support.speed.bare_temporal import WAKE, BareWorkflow
from bench.support.speed.measurement import quantile
from bench.support.speed.session_rate import open_bare_workers
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal
from footplate.testing import replies, reply, sleep, text

_NOISY: Final = "noisy"
_SMALL: Final = ("small-a", "small-b")
_JOBS, _JOBS_QUICK = (2600, 200), (90, 15)
"""Of the noisy organisation, and of each small one."""
_WORKERS: Final = 2
_SLOTS: Final = 6
"""Of each worker."""
_SECONDS: Final = 0.5
"""How long the model takes for a job."""
_MAX_WAIT: Final = 2.0
_MIN_RATE: Final = 0.5
_PATIENCE: Final = 1800.0
_AT_ONCE: Final = 8
_SCRIPT: Final = "job"


@dataclass(frozen=True, slots=True)
class _Batch:
    """The results of the jobs of one organisation."""

    results: Sequence[dict[str, Any]]

    @property
    def completed(self) -> int:
        return sum(result["success"] for result in self.results)

    @property
    def p95_wait(self) -> float:
        return quantile([result["metrics"]["waiting_seconds"] for result in self.results], 0.95)

    def p95_wait_with_reserved_slots(self, rate: float) -> float:
        """How long the jobs would wait if a third of the slots, and so of the rate, was reserved for them."""
        return quantile([number / (rate / 3) for number in range(len(self.results))], 0.95)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    most, few = _JOBS_QUICK if quick else _JOBS
    environment = {"FOOTPLATE_MAX_TURNS": str(_SLOTS)}
    async with open_cluster(apis=1, workers=_WORKERS, environment=environment) as cluster:
        await cluster.model.install(_SCRIPT, replies(reply(sleep(_SECONDS), text("Done.", chunks=1), repeat=True)))
        began = time.monotonic()
        found = await _run_batches(cluster, {_NOISY: most, **dict.fromkeys(_SMALL, few)})
        seconds = time.monotonic() - began
        total = most + few * len(_SMALL)
        bare_seconds = await _run_bare(cluster, total)
    return _figure(found, total, seconds, bare_seconds, quick=quick)


async def _run_batches(cluster: Cluster, jobs: dict[str, int]) -> dict[str, _Batch]:
    """Creates the batches, the largest one first, and returns their results when all jobs have ended."""
    async with AsyncExitStack() as exits:
        clients = {
            name: await exits.enter_async_context(
                MinimalClient(cluster.base_urls[0], await cluster.create_key(name, name=name))
            )
            for name in jobs
        }
        created = {}
        for name, count in jobs.items():
            fields = await clients[name].create_session_fields()
            job = {**fields, "prompt": f"Go. [[script:{_SCRIPT}]]"}
            requests = [{**job, "custom_id": str(number)} for number in range(count)]
            batch = await clients[name].post("/v1/session_batches", {"requests": requests})
            created[name] = f"/v1/session_batches/{batch['id']}"
            await _wait_for_running(clients[name], created[name])
        return {
            name: _Batch([result async for result in _results(clients[name], path)]) for name, path in created.items()
        }


async def _wait_for_running(client: MinimalClient, path: str) -> None:
    async def has_started() -> bool:
        batch = await client.get(path)
        return bool(batch["counts"]["pending"] < batch["total"])

    await wait_until(has_started, _PATIENCE)


async def _results(client: MinimalClient, path: str) -> AsyncIterator[dict[str, Any]]:
    """Yields the results as the jobs end."""
    last, deadline = 0, time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        has_ended = (await client.get(path))["status"] == "ended"
        while page := (await client.get(f"{path}/results?limit=1000&after={last}"))["data"]:
            for result in page:
                yield result
            last = page[-1]["number"]
        if has_ended:
            return
        await asyncio.sleep(0.5)


async def _run_bare(cluster: Cluster, total: int) -> float:
    """Returns how long as many bare workflows take, in seconds."""
    client = await connect_temporal(cluster.settings.temporal_address)
    queue = f"bare-{cluster.id}"
    async with open_bare_workers(cluster, queue, _SLOTS):
        began = time.monotonic()
        numbers = iter(range(total))

        async def start() -> list[Any]:
            return [
                await client.start_workflow(
                    BareWorkflow.run,
                    args=[number, _SECONDS],
                    id=f"{queue}-{number}",
                    task_queue=queue,
                    start_signal=WAKE,
                )
                for number in numbers
            ]

        started = await asyncio.gather(*(start() for _ in range(_AT_ONCE)))
        for handles in started:
            for handle in handles:
                await handle.result()
        return time.monotonic() - began


def _figure(found: dict[str, _Batch], total: int, seconds: float, bare_seconds: float, *, quick: bool) -> Figure:
    completed = sum(batch.completed for batch in found.values())
    waits = {name: (found[name].p95_wait, found[name].p95_wait_with_reserved_slots(total / seconds)) for name in _SMALL}
    growth = max(wait / reserved for wait, reserved in waits.values())
    rate = bare_seconds / seconds
    is_fair, is_fast = growth <= _MAX_WAIT, rate >= _MIN_RATE
    return Figure(
        headline=f"{completed} of {total} jobs ended; small batches waited {growth:.2f} times their share",
        summary=f"{total} jobs of three organisations, {len(found[_NOISY].results)} of one: {completed} completed "
        f"in {seconds:.0f} s. The p95 of the waits of the small batches is {growth:.2f} times that with a third of the "
        f"slots reserved (at most {_MAX_WAIT:g}), and {found[_NOISY].p95_wait:.1f} s in the large one. The rate is "
        f"{rate:.2f} times that of bare Temporal (at least {_MIN_RATE:g}).",
        # A sample is too small for the ratios: the start of the first jobs is most of its time.
        holds=completed == total and (quick or (is_fair and is_fast)),
        details={
            "jobs": {name: len(batch.results) for name, batch in found.items()},
            "slots": _WORKERS * _SLOTS,
            "seconds": round(seconds, 1),
            "bare_seconds": round(bare_seconds, 1),
            "p95_wait_seconds": {name: round(batch.p95_wait, 2) for name, batch in found.items()},
            "p95_wait_with_reserved_slots": {name: round(reserved, 2) for name, (_, reserved) in waits.items()},
            "rate": round(rate, 3),
        },
    )
