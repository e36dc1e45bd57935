"""Wire models of what the API reports about the deployment: workers, task queues and versions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from footplate.api.wire.request_base import timestamp
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.deployment_health import QueueRecord, WorkerRecord


class Worker(ResponseModel):
    type: Literal["worker"]
    id: str
    host: str
    state: Annotated[
        Literal["running", "lost"], Field(description="`lost`: its lease has expired, and it did not stop in order.")
    ]
    version: Annotated[str | None, Field(description="Null: the worker is older than this field.")]
    backends: list[str]
    harnesses: list[str]
    running_turns: int
    max_turns: int | None
    started_at: datetime
    last_seen_at: Annotated[datetime, Field(description="When it renewed its lease.")]


class TaskQueue(ResponseModel):
    type: Literal["task_queue"]
    name: str
    kind: Literal["workflow", "activity"]
    backend: Annotated[str | None, Field(description="The backend that all its tasks need.")]
    backlog: Annotated[int, Field(description="Tasks that no worker has taken yet. Approximate.")]
    oldest_seconds: Annotated[float, Field(description="How long the oldest of them has waited.")]
    added_per_second: float
    taken_per_second: float
    pollers: Annotated[int, Field(description="Workers that have asked for tasks in the last minutes.")]


class WorkerVersion(ResponseModel):
    version: str | None
    workers: int


class Versions(ResponseModel):
    type: Literal["versions"]
    footplate: Annotated[str, Field(description="The version of this API server.")]
    workers: list[WorkerVersion]
    python: str
    postgresql: str
    schema_revision: str
    temporal: Annotated[str | None, Field(description="Null: Temporal does not respond.")]


def serialize_worker(worker: WorkerRecord) -> JsonObject:
    description = worker.description
    return {
        "type": "worker",
        "id": worker.id,
        "host": worker.host,
        "state": "running" if worker.is_alive else "lost",
        "version": description.version,
        "backends": [*description.backends],
        "harnesses": [*description.harnesses],
        "running_turns": worker.running_turns if worker.is_alive else 0,
        "max_turns": description.max_turns,
        "started_at": timestamp(worker.started_at),
        "last_seen_at": timestamp(worker.last_seen_at),
    }


def serialize_queue(queue: QueueRecord) -> JsonObject:
    return {
        "type": "task_queue",
        "name": queue.name,
        "kind": queue.kind,
        "backend": queue.backend,
        "backlog": queue.backlog,
        "oldest_seconds": round(queue.oldest_seconds, 3),
        "added_per_second": round(queue.added_per_second, 3),
        "taken_per_second": round(queue.taken_per_second, 3),
        "pollers": queue.pollers,
    }


def serialize_versions(
    server: str, python: str, workers: Sequence[WorkerRecord], database: Mapping[str, str], temporal: str | None
) -> JsonObject:
    counts = Counter(worker.description.version for worker in workers if worker.is_alive)
    by_version: list[Json] = [
        {"version": version, "workers": count}
        for version, count in sorted(counts.items(), key=lambda each: each[0] or "")
    ]
    return {
        "type": "versions",
        "footplate": server,
        "workers": by_version,
        "python": python,
        "postgresql": database["postgresql"],
        "schema_revision": database["schema_revision"],
        "temporal": temporal,
    }
