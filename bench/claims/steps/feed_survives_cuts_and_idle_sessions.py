"""A feed has every change once and in order despite cuts, hides private sessions, and is as fast beside idle ones.

Three parts. A client whose connection is cut reconnects to either of two replicas, while sessions run; what it received
is compared with the log of each session. Meanwhile a viewer without rights follows the feed, and finds nothing of a
private session in it. Then two deployments on the same database server are measured in turn: one with a million idle
sessions, one with none. The delay is the time from the start of a change's transaction to its frame.
"""

import asyncio
import random
import statistics
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import asyncpg
import httpx2
import orjson

from bench.prove.figure import Figure, require, time_limit
from bench.support.clients import Client, raw_client
from bench.support.cluster import Cluster, open_cluster, share_stack
from bench.support.scale.inactive_sessions import copy_session
from bench.support.streams.feed_reader import FeedReader
from footplate.domain.sessions.feed import SESSION_CREATED, is_change

_MAX_CONNECTION_SECONDS: Final = 0.3
_PATIENCE: Final = 120.0
_MAX_RATIO: Final = 1.3
_SESSIONS: Final = 4
_LOGGED: Final = "select seq, event_id, type, body from events where session_id = $1 and ref_seq is null order by seq"


@dataclass(frozen=True, slots=True)
class _CutResult:
    changes: int
    faults: Sequence[str]
    hidden_frames: int
    """Frames that the viewer without rights received, none of which may concern the private session."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    cuts, idle, rounds = (12, 2000, 10) if quick else (300, 1_000_000, 400)
    async with share_stack(enabled=True):
        async with open_cluster(apis=2) as cluster:
            seen = await _run_with_cuts(cluster, cuts)
        print(f"  {cuts} cuts: {seen.changes} changes, faults: {[*seen.faults]}", flush=True)
        async with open_cluster() as empty, open_cluster() as full:
            delays = await _measure_delays(empty, full, idle=idle, rounds=rounds)
    p95 = [_percentile(each) for each in delays]
    ratio = p95[1] / p95[0]
    fits = ratio <= time_limit(_MAX_RATIO, quick=quick)
    headline = f"{cuts} cuts: all {seen.changes:,} changes arrived once; p95 delay {ratio:.2f} times with idle sessions"
    if seen.faults:
        headline = f"{cuts} cuts: {len(seen.faults)} faults"
    return Figure(
        headline=headline,
        summary=f"{cuts} cuts across two replicas while {_SESSIONS} sessions ran: {seen.changes} changes, each once "
        f"and in the order of its session, {len(seen.faults)} faults; a viewer without rights received "
        f"{seen.hidden_frames} frames, none about the private session; the p95 delay of a change is "
        f"{1000 * p95[1]:.1f} ms beside {idle:,} idle sessions and {1000 * p95[0]:.1f} ms beside "
        f"none: {ratio:.2f} times (at most {_MAX_RATIO})"
        + (f"; faults: {'; '.join(seen.faults[:3])}" if seen.faults else ""),
        holds=not seen.faults and fits,
        details={
            "faults": [*seen.faults],
            "p95_ms": [round(1000 * each, 2) for each in p95],
            "median_ms": [round(1000 * statistics.median(each), 2) for each in delays],
            "delays": len(delays[0]),
        },
    )


async def _run_with_cuts(cluster: Cluster, cuts: int) -> _CutResult:
    async with AsyncExitStack() as exits:
        admin = await exits.enter_async_context(raw_client(cluster))
        client = await exits.enter_async_context(Client(cluster))
        database = await asyncpg.connect(cluster.settings.database_url)
        exits.push_async_callback(database.close)
        reader = await exits.enter_async_context(FeedReader.open(cluster))
        stranger = await exits.enter_async_context(FeedReader.open(cluster, await _create_viewer(admin)))
        await reader.read(0, seconds=_PATIENCE, until=lambda: True)  # the start position
        await stranger.read(1, seconds=_PATIENCE, until=lambda: True)
        private = await client.session(extra_body={"visibility": "private"}, title="A private plan")
        sessions = [private, *[await client.session() for _ in range(_SESSIONS - 1)]]
        enough = asyncio.Event()
        turns = [asyncio.create_task(_run_turns(client, admin, each, enough)) for each in sessions]
        try:
            for _ in range(cuts):
                seconds = random.uniform(0, _MAX_CONNECTION_SECONDS)
                await asyncio.gather(
                    *(each.read(random.randrange(2), seconds=seconds) for each in (reader, stranger)),
                )
        finally:
            enough.set()
        await asyncio.gather(*turns)
        last = await client.session()  # visible to both, and the last change
        for each in (reader, stranger):
            await each.read(0, seconds=_PATIENCE, until=lambda each=each: each.changes[-1][1]["session_id"] == last)
        faults = [fault for each in sessions for fault in await _compare(database, reader, each)]
    positions = [position for position, _ in reader.changes]
    if positions != [*range(positions[0], positions[0] + len(positions))]:
        faults.append("the positions have gaps or are not in order")
    if private in orjson.dumps(stranger.changes).decode() or b"private plan" in orjson.dumps(stranger.changes):
        faults.append("the viewer received a change of the private session")
    return _CutResult(len(reader.changes), faults, len(stranger.changes))


async def _create_viewer(admin: httpx2.AsyncClient) -> str:
    """Returns the key of a member that may only look."""
    member = (await admin.post("/v1/members", json={"name": "viewer", "roles": ["viewer"]})).json()
    body = {"name": "k", "member_id": member["id"], "roles": ["viewer"]}
    return str((await admin.post("/v1/api_keys", json=body)).json()["secret"])


async def _run_turns(client: Client, admin: httpx2.AsyncClient, session_id: str, enough: asyncio.Event) -> None:
    number = 0
    while not enough.is_set():
        await client.run_turn(session_id, "Hello")
        await _update(admin, session_id, number := number + 1)


async def _update(http: httpx2.AsyncClient, session_id: str, number: int) -> None:
    response = await http.post(f"/v1/sessions/{session_id}", json={"metadata": {"n": str(number)}})
    require(holds=response.is_success, otherwise=f"the session could not be updated: {response.text}")


async def _compare(database: asyncpg.Connection, reader: FeedReader, session_id: str) -> Sequence[str]:
    """Compares what the feed reported of a session with its log."""
    rows = await database.fetch(_LOGGED, session_id)
    expected = [(row["seq"], row["event_id"]) for row in rows if is_change(row["type"], orjson.loads(row["body"]))]
    own = [change for _, change in reader.changes if change["session_id"] == session_id]
    created = [change["type"] for change in own[:1]] == [SESSION_CREATED]
    received = [(change["session_position"], change["id"]) for change in own[1:]]
    if created and received == expected:
        return []
    return [f"{session_id}: {len(received)} changes received, {len(expected)} in its log, or in another order"]


async def _measure_delays(empty: Cluster, full: Cluster, *, idle: int, rounds: int) -> tuple[list[float], list[float]]:
    async with AsyncExitStack() as exits:
        measured: list[tuple[httpx2.AsyncClient, FeedReader, str]] = []
        for cluster in (empty, full):
            http = await exits.enter_async_context(raw_client(cluster))
            session_id = await (await exits.enter_async_context(Client(cluster))).session()
            if cluster is full:
                await _add_idle_sessions(cluster, session_id, idle)
            reader = await exits.enter_async_context(FeedReader.open(cluster))
            following = asyncio.create_task(reader.read(0, seconds=3600))
            exits.callback(following.cancel)
            measured.append((http, reader, session_id))
        found: tuple[list[float], list[float]] = ([], [])
        for number in range(-10, rounds):  # the first ten are not counted
            for (http, reader, session_id), delays in zip(measured, found, strict=True):
                delay = await _measure_one(http, reader, session_id, number)
                if number >= 0:
                    delays.append(delay)
            if number % 100 == 0:
                print(f"  {number} of {rounds} rounds", flush=True)
    return found


async def _measure_one(http: httpx2.AsyncClient, reader: FeedReader, session_id: str, number: int) -> float:
    known = {*reader.delays}
    await _update(http, session_id, number)
    async with asyncio.timeout(_PATIENCE):
        while not (new := reader.delays.keys() - known):  # noqa: ASYNC110 - set by another task
            await asyncio.sleep(0.001)
    return reader.delays[new.pop()]


async def _add_idle_sessions(cluster: Cluster, session_id: str, count: int) -> None:
    """Copies a session that was never used. The copies are old, so the feed has no rows about them any more."""
    database: asyncpg.Connection[Any] = await asyncpg.connect(cluster.settings.database_url)
    try:
        await database.execute("set session_replication_role = replica")
        await copy_session(database, session_id, count)
        await database.execute("analyze sessions, session_heads")
    finally:
        await database.close()


def _percentile(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
