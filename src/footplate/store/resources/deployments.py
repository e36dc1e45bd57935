"""Stores deployments: creates, changes, pauses and archives them, and reads them and their runs.

A change of what a schedule in Temporal depends on increments the row's revision. The schedule is updated after the
commit. If the process dies before that, the sweep updates it (`DeploymentSchedules`).
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import orjson

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, ViewFilter
from footplate.domain.pagination import Page
from footplate.domain.sessions import deployments
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.deployments import (
    Deployment,
    DeploymentDefinition,
    DeploymentFilter,
    DeploymentRun,
    OverlapPolicy,
    RunFilter,
    ScheduleState,
    SessionTemplate,
)
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.page_query import build_page_query
from footplate.store.resources import deployment_runs, members
from footplate.store.row_mapping import Row


class DeploymentUnitOfWork:
    """The methods of a unit of work that change deployments."""

    _connection: Connection

    async def create_deployment(self, principal: Principal, definition: DeploymentDefinition) -> Deployment:
        deployment_id = ids.new_id(ids.DEPLOYMENT)
        await self._check_definition(principal, deployment_id, definition)
        row = await self._connection.fetchrow(
            *bind(
                "insert_deployment",
                id=deployment_id,
                organisation=principal.organisation,
                principal=principal.id,
                **_columns(definition),
            )
        )
        assert row is not None
        return await self._announce(row, deployments.CREATED)

    async def update_deployment(
        self, principal: Principal, deployment_id: str, change: Callable[[Deployment], DeploymentDefinition]
    ) -> Deployment:
        definition = change(load_deployment(await self._lock_deployment(principal, deployment_id)))
        await self._check_definition(principal, deployment_id, definition)
        row = await self._connection.fetchrow(
            *bind("update_deployment", id=deployment_id, principal=principal.id, **_columns(definition))
        )
        assert row is not None
        return await self._announce(row, deployments.UPDATED)

    async def pause_deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        row = await self._lock_deployment(principal, deployment_id)
        if row["paused_reason"] is not None:
            return load_deployment(row)
        return await self._pause(deployment_id, deployments.MANUAL_PAUSE)

    async def unpause_deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        found = await self._lock_deployment(principal, deployment_id)
        if found["paused_reason"] is None:
            return load_deployment(found)
        row = await self._connection.fetchrow(SQL["unpause_deployment"], deployment_id, principal.id)
        assert row is not None
        return await self._announce(row, deployments.UNPAUSED)

    async def archive_deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        found = await self._lock_deployment(principal, deployment_id, may_be_archived=True)
        if found["archived_at"] is not None:
            return load_deployment(found)
        row = await self._connection.fetchrow(SQL["archive_deployment"], deployment_id)
        assert row is not None
        return await self._announce(row, deployments.ARCHIVED)

    async def _pause(self, deployment_id: str, reason: JsonObject) -> Deployment:
        row = await self._connection.fetchrow(SQL["pause_deployment"], deployment_id, reason)
        assert row is not None
        return await self._announce(row, deployments.PAUSED)

    async def _announce(self, row: Row, event_type: str) -> Deployment:
        await deployment_runs.add_to_feed(self._connection, row["id"], event_type, {})
        return load_deployment(row)

    async def _lock_deployment(self, principal: Principal, deployment_id: str, *, may_be_archived: bool = False) -> Row:
        row = await self._connection.fetchrow(SQL["lock_deployment"], deployment_id, principal.organisation)
        if row is None or not _can_see(principal, row):
            raise NotFound("deployment", deployment_id)
        if row["archived_at"] is not None and not may_be_archived:
            raise InvalidRequest(f"Deployment {deployment_id!r} is archived.", help_text="Create a new deployment.")
        return row

    async def _check_definition(
        self, principal: Principal, deployment_id: str, definition: DeploymentDefinition
    ) -> None:
        """Raises unless a session could be created now, which each run checks again, and if there are too many
        schedules.
        """
        if definition.schedule is not None:
            await self._connection.execute(SQL["lock_limit"], f"schedules/{principal.organisation}")
            others = await self._connection.fetchval(SQL["count_schedules"], principal.organisation, deployment_id)
            if others >= deployments.MAX_SCHEDULES:
                raise Conflict(
                    f"The organisation has {others} schedules, and cannot have more.",
                    help_text="Archive those that you do not need, with `footplate schedules rm`.",
                )
        await members.check_audience(self._connection, principal, definition.audience)
        await deployment_runs.check_environment(self._connection, principal, definition.environment_id)
        await deployment_runs.check_projects(self._connection, principal, definition.template)


class DeploymentScheduleStore:
    """Reads which schedules Temporal must have, and records the revisions that it has."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, deployment_id: str) -> ScheduleState | None:
        row = await self._database.fetchrow("schedule_state", deployment_id)
        return None if row is None else _load_state(row)

    async def find_unapplied(self, limit: int) -> Sequence[str]:
        return [row["id"] for row in await self._database.fetch("schedules_to_apply", limit)]

    async def find_unchecked(self, limit: int) -> Sequence[str]:
        """Returns the schedules that were not compared with Temporal for the longest time."""
        return [row["id"] for row in await self._database.fetch("schedules_to_check", limit)]

    async def mark_applied(self, state: ScheduleState) -> None:
        await self._database.fetch("mark_schedule_applied", state.deployment_id, state.revision)


class RunExpiry:
    """Deletes old runs. `older_than` is longer than every catch-up window: a time that fires again after its run was
    deleted is too late to start a session. None: runs are not deleted.
    """

    def __init__(self, database: Database, older_than: timedelta | None) -> None:
        self._database = database
        self._older_than = older_than

    async def run(self) -> None:
        if self._older_than is not None:
            await self._database.fetch("expire_runs", self._older_than)


async def read_deployment(database: Database, principal: Principal, deployment_id: str) -> Deployment:
    arguments = deployment_id, principal.organisation, ViewFilter.of(principal).audiences
    row = await database.fetchrow("deployment", *arguments)
    if row is None:
        raise NotFound("deployment", deployment_id)
    return load_deployment(row)


async def read_deployments(
    database: Database, principal: Principal, page: Page, where: DeploymentFilter
) -> Sequence[Deployment]:
    filters: dict[str, Any] = {}
    if where.agent_id is not None:
        filters["s.agent_id"] = where.agent_id
    if where.is_paused is not None:
        filters["(s.paused_reason is not null) = {}"] = where.is_paused
    sql, arguments = build_page_query("deployments", principal, page, filters)
    async with database.connection() as connection:
        return [load_deployment(row) for row in await connection.fetch(sql, *arguments)]


async def read_run(database: Database, principal: Principal, run_id: str) -> DeploymentRun:
    arguments = run_id, principal.organisation, ViewFilter.of(principal).audiences
    row = await database.fetchrow("deployment_run", *arguments)
    if row is None:
        raise NotFound("deployment run", run_id)
    return deployment_runs.load_run(row)


async def read_runs(database: Database, principal: Principal, page: Page, where: RunFilter) -> Sequence[DeploymentRun]:
    filters: dict[str, Any] = {}
    if where.deployment_id is not None:
        filters["s.deployment_id"] = where.deployment_id
    if where.has_error is not None:
        filters["(s.error is not null) = {}"] = where.has_error
    if where.is_scheduled is not None:
        filters["(s.scheduled_at is not null) = {}"] = where.is_scheduled
    sql, arguments = build_page_query("deployment_runs", principal, page, filters)
    async with database.connection() as connection:
        return [deployment_runs.load_run(row) for row in await connection.fetch(sql, *arguments)]


def load_deployment(row: Row) -> Deployment:
    definition = DeploymentDefinition(
        name=row["name"],
        environment_id=row["environment_id"],
        template=SessionTemplate.load(row["definition"]),
        description=row["description"],
        metadata=row["metadata"],
        schedule=_load_schedule(row),
        overlap_policy=OverlapPolicy(row["overlap_policy"]),
        catch_up_seconds=row["catch_up_seconds"],
        audience=Audience.load(row["visible_to"]),
    )
    return Deployment(
        id=row["id"],
        organisation=row["organisation"],
        definition=definition,
        principal_id=row["principal"],
        owner_id=row["owner"],
        paused_reason=row["paused_reason"],
        revision=row["revision"],
        last_run_at=row["last_run_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        archived_at=row["archived_at"],
    )


def _load_schedule(row: Row) -> CronSchedule | None:
    return None if row["expression"] is None else CronSchedule(row["expression"], row["timezone"])


def _load_state(row: Row) -> ScheduleState:
    return ScheduleState(
        organisation=row["organisation"],
        deployment_id=row["id"],
        revision=row["revision"],
        is_applied=row["revision"] == row["applied_revision"],
        schedule=_load_schedule(row) if row["archived_at"] is None else None,
        catch_up_seconds=row["catch_up_seconds"],
        is_paused=row["paused_reason"] is not None,
    )


def _columns(definition: DeploymentDefinition) -> dict[str, object]:
    """Returns the columns of what a member defines."""
    agent, schedule = definition.template.agent, definition.schedule
    template = clean_object(definition.template.dump())
    if len(orjson.dumps(template)) > deployments.MAX_DEFINITION_BYTES:
        raise InvalidRequest(
            f"The messages and steps of a deployment must not exceed {deployments.MAX_DEFINITION_BYTES} bytes in all.",
            help_text="Upload large content as a file, and refer to it.",
        )
    return {
        "name": definition.name,
        "description": definition.description,
        "agent_id": agent["id"],
        "agent_version": agent["version"],
        "environment_id": definition.environment_id,
        "definition": template,
        "metadata": definition.metadata,
        "expression": None if schedule is None else schedule.expression,
        "timezone": None if schedule is None else schedule.timezone,
        "overlap_policy": definition.overlap_policy,
        "catch_up_seconds": definition.catch_up_seconds,
        "visible_to": definition.audience.dump(),
    }


def _can_see(principal: Principal, row: Row) -> bool:
    audiences = ViewFilter.of(principal).audiences
    return audiences is None or row["owner"] in audiences or row["visible_to"] in audiences
