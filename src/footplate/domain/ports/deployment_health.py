"""What the API reports about the deployment: workers, task queues and versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDescription:
    """What a worker says about itself. It is stored with its lease."""

    version: str | None = None
    """The version of Footplate. None: a worker that is older than this field."""
    backends: Sequence[str] = ()
    harnesses: Sequence[str] = ()
    max_turns: int | None = None
    schema_revision: str | None = None
    """The newest revision of the schema that its code knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    id: str
    host: str
    description: WorkerDescription
    started_at: datetime
    last_seen_at: datetime
    """When it renewed its lease."""
    running_turns: int
    is_alive: bool
    """Whether its lease is valid."""


class WorkerReads(Protocol):
    async def workers(self) -> Sequence[WorkerRecord]:
        """Return the workers of the last day, newest first. A worker that stopped in order is not among them."""

    async def database_versions(self) -> Mapping[str, str]:
        """Return the versions of PostgreSQL and of the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    """A task queue in Temporal."""

    name: str
    kind: str
    """`workflow` or `activity`."""
    backend: str | None
    """The backend that all tasks of the queue need. None: any worker can run them."""
    backlog: int
    """Tasks that no worker has taken yet. Approximate."""
    oldest_seconds: float
    """How long the oldest of them has waited."""
    added_per_second: float
    taken_per_second: float
    pollers: int
    """Workers that have asked for tasks in the last minutes."""


class QueueReads(Protocol):
    async def describe(self) -> Sequence[QueueRecord]:
        """Return the state of each task queue. Raise `Unavailable` if Temporal does not respond."""

    async def server_version(self) -> str | None:
        """Return the version of Temporal, or None if it does not respond."""
