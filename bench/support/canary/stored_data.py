"""Reads all data that a cluster stores, place by place and completely."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import asyncpg
from redis.asyncio import Redis

from bench.support import cluster_processes
from bench.support.cluster import Cluster
from bench.support.telemetry import metric_totals
from bench.support.telemetry.telemetry_sink import TelemetrySink
from footplate.stack.temporal_connection import connect_temporal

COPY_FILE: Final = "seen-from-inside"
"""The file in a session's tree into which an agent copies everything that it can read."""
PLACES: Final = (
    "sandbox",
    "objects and trees",
    "logs",
    "files of the stack",
    "PostgreSQL",
    "Redis",
    "Temporal",
    "traces and reports",
    "processes",
    "metrics",
)
_CHUNK_BYTES: Final = 32 << 20
_OVERLAP: Final = 4096
_TABLES: Final = """
select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
"""


async def read_everything(cluster: Cluster, sink: TelemetrySink) -> AsyncIterator[tuple[str, bytes]]:
    """Yields the data of every place in chunks, with the name of the place."""
    for place, data in _read_files(cluster):
        yield place, data
    async for data in read_postgres(cluster):
        yield "PostgreSQL", data
    async for data in read_redis(cluster):
        yield "Redis", data
    async for data in read_temporal(cluster):
        yield "Temporal", data
    for data in [*sink.raw]:
        yield "traces and reports", data
    for data in read_processes(cluster):
        yield "processes", data
    for text in await metric_totals.scrape(cluster):
        yield "metrics", text.encode()


def _read_files(cluster: Cluster) -> Iterator[tuple[str, bytes]]:
    for root in {cluster.directory, cluster.stack.directory}:
        for path in sorted(cluster_processes.walk_paths(root)):
            if path.is_file() and not path.is_symlink():
                for piece in _read_chunks(path):
                    yield _kind(path, cluster), piece


def _kind(path: Path, cluster: Cluster) -> str:
    if path.is_relative_to(cluster.stack.directory):
        return "files of the stack"
    if path.is_relative_to(cluster.directory / "logs"):
        return "logs"
    return "sandbox" if path.name == COPY_FILE else "objects and trees"


def _read_chunks(path: Path) -> Iterator[bytes]:
    """Yields the path and the content. Chunks overlap, so that a match across a boundary is found."""
    yield str(path).encode()
    with suppress(FileNotFoundError), path.open("rb") as file:  # servers remove their own files meanwhile
        end = b""
        while piece := file.read(_CHUNK_BYTES):
            yield end + piece
            end = piece[-_OVERLAP:]


async def read_postgres(cluster: Cluster) -> AsyncIterator[bytes]:
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        for table in await connection.fetch(_TABLES):
            async with connection.transaction():
                async for row in connection.cursor(f"select t::text from {table['name']} t"):
                    yield row[0].encode()
    finally:
        await connection.close()


async def read_redis(cluster: Cluster) -> AsyncIterator[bytes]:
    redis: Any = Redis.from_url(cluster.settings.redis_url)
    try:
        async for key in redis.scan_iter(count=1000):
            yield key
            yield flatten_bytes(await _value(redis, key))
    finally:
        await redis.aclose()


async def _value(redis: Any, key: bytes) -> object:
    match await redis.type(key):
        case b"string":
            return await redis.get(key)
        case b"stream":
            return await redis.xrange(key)
        case b"hash":
            return await redis.hgetall(key)
        case b"list":
            return await redis.lrange(key, 0, -1)
        case b"set":
            return await redis.smembers(key)
        case b"zset":
            return await redis.zrange(key, 0, -1)
        case kind:
            raise AssertionError(f"a Redis key of an unsupported type: {kind!r}")


def flatten_bytes(value: object) -> bytes:
    """Returns all bytes in the value unchanged, however it is nested."""
    if isinstance(value, bytes):
        return value + b"\n"
    if isinstance(value, dict):
        return b"".join(flatten_bytes(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple, set)):
        return b"".join(map(flatten_bytes, value))
    return repr(value).encode()


async def read_temporal(cluster: Cluster) -> AsyncIterator[bytes]:
    """Yields the histories and descriptions of all workflows. The namespace belongs to this cluster alone."""
    client = await connect_temporal(cluster.settings.temporal_address)
    async for workflow in client.list_workflows():
        yield repr(workflow).encode()
        yield workflow.raw_info.SerializeToString()
        history = client.get_workflow_handle(workflow.id, run_id=workflow.run_id)
        async for event in history.fetch_history_events():
            yield event.SerializeToString()


def read_processes(cluster: Cluster) -> Iterator[bytes]:
    """Yields what other users could read of guardians, sandboxes and tools. The api and the workers have the key."""
    holders = {program.pid for program in (*cluster.apis, *cluster.workers) if program.is_running}
    for pid in cluster_processes.find_cluster_processes(cluster.id, cluster.directory):
        for name in ("environ", "cmdline") if pid not in holders else ("cmdline",):
            try:
                yield Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue


async def watch_processes(cluster: Cluster, seen: list[bytes], stop: asyncio.Event) -> int:
    """Collects process data while turns run, and returns how many items it read."""
    count = 0
    while not stop.is_set():
        found = [*read_processes(cluster)]
        count += len(found)
        seen += found
        await asyncio.sleep(0.2)
    return count
