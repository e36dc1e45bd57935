"""A stream delivers each position once, despite cuts, kills and stuck clients; late clients get the whole message.

Four parts: a client whose connection is cut and that reconnects to either of two replicas; a worker that is killed
between commit and publish; clients that never read; clients that join in the middle of a message. Every frame is
validated with the SDK's models.
"""

import statistics
from typing import Final

import asyncpg

from bench.prove.figure import Figure
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.minimal_client import MinimalClient
from bench.support.response_validation import ValidationLedger
from bench.support.streams.cut_connections import run_with_cuts
from bench.support.streams.late_joiners import join_during_messages
from bench.support.streams.lost_publish import lost_publishes
from bench.support.streams.unread_streams import measure_delay, measure_held_memory

_ENVIRONMENT: Final = {"FOOTPLATE_HEARTBEAT_TIMEOUT": "2", "FOOTPLATE_LEASE": "1", "FOOTPLATE_WRITE_SECONDS": "600"}
_MAX_SECONDS_LATE: Final = 2.0
_MAX_SLOWDOWN: Final = 1.05
_MAX_HELD_BYTES: Final = 1_000_000
_QUICK_SLACK: Final = 3


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    cut, kills, joiners, pairs, stuck = (12, 1, 2, 1, 2) if quick else (300, 20, 100, 60, 20)
    ledger = ValidationLedger()
    async with (
        open_cluster(apis=2, environment=_ENVIRONMENT) as cluster,
        Client(cluster, api=0, ledger=ledger) as one,
        Client(cluster, api=1, ledger=ledger) as other,
        MinimalClient(cluster.base_urls[0], cluster.key) as lean,
    ):
        database = await asyncpg.connect(cluster.settings.database_url)
        try:
            seen = await run_with_cuts(cluster, (one, other), database, cut)
            joined = await join_during_messages(cluster, (one, other), joiners)
            slowed = await measure_delay(cluster, lean, pairs, ledger)
            memory = await measure_held_memory(
                cluster, lean, stuck, ledger, rounds=15 if quick else 50, warm=1 if quick else 2
            )
            late = await lost_publishes(cluster, other, database, kills)
        finally:
            await database.close()
    order = "each once and in order" if seen.exact else "NOT each once and in order"
    checks = {
        "order": seen.exact,
        "late events": max(late) <= _MAX_SECONDS_LATE,
        "turn duration": slowed.ratio <= (_QUICK_SLACK if quick else _MAX_SLOWDOWN),
        "memory": memory.total <= _MAX_HELD_BYTES * (_QUICK_SLACK if quick else 1),
        "late clients": joined >= joiners,
        "validation": not ledger.mismatches,
    }
    headline = f"{seen.cuts} cuts: all {seen.positions:,} positions arrived once and in order"
    if failed := [name for name, holds in checks.items() if not holds]:
        headline = f"{seen.cuts} cuts; failed checks: {', '.join(failed)}"
    return Figure(
        headline=headline,
        summary=f"{seen.cuts} cuts, {seen.in_a_preview} of them inside a message: {seen.positions} positions, {order}; "
        f"{len(late)} kills before publish: last event at most {max(late):.2f} s late (limit "
        f"{_MAX_SECONDS_LATE:g}); a turn of "
        f"{statistics.median(slowed.undisturbed):.2f} s takes {slowed.ratio - 1:+.1%} beside a client that "
        f"never reads; of "
        f"{memory.sent / 1e6:.1f} MB sent to it, {memory.total / 1e6:.2f} MB stay in memory "
        f"({memory.process / 1e6:.2f} in the API, {memory.kernel / 1e6:.2f} in the kernel); {joined} clients joined in "
        "the middle of a message and got all of it",
        holds=not failed,
        details={
            "connections": [*seen.by_replica],
            "late": [round(seconds, 3) for seconds in late],
            "stuck_clients": memory.clients,
            "turns_alone": [round(seconds, 3) for seconds in slowed.undisturbed],
            "turns_beside": [round(seconds, 3) for seconds in slowed.disturbed],
            "events_validated": ledger.validated,
        },
    )
