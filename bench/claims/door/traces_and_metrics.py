"""One trace shows a turn from request to tool, and the totals in `/metrics` equal those of the log.

The trace goes through a real collector process, and its output is checked. Then turns of every kind run on several
sessions at once, and each total that the processes counted is compared with the log.
"""

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support.clients import Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from bench.support.telemetry import metric_totals, trace_checks, workload
from bench.support.telemetry.metric_totals import Totals
from bench.support.telemetry.otlp_collector import open_collector
from bench.support.telemetry.telemetry_sink import TelemetrySink, open_sink
from footplate.stack.orphan_processes import wait_until

_TURNS: Final = 500
_TURNS_QUICK: Final = 24
_SESSIONS: Final = 8
_BROKEN: Final = "broken"
_MAX_COUNTING_SECONDS: Final = 10.0
_SETTINGS: Final = {
    "FOOTPLATE_METRICS_ADDRESS": "127.0.0.1:0",
    # Short because of the crash, but longer than a busy machine delays a worker: a worker that loses its turn during a
    # commit does not know whether to count it.
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "6",
    "FOOTPLATE_LEASE": "4",
    "FOOTPLATE_MAX_FAILURES": "1",
    "FOOTPLATE_RETRY_WAIT": "0.05",
    "OTEL_BSP_SCHEDULE_DELAY": "200",
}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns = _TURNS_QUICK if quick else _TURNS
    async with open_sink() as sink, _open_collector(sink) as endpoint:
        environment = {**_SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "SENTRY_DSN": sink.dsn}
        async with open_cluster(workers=2, environment=environment) as cluster, Client(cluster) as client:
            broken = await cluster.create_key(_BROKEN)
            spans = await _check_traces(cluster, client, sink, broken)
            await workload.install_scripts(cluster)
            log, metrics = await _count_turns(cluster, client, turns)
            lines = await _check_usage(cluster, await metric_totals.totals_from_log(cluster), (cluster.key, broken))
            await _check_labels(cluster)
        trace_checks.require_no_private_text(sink, cluster.key)
    wrong = metric_totals.differences(log, metrics)
    counted = _sum(log, "turns")
    headline = f"{spans} spans per turn; {len(log)} totals of /metrics equal the log's over {counted} turns"
    if wrong or counted != turns:
        headline = f"{len(wrong)} totals of /metrics differ from the log's; {counted} of {turns} turns counted"
    return Figure(
        headline=headline,
        summary=f"one turn is {spans} spans in a separate collector, with correct parents and GenAI attributes; a "
        f"second attempt after SIGKILL is in the same trace; an exception arrives at OTLP and Sentry; over {counted} "
        f"turns ({_by_status(log)}) on {_SESSIONS} sessions {len(log)} totals of /metrics and {lines} lines of "
        f"/v1/usage equal the log's: {_sum(log, 'tokens')} tokens, ${_sum(log, 'cost') / 1e6:.2f}, "
        f"{_sum(log, 'tools')} calls" + (f"; the first difference: {wrong[0]}" if wrong else ""),
        holds=not wrong and counted == turns,
        details={"different": [*wrong], **{" ".join(name): value for name, value in sorted(log.items())}},
    )


@asynccontextmanager
async def _open_collector(sink: TelemetrySink) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        async with open_collector(Path(directory), sink.url) as endpoint:
            yield endpoint


async def _check_traces(cluster: Cluster, client: Client, sink: TelemetrySink, broken_key: str) -> int:
    spans = await trace_checks.check_one_turn(cluster, client, sink)
    await trace_checks.check_after_crash(cluster, client, sink)
    async with Client(cluster, key=broken_key) as broken:
        await trace_checks.check_exception(cluster, broken, sink, organisation=_BROKEN)
    return spans


async def _count_turns(cluster: Cluster, client: Client, turns: int) -> tuple[Totals, Totals]:
    """Runs turns; returns what they added to the log and to the metrics of the processes, which live throughout."""
    log_before, metrics_before = (
        await metric_totals.totals_from_log(cluster),
        await metric_totals.totals_from_metrics(cluster),
    )
    await workload.run_workload(client, turns=turns, sessions=_SESSIONS)
    log = _subtract_totals(await metric_totals.totals_from_log(cluster), log_before)
    metrics: Totals = Counter()

    async def totals_are_equal() -> bool:
        # A client may receive an event just before the worker has counted it.
        nonlocal metrics
        metrics = _subtract_totals(await metric_totals.totals_from_metrics(cluster), metrics_before)
        return not metric_totals.differences(log, metrics)

    await wait_until(totals_are_equal, _MAX_COUNTING_SECONDS)
    return log, metrics


async def _check_usage(cluster: Cluster, log: Totals, keys: Sequence[str]) -> int:
    """Checks that `/v1/usage` by model, summed over the organisations of the keys, equals the log. Returns its number
    of lines.
    """
    lines: list[dict[str, Any]] = []
    for key in keys:
        async with raw_client(cluster, key=key) as http:
            response = await http.get("/v1/usage", params={"group_by": "model"})
        lines += response.raise_for_status().json()["data"]
    reported: Totals = Counter()
    for line in lines:
        model, usage = line["model"], line["usage"]
        reported["tokens", "input", model] += usage["input_tokens"]
        reported["tokens", "output", model] += usage["output_tokens"]
        reported["tokens", "cache_read", model] += usage["cache_read_input_tokens"]
        reported["tokens", "cache_write", model] += usage["cache_creation"]["ephemeral_5m_input_tokens"]
        reported["cost", model] += usage.get("cost_microusd", 0)
    expected = Counter({name: value for name, value in log.items() if name[0] in {"tokens", "cost"}})
    wrong = metric_totals.differences(expected, +reported)
    require(holds=not wrong, otherwise=f"/v1/usage differs from the log: {wrong[:3]}")
    return len(lines)


async def _check_labels(cluster: Cluster) -> None:
    for text in await metric_totals.scrape(cluster):
        found = [prefix for prefix in ("sesn_", "turn_0", "agent_0", cluster.key) if prefix in text]
        require(holds=not found, otherwise="a metric's label names a session, a turn, an agent or a key")


def _subtract_totals(after: Totals, before: Totals) -> Totals:
    return +Counter({name: value - before[name] for name, value in after.items()})


def _sum(totals: Totals, kind: str) -> int:
    return sum(value for name, value in totals.items() if name[0] == kind)


def _by_status(totals: Totals) -> str:
    return ", ".join(f"{value} {name[1]}" for name, value in sorted(totals.items()) if name[0] == "turns")
