"""Stores the leases of workers, and finds sessions whose wake signal or worker was lost."""

from collections.abc import Sequence

from footplate.domain.ports.deployment_health import WorkerDescription
from footplate.domain.ports.engine import HeadState
from footplate.domain.sessions.turns import SessionToWake
from footplate.store.database import Database, bind


class WorkerLeases:
    def __init__(self, database: Database, description: WorkerDescription | None = None) -> None:
        """`description` is of the worker whose lease is renewed."""
        self._database = database
        self._description = description or WorkerDescription()

    async def renew_lease(
        self, worker: str, host: str, seconds: float, session_ids: Sequence[str]
    ) -> Sequence[HeadState]:
        """Renews the worker's lease. Not retried here: the lease counts from before the statement that succeeded."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                *bind(
                    "renew_lease",
                    id=worker,
                    host=host,
                    lease_seconds=seconds,
                    session_ids=list(session_ids),
                    backends=[*self._description.backends],
                    version=self._description.version,
                    harnesses=[*self._description.harnesses],
                    max_turns=self._description.max_turns,
                    schema_revision=self._description.schema_revision,
                ),
                timeout=seconds,
            )
        return [HeadState(row["session_id"], row["epoch"], row["control_seq"]) for row in rows]

    async def has_expired(self, worker: str) -> bool:
        """Returns whether the worker's lease has expired. An unknown worker's lease has not."""
        rows = await self._database.fetch("lapsed_lease", worker)
        return any(row["lapsed"] for row in rows)

    async def end_lease(self, worker: str) -> None:
        await self._database.fetch("end_lease", worker)

    async def release_forgotten(self, worker: str, held: Sequence[str], *, older_than: float) -> Sequence[str]:
        rows = await self._database.fetch("release_forgotten", worker, list(held), older_than)
        return [row["session_id"] for row in rows]

    async def find_sessions_to_wake(self, *, older_than: float, lost_for: float, limit: int) -> Sequence[SessionToWake]:
        # A claim may have read its author's state just before the change that would have woken the session.
        await self._database.fetch("wake_waiting_sessions")
        rows = await self._database.fetch("to_wake", older_than, lost_for, limit)
        return [SessionToWake(row["organisation"], row["session_id"], row["priority"]) for row in rows]

    async def delete_stale_rows(self) -> None:
        await self._database.fetch("forget_answers")
        await self._database.fetch("forget_workers")
        await self._database.fetch("forget_active")
