"""Plants canaries in every place and every encoding, to show that the search would find the real key there."""

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import asyncpg
import httpx2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from redis.asyncio import Redis

from bench.support import cluster_processes
from bench.support.canary.canary_encodings import PLANTED_ENCODINGS, Canary
from bench.support.cluster import Cluster
from bench.support.telemetry.telemetry_sink import TelemetrySink
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal

Plants = dict[tuple[str, str], Canary]
"""The canary of each place and encoding."""

_PLANTED_PLACES: Final = (
    "sandbox",
    "objects and trees",
    "logs",
    "PostgreSQL",
    "Redis",
    "Temporal",
    "traces and reports",
    "processes",
)


def new_plants() -> Plants:
    return {(place, form): Canary.new() for place in _PLANTED_PLACES for form in PLANTED_ENCODINGS}


def encode_canaries(plants: Plants, place: str) -> list[str]:
    return [PLANTED_ENCODINGS[form](canary.value) for (where, form), canary in plants.items() if where == place]


async def plant(cluster: Cluster, sink: TelemetrySink, endpoint: str, plants: Plants, session_id: str) -> None:
    """Plants all canaries except those that an agent must copy inside the sandbox and those of live processes."""
    data = cluster.directory / "data"
    home = data / "workspaces" / "default" / f"{session_id}.state" / "home"
    (home / "planted").write_text("\n".join(encode_canaries(plants, "sandbox")))
    (data / "objects").mkdir(exist_ok=True)
    (data / "objects" / "planted").write_text("\n".join(encode_canaries(plants, "objects and trees")))
    (cluster.directory / "logs" / "planted.log").write_text("\n".join(encode_canaries(plants, "logs")))
    await _in_postgres(cluster, encode_canaries(plants, "PostgreSQL"))
    await _in_redis(cluster, encode_canaries(plants, "Redis"))
    await _in_temporal(cluster, encode_canaries(plants, "Temporal"))
    await _in_traces(sink, endpoint, encode_canaries(plants, "traces and reports"))


async def _in_postgres(cluster: Cluster, texts: list[str]) -> None:
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        await connection.execute("create table planted (body jsonb, bytes bytea)")
        for text in texts:
            await connection.execute("insert into planted values (to_jsonb($1::text), $2)", text, text.encode())
    finally:
        await connection.close()


async def _in_redis(cluster: Cluster, texts: list[str]) -> None:
    redis: Any = Redis.from_url(cluster.settings.redis_url)
    for text in texts:
        await redis.xadd("planted", {"body": text})
    await redis.aclose()


async def _in_temporal(cluster: Cluster, texts: list[str]) -> None:
    client = await connect_temporal(cluster.settings.temporal_address)
    for text in texts:
        handle = await client.start_workflow(
            "Planted", text, id=f"planted-{secrets.token_hex(8)}", task_queue=f"{cluster.task_queue}-planted"
        )
        await handle.terminate()


async def _in_traces(sink: TelemetrySink, endpoint: str, texts: list[str]) -> None:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for text in texts:
        span = scope.spans.add(name="planted", trace_id=secrets.token_bytes(16), span_id=secrets.token_bytes(8))
        attribute = span.attributes.add(key="planted")
        attribute.value.string_value = text
    before = len(sink.raw)
    async with httpx2.AsyncClient(trust_env=False) as client:
        headers = {"content-type": "application/x-protobuf"}
        (
            await client.post(f"{endpoint}/v1/traces", content=request.SerializeToString(), headers=headers)
        ).raise_for_status()

    async def arrived() -> bool:
        return len(sink.raw) > before

    await wait_until(arrived, 10)


@contextmanager
def planted_processes(cluster: Cluster, plants: Plants) -> Iterator[None]:
    started = [
        subprocess.Popen(["sleep", "300"], env={cluster_processes.CLUSTER_VARIABLE: cluster.id, "PLANTED": text})
        for text in encode_canaries(plants, "processes")
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()
