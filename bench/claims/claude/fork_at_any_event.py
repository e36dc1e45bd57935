"""A fork at any event tells the model exactly the history up to there, and costs the same however long that is.

At each event of a session of thirty, and of a fork of it: the request that the fork's first turn sends to the model is
held against the parent's log. Then the time of the request that forks, at the newest event and at an early one, of a
parent with ten turns and of one with a thousand, by turns; and all bytes that a fork and its first turn write, less
those that the first turn of a new session writes. All of it with each harness.
"""

from collections.abc import Mapping
from statistics import median
from typing import Final

from bench.prove.figure import Figure
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.forks import histories
from bench.support.forks.costs import SHORT, Costs, Measuring
from bench.support.lean import Lean
from footplate.testing import replies, reply, text

HARNESSES: Final = ("native", "claude")
# A CLI that stays connected makes a parent of a thousand turns in minutes. Its forks start one of their own.
_SETTINGS: Final = {"FOOTPLATE_KEPT_SESSIONS": "2", "FOOTPLATE_SLOTS": "0"}
_MOST_TIME: Final = 1.2
_SANITY: Final = 2.0
_MOST_BYTES: Final = 8 * 1024
_SANE_BYTES: Final = 256 * 1024
"""Of a few forks, beside which the database may have had something of its own to write."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    every, turns, forks, writes = (15, 12, 10, 2) if quick else (1, 1000, 400, 20)
    async with open_cluster(environment=_SETTINGS) as cluster, Client(cluster) as client:
        shown = [await histories.forked_at_each(cluster, client, harness, every=every) for harness in HARNESSES]
        validated = client.ledger.validated
        await cluster.model.clear()
        await cluster.model.install("linear", replies(reply(text("Yes, {n}."), repeat=True)))
        async with Lean(cluster.base_urls[0], cluster.key) as lean:
            costs = {
                harness: await Measuring(cluster, lean, await lean.seat(harness=harness)).run(
                    turns=turns, forks=forks, writes=writes
                )
                for harness in HARNESSES
            }
    bounds = (_SANITY, _SANE_BYTES) if quick else (_MOST_TIME, _MOST_BYTES)
    return _judge(sum(shown), validated, costs, *bounds)


def _judge(forks: int, validated: int, costs: Mapping[str, Costs], most_time: float, most_bytes: int) -> Figure:
    figures = [
        f"{harness}: forking {cost.turns} turns takes {cost.ratio:.2f} times as long as forking {SHORT} "
        f"({median(cost.long) * 1000:.1f} ms; at most {most_time}) and writes {cost.bytes_long:,.0f} bytes beside what "
        f"its first turn adds ({cost.bytes_short:,.0f} of {SHORT} turns; at most {most_bytes:,})"
        for harness, cost in costs.items()
    ]
    return Figure(
        text=f"{forks} forks at the events of a session of {histories.EVENTS} ({', '.join(HARNESSES)}): the model was "
        f"told exactly the history up to there, the parent stayed as it was; {'; '.join(figures)}",
        holds=all(
            cost.ratio <= most_time and max(cost.bytes_long, cost.bytes_short) <= most_bytes for cost in costs.values()
        ),
        details={
            "validated": validated,
            **{
                harness: {
                    "milliseconds_short": round(median(cost.short) * 1000, 2),
                    "milliseconds_long": round(median(cost.long) * 1000, 2),
                    "written": cost.written,
                }
                for harness, cost in costs.items()
            },
        },
    )
