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
from bench.support.fuzz import generated_requests
from bench.support.fuzz.generated_requests import FuzzOrder, FuzzReport, Phase
from bench.support.fuzz.malformed_sender import SendReport, send_malformed
from bench.support.fuzz.target_api import RemainingState, Target, open_target
from bench.support.speed.measurement import ROOT

_CASES: Final = 20_000
_MALFORMED_CASES: Final = 10_000
_SEATS: Final = 3
_SEED: Final = 6
_TIMEOUT_SECONDS: Final = 1500.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with open_cluster(apis=0) as cluster, open_target(cluster) as target:
        seats = await target.seats(_SEATS)
        await send_malformed(
            target.url, target.key, seats, count=50, seed=_SEED
        )  # opens the connections that stay open
        before = await target.list_tasks()
        orders = await _create_orders(cluster, target, quick=quick)
        started = time.monotonic()
        reports = await asyncio.gather(*(_generate(cluster, order) for order in orders))
        seconds = time.monotonic() - started
        thrown = await send_malformed(
            target.url, target.key, seats, count=200 if quick else _MALFORMED_CASES, seed=_SEED + 1
        )
        leftovers = await target.wait_settled(before)
        await target.seats(1)  # it still works
    return _figure(reports, thrown, leftovers, seconds=seconds, quick=quick)


async def _create_orders(cluster: Cluster, target: Target, *, quick: bool) -> Sequence[FuzzOrder]:
    """Returns the runs of schemathesis, each in its own organisation, so that none deletes the data of another."""
    one_by_one: Sequence[Phase] = ["fuzzing"] if quick else ["coverage", "fuzzing"]
    in_steps: Sequence[Phase] = ["stateful"]
    orders = []
    for phases in (one_by_one, in_steps):
        key = await cluster.create_key(phases[-1])
        orders.append(
            FuzzOrder(
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


async def _generate(cluster: Cluster, order: FuzzOrder) -> FuzzReport:
    """Runs schemathesis in a separate process, because it keeps a core busy."""
    directory = cluster.directory / f"generated-{'-'.join(order.phases)}"
    directory.mkdir()
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", generated_requests.__name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            cwd=directory,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(directory), "LANG": "C.UTF-8"},
        )
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                output, _ = await process.communicate(orjson.dumps(asdict(order)))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    log_text = (directory / "log").read_text(errors="replace")
    require(
        holds=process.returncode == 0, otherwise=f"schemathesis ended with {process.returncode}: {log_text[-1000:]}"
    )
    return FuzzReport.of(orjson.loads(output))


def _figure(
    reports: Sequence[FuzzReport], thrown: SendReport, leftovers: RemainingState, *, seconds: float, quick: bool
) -> Figure:
    total_report = sum(reports, FuzzReport())
    statuses_by_operation = total_report.by_operation()
    server_errors = sum(count for name, count in total_report.responses.items() if name.startswith("5"))
    succeeded = sum("200" in statuses for statuses in statuses_by_operation.values())
    conformance = sum(count for name, count in total_report.failures.items() if "_conformance" in name)
    other_complaints = total_report.failures.total() - conformance
    min_cases = (1, 1) if quick else (_CASES, _MALFORMED_CASES)
    samples = [
        *total_report.samples,
        *total_report.errors,
        *total_report.given_up,
        *thrown.samples,
        *leftovers.logged[:20],
    ]
    for sample in samples:
        print(sample, flush=True)
    kinds = ", ".join(f"{count:,} {kind}s" for kind, count in sorted(thrown.cases.items()))
    problems = (
        other_complaints
        + len(total_report.errors)
        + leftovers.tasks.total()
        + leftovers.connections
        + len(leftovers.logged)
    )
    return Figure(
        headline=f"{total_report.cases.total() + thrown.cases.total():,} generated requests: "
        f"{server_errors + thrown.server_errors} server errors, {conformance + thrown.wrong.total()} undocumented "
        "responses" + (f", {problems} other problems" if problems else ""),
        summary=f"{total_report.cases.total():,} requests by schemathesis to {len(statuses_by_operation)} operations "
        f"({total_report.cases['stateful']:,} of them in scenarios of several steps; {succeeded} operations "
        f"succeeded) in {seconds:.0f} s: {server_errors} server errors, {conformance} undocumented responses, "
        f"{other_complaints} other complaints, {len(total_report.given_up)} requests that it could not generate; "
        f"{thrown.cases.total():,} malformed cases ({kinds}): "
        f"{thrown.server_errors} server errors, {thrown.wrong.total()} wrong responses, "
        f"{leftovers.tasks.total()} tasks and "
        f"{leftovers.connections} connections remained, {len(leftovers.logged)} unexpected errors in the log",
        holds=total_report.cases.total() >= min_cases[0]
        and thrown.cases.total() >= min_cases[1]
        and not (server_errors or total_report.failures or total_report.errors or thrown.wrong)
        and not (leftovers.tasks or leftovers.connections or leftovers.logged),
        details={
            "cases": {**total_report.cases},
            "answers": {operation: {**statuses} for operation, statuses in sorted(statuses_by_operation.items())},
            "complaints": {**total_report.failures},
            "samples": [*samples],
            "thrown": {"answers": {**thrown.statuses}, "closings": {**thrown.codes}, "wrong": {**thrown.wrong}},
            "tasks_left": {**leftovers.tasks},
        },
    )
