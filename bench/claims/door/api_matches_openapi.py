"""Whatever a client sends, the API responds as its OpenAPI document says and leaks no tasks or connections.

In two processes, schemathesis generates requests from the OpenAPI document: one calls operations one by one, the other
runs scenarios of many steps. Then come malformed cursors, request headers and WebSocket frames. At the end, the API
must have the same tasks and connections as before.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import orjson

from bench.prove.figure import Figure, require
from bench.support.cluster import Cluster, open_cluster
from bench.support.fuzz import generated
from bench.support.fuzz.generated import Order, Phase, Report
from bench.support.fuzz.target import Left, Target, open_target
from bench.support.fuzz.thrown import Thrown, throw
from bench.support.speed.measured import ROOT

_CASES: Final = 20_000
_THROWN: Final = 10_000
_SEATS: Final = 3
_SEED: Final = 6
_PATIENCE: Final = 1500.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with open_cluster(apis=0) as cluster, open_target(cluster) as target:
        seats = await target.seats(_SEATS)
        await throw(target.url, target.key, seats, count=50, seed=_SEED)  # opens the connections that stay open
        before = await target.tasks()
        orders = await _orders(cluster, target, quick=quick)
        started = time.monotonic()
        reports = await asyncio.gather(*(_generate(cluster, order) for order in orders))
        seconds = time.monotonic() - started
        thrown = await throw(target.url, target.key, seats, count=200 if quick else _THROWN, seed=_SEED + 1)
        left = await target.settled(before)
        await target.seats(1)  # it still works
    return _figure(reports, thrown, left, seconds=seconds, quick=quick)


async def _orders(cluster: Cluster, target: Target, *, quick: bool) -> Sequence[Order]:
    """Returns the runs of schemathesis, each in its own organisation, so that none deletes the data of another."""
    one_by_one: Sequence[Phase] = ["fuzzing"] if quick else ["coverage", "fuzzing"]
    in_steps: Sequence[Phase] = ["stateful"]
    orders = []
    for phases in (one_by_one, in_steps):
        key = await cluster.create_key(phases[-1])
        orders.append(
            Order(
                url=target.url,
                key=key,
                seed=_SEED,
                cases=1 if quick else _CASES // 2,
                phases=phases,
                examples=4 if quick else 60,
                seats=[seat.named() for seat in await target.seats(_SEATS, key=key)],
            )
        )
    return orders


async def _generate(cluster: Cluster, order: Order) -> Report:
    """Runs schemathesis in a separate process, because it keeps a core busy."""
    directory = cluster.directory / f"generated-{'-'.join(order.phases)}"
    directory.mkdir()
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", generated.__name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            cwd=directory,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(directory), "LANG": "C.UTF-8"},
        )
        try:
            async with asyncio.timeout(_PATIENCE):
                answer, _ = await process.communicate(orjson.dumps(asdict(order)))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    said = (directory / "log").read_text(errors="replace")
    require(holds=process.returncode == 0, otherwise=f"schemathesis ended with {process.returncode}: {said[-1000:]}")
    return Report.of(orjson.loads(answer))


def _figure(reports: Sequence[Report], thrown: Thrown, left: Left, *, seconds: float, quick: bool) -> Figure:
    made = sum(reports, Report())
    answers = made.by_operation()
    server_errors = sum(count for name, count in made.answers.items() if name.startswith("5"))
    succeeded = sum("200" in statuses for statuses in answers.values())
    conformance = sum(count for name, count in made.failures.items() if "_conformance" in name)
    others = made.failures.total() - conformance
    wanted = (1, 1) if quick else (_CASES, _THROWN)
    samples = [*made.samples, *made.errors, *made.given_up, *thrown.samples, *left.logged[:20]]
    for sample in samples:
        print(sample, flush=True)
    kinds = ", ".join(f"{count:,} {kind}s" for kind, count in sorted(thrown.cases.items()))
    problems = others + len(made.errors) + left.tasks.total() + left.connections + len(left.logged)
    return Figure(
        headline=f"{made.cases.total() + thrown.cases.total():,} generated requests: "
        f"{server_errors + thrown.server_errors} server errors, {conformance + thrown.wrong.total()} undocumented "
        "responses" + (f", {problems} other problems" if problems else ""),
        summary=f"{made.cases.total():,} requests by schemathesis to {len(answers)} operations "
        f"({made.cases['stateful']:,} of them in scenarios of several steps; {succeeded} operations "
        f"succeeded) in {seconds:.0f} s: {server_errors} server errors, {conformance} undocumented responses, "
        f"{others} other complaints, {len(made.given_up)} requests that it could not generate; "
        f"{thrown.cases.total():,} malformed cases ({kinds}): "
        f"{thrown.server_errors} server errors, {thrown.wrong.total()} wrong responses, {left.tasks.total()} tasks and "
        f"{left.connections} connections remained, {len(left.logged)} unexpected errors in the log",
        holds=made.cases.total() >= wanted[0]
        and thrown.cases.total() >= wanted[1]
        and not (server_errors or made.failures or made.errors or thrown.wrong)
        and not (left.tasks or left.connections or left.logged),
        details={
            "cases": {**made.cases},
            "answers": {operation: {**statuses} for operation, statuses in sorted(answers.items())},
            "complaints": {**made.failures},
            "samples": [*samples],
            "thrown": {"answers": {**thrown.statuses}, "closings": {**thrown.codes}, "wrong": {**thrown.wrong}},
            "tasks_left": {**left.tasks},
        },
    )
