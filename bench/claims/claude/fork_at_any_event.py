"""A fork at any event gives the model exactly the history up to it, and costs the same however long that is.

A session of thirty events, and a fork of it, are forked at each event: the model request of the fork's first turn is
compared with the parent's log. Then the fork request is timed, at the newest and at an early event, alternating between
a parent with ten turns and one with a thousand. Finally, the bytes that a fork and its first turn write are counted,
minus those of the first turn of a new session. Each harness does all of it.
"""

from collections.abc import Mapping
from statistics import median
from typing import Final

from bench.prove.figure import Figure
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.forks import history_comparison
from bench.support.forks.fork_storage import SHORT, ForkCosts, ForkMeasurement
from bench.support.minimal_client import MinimalClient
from footplate.domain.json import JsonObject
from footplate.testing import replies, reply, text

HARNESSES: Final = ("native", "claude")
# With a warm CLI, a parent of a thousand turns takes minutes to make. Its forks start their own CLI.
_SETTINGS: Final = {"FOOTPLATE_KEPT_SESSIONS": "2", "FOOTPLATE_SLOTS": "0"}
_MAX_TIME_RATIO: Final = 1.2
_MAX_TIME_RATIO_QUICK: Final = 2.0
_MAX_BYTES: Final = 8 * 1024
_MAX_BYTES_QUICK: Final = 256 * 1024
"""The limit for a sample of a few forks, during which the database may write other data too."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    every, turns, forks, writes = (15, 12, 10, 2) if quick else (1, 1000, 400, 20)
    async with open_cluster(environment=_SETTINGS) as cluster, Client(cluster) as client:
        fork_counts = [
            await history_comparison.fork_at_each_event(cluster, client, harness, every=every) for harness in HARNESSES
        ]
        validated = client.ledger.validated
        await cluster.model.clear()
        await cluster.model.install("linear", replies(reply(text("Yes, {n}."), repeat=True)))
        async with MinimalClient(cluster.base_urls[0], cluster.key) as lean:
            costs = {
                harness: await ForkMeasurement(
                    cluster, lean, await lean.create_session_fields(harness=harness)
                ).measure(turns=turns, forks=forks, writes=writes)
                for harness in HARNESSES
            }
    limits = (_MAX_TIME_RATIO_QUICK, _MAX_BYTES_QUICK) if quick else (_MAX_TIME_RATIO, _MAX_BYTES)
    return _judge(sum(fork_counts), validated, costs, *limits)


def _judge(forks: int, validated: int, costs: Mapping[str, ForkCosts], max_time_ratio: float, max_bytes: int) -> Figure:
    figures = [
        f"{harness}: forking {cost.turns} turns takes {cost.ratio:.2f} times as long as forking {SHORT} "
        f"({median(cost.long) * 1000:.1f} ms; limit {max_time_ratio}) and writes {cost.bytes_long:,.0f} "
        f"bytes besides its "
        f"first turn ({cost.bytes_short:,.0f} of {SHORT} turns; limit {max_bytes:,})"
        for harness, cost in costs.items()
    ]
    worst = max(costs.values(), key=lambda cost: cost.ratio)
    max_written = max(max(cost.bytes_long, cost.bytes_short) for cost in costs.values())
    headline = (
        f"{forks} forks had exactly their history; forking {worst.turns:,} turns costs {worst.ratio:.2f} times {SHORT}"
    )
    if max_written > max_bytes:
        headline = f"a fork writes {max_written:,.0f} bytes (limit {max_bytes:,})"
    measured: JsonObject = {
        harness: {
            "milliseconds_short": round(median(cost.short) * 1000, 2),
            "milliseconds_long": round(median(cost.long) * 1000, 2),
            "written": cost.written,
        }
        for harness, cost in costs.items()
    }
    return Figure(
        headline=headline,
        summary=f"{forks} forks at the events of a session of {history_comparison.EVENTS} "
        f"({', '.join(HARNESSES)}): the model "
        f"got exactly the history up to the event, the parent did not change; {'; '.join(figures)}",
        holds=all(
            cost.ratio <= max_time_ratio and max(cost.bytes_long, cost.bytes_short) <= max_bytes
            for cost in costs.values()
        ),
        details={"validated": validated, **measured},
    )
