"""Starts the runs of schedules in the database, for a worker. Implements the `FiringStore` port."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from footplate import failpoints
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.deployments import Firing
from footplate.domain.sessions.cron import CronSchedule
from footplate.store.database import Database
from footplate.store.unit_of_work import UnitOfWorkFactory


class DeploymentFirings:
    def __init__(
        self, database: Database, units: UnitOfWorkFactory, check_context: Callable[[str, JsonObject], None]
    ) -> None:
        """`check_context` raises if an organisation may not create sessions with a context."""
        self._database = database
        self._units = units
        self._check_context = check_context

    async def fire(
        self, organisation: str, deployment_id: str, scheduled_at: datetime, *, schedule: CronSchedule | None
    ) -> Firing:
        # The transaction itself finds out in whose name the deployment runs.
        unknown = Principal(organisation, "", "", frozenset())
        async with self._units.unit(unknown, None) as unit:
            firing = await unit.fire_deployment(
                organisation,
                deployment_id,
                scheduled_at,
                schedule=schedule,
                check_context=partial(self._check_context, organisation),
            )
            await failpoints.hit("before_firing_commit")
        await failpoints.hit("after_firing_commit")
        return firing

    async def find_buffered(self) -> Sequence[tuple[str, str, datetime]]:
        rows = await self._database.fetch("buffered_runs")
        return [(row["organisation"], row["id"], row["buffered_at"]) for row in rows]
