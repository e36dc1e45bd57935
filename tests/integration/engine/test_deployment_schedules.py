"""Schedules in a real Temporal: kept in line with the rows, fired once, and right across daylight-saving changes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import pytest
import pytest_asyncio
from bench.support.schedules import daylight_saving
from temporalio.client import ScheduleBackfill, ScheduleOverlapPolicy
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from tests.integration.engine.cell import Engine

from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.sessions import events
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.deployments import (
    Deployment,
    DeploymentDefinition,
    DeploymentRun,
    RunFilter,
    ScheduleState,
    SessionTemplate,
)
from footplate.engine.temporal.deployment_schedules import (
    DeploymentActivities,
    DeploymentSchedules,
    find_engine_times,
    schedule_id,
)
from footplate.engine.temporal.workflows import DeploymentWorkflow
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal
from footplate.store.deployment_firing import DeploymentFirings
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.deployments import DeploymentScheduleStore

MINUTELY = CronSchedule("* * * * *", "UTC")
NEVER = CronSchedule("0 0 1 1 *", "UTC")
MESSAGE: JsonObject = {"content": [events.text_block("Check the build")]}


@dataclass(slots=True)
class Scheduler:
    engine: Engine
    admin: Principal
    agent: JsonObject
    environment_id: str
    accepted: list[AcceptedInputs] = field(default_factory=list)

    @property
    def store(self) -> DeploymentScheduleStore:
        return DeploymentScheduleStore(self.engine.cell.database)

    @property
    def schedules(self) -> DeploymentSchedules:
        return DeploymentSchedules(self.engine.client, self.engine.settings, self.store)

    async def create(self, schedule: CronSchedule | None = NEVER, *, applied: bool = True) -> Deployment:
        definition = DeploymentDefinition(
            name="nightly",
            environment_id=self.environment_id,
            template=SessionTemplate(agent=self.agent, messages=[MESSAGE]),
            schedule=schedule,
        )
        async with self.engine.cell.units.unit(self.admin, None) as unit:
            created = await unit.create_deployment(self.admin, definition)
        if applied:
            await self.schedules.apply(created.id)
        return await self.read(created)

    async def update(self, deployment: Deployment, schedule: CronSchedule | None) -> None:
        async with self.engine.cell.units.unit(self.admin, None) as unit:
            await unit.update_deployment(
                self.admin, deployment.id, lambda found: replace(found.definition, schedule=schedule)
            )

    async def read(self, deployment: Deployment) -> Deployment:
        return await self.engine.cell.reads.deployment(self.admin, deployment.id)

    async def runs(self, deployment: Deployment) -> list[DeploymentRun]:
        page, where = Page(limit=100, include_archived=True), RunFilter(deployment_id=deployment.id)
        return [*await self.engine.cell.reads.deployment_runs(self.admin, page, where)]

    def handle(self, deployment: Deployment):  # pyrefly: ignore[unannotated-return]  # noqa: ANN201 - temporalio's own type
        return self.engine.client.get_schedule_handle(schedule_id(deployment.organisation, deployment.id))

    async def fire(self, deployment: Deployment, minutes: int) -> None:
        """Lets Temporal start the workflows of the last whole minutes, as after an outage."""
        end = datetime.now(UTC).replace(second=0, microsecond=0)
        period = ScheduleBackfill(
            start_at=end - timedelta(minutes=minutes, seconds=-1), end_at=end, overlap=ScheduleOverlapPolicy.ALLOW_ALL
        )
        await self.handle(deployment).backfill(period)


@pytest_asyncio.fixture(loop_scope="session")
async def scheduler(idle_engine: Engine) -> Scheduler:
    engine = idle_engine.with_own_queue()
    keys = ApiKeys(engine.cell.database)
    admin = await keys.authenticate(await keys.create_key(ids.new_id(ids.ORGANISATION), "admin", ["admin"]))
    async with engine.cell.units.unit(admin, None) as unit:
        agent = await unit.create_agent(admin, name="a", definition={}, metadata={})
        environment = await unit.create_environment(
            admin, name=ids.new_id("name"), description=None, config={}, metadata={}
        )
    snapshot: JsonObject = {"id": agent.id, "version": 1, "name": "a", "model": {"id": "claude-opus-5"}}
    return Scheduler(engine, admin, snapshot, environment.id)


@pytest_asyncio.fixture(loop_scope="session")
async def running(scheduler: Scheduler) -> AsyncIterator[Scheduler]:
    """With a worker that starts runs, and nothing else."""
    engine = scheduler.engine
    firings = DeploymentFirings(engine.cell.database, engine.cell.units, lambda _organisation, _context: None)

    async def announce(accepted: AcceptedInputs) -> None:
        scheduler.accepted.append(accepted)

    activities = DeploymentActivities(firings, scheduler.schedules, announce)
    client = await connect_temporal(engine.settings.temporal_address)
    async with Worker(
        client,
        task_queue=engine.settings.task_queue,
        workflows=[DeploymentWorkflow],
        activities=[activities.fire],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield scheduler


async def test_the_schedule_in_temporal_follows_the_row(scheduler: Scheduler) -> None:
    deployment = await scheduler.create(CronSchedule("30 9 * * *", "Asia/Tokyo"))
    handle = scheduler.handle(deployment)
    assert {(at.hour, at.minute) for at in (await handle.describe()).info.next_action_times} == {(0, 30)}
    await scheduler.update(deployment, CronSchedule("0 9 13 * 5", "UTC"))
    await scheduler.schedules.apply(deployment.id)
    assert {at.hour for at in (await handle.describe()).info.next_action_times} == {9}
    async with scheduler.engine.cell.units.unit(scheduler.admin, None) as unit:
        await unit.pause_deployment(scheduler.admin, deployment.id)
    await scheduler.schedules.apply(deployment.id)
    assert (await handle.describe()).schedule.state.paused
    await scheduler.update(deployment, None)
    await scheduler.schedules.apply(deployment.id)
    with pytest.raises(RPCError):
        await handle.describe()


async def test_the_sweep_applies_what_was_not_applied_and_repairs_what_was_changed(scheduler: Scheduler) -> None:
    missed = await scheduler.create(applied=False)
    lost, paused, current = [await scheduler.create() for _ in range(3)]
    await scheduler.handle(lost).delete()
    await scheduler.handle(paused).pause()
    async with scheduler.engine.cell.database.connection() as connection:  # no other test's schedules
        own = [one.id for one in (missed, lost, paused, current)]
        await connection.execute("update deployments set checked_at = 'epoch' where id = any($1)", own)
    await scheduler.schedules.run()
    for deployment in (missed, lost, paused, current):
        assert not (await scheduler.handle(deployment).describe()).schedule.state.paused
        state = await scheduler.store.load(deployment.id)
        assert state is not None
        assert state.is_applied


async def test_a_slow_writer_does_not_overwrite_a_newer_schedule(scheduler: Scheduler) -> None:
    deployment = await scheduler.create(applied=False)

    class SlowStore(DeploymentScheduleStore):
        changed = False

        async def mark_applied(self, state: ScheduleState) -> None:
            if not self.changed:
                self.changed = True
                await scheduler.update(deployment, MINUTELY)
                await scheduler.schedules.apply(deployment.id)
            await super().mark_applied(state)

    slow = DeploymentSchedules(
        scheduler.engine.client, scheduler.engine.settings, SlowStore(scheduler.engine.cell.database)
    )
    await slow.apply(deployment.id)
    upcoming = (await scheduler.handle(deployment).describe()).info.next_action_times
    assert upcoming[1] - upcoming[0] == timedelta(minutes=1)


@pytest.mark.timing
async def test_each_time_starts_one_session_even_if_temporal_repeats_it(running: Scheduler) -> None:
    deployment = await running.create(MINUTELY)
    await running.fire(deployment, 3)

    async def has_fired() -> bool:
        return len(await running.runs(deployment)) >= 3

    assert await wait_until(has_fired, 30)
    await running.fire(deployment, 3)
    await running.fire(deployment, 3)
    await asyncio.sleep(1)
    runs = await running.runs(deployment)
    times = [run.scheduled_at for run in runs if run.scheduled_at is not None]
    assert len(times) == len(set(times))
    assert {at.second for at in times} == {0}
    assert len({run.session_id for run in runs}) == len(runs) == len(running.accepted)
    assert all(run.error is None for run in runs)


@pytest.mark.timing
async def test_a_schedule_without_a_deployment_is_deleted_when_it_fires(running: Scheduler) -> None:
    deployment = await running.create(MINUTELY)
    async with running.engine.cell.database.connection() as connection:
        await connection.execute("delete from deployments where id = $1", deployment.id)
    await running.fire(deployment, 1)

    async def is_deleted() -> bool:
        try:
            await running.handle(deployment).describe()
        except RPCError:
            return True
        return False

    assert await wait_until(is_deleted, 30)


EXPRESSIONS = ["30 * * * *", "15 0,2 * * *", "45 1,23 * * *", "30 1 13 * 0"]


@pytest.mark.parametrize(("zone", "forward", "back"), daylight_saving.CHANGES, ids=str)
async def test_times_are_right_across_daylight_saving_changes(
    scheduler: Scheduler, zone: str, forward: date, back: date
) -> None:
    """Temporal is asked for the minutes of the days around each change. Of those, the right ones must match."""
    for expression in EXPRESSIONS:
        schedule = CronSchedule(expression, zone)
        deployment = await scheduler.create(schedule)
        identity = schedule_id(deployment.organisation, deployment.id)
        for change in (forward, back):
            start, end = daylight_saving.period(zone, change)
            asked = await find_engine_times(scheduler.engine.client, identity, start - timedelta(seconds=1), end)
            expected = daylight_saving.expected_times(schedule, change)
            assert [at for at in asked if schedule.matches(at)] == expected, (expression, change)
            found = schedule.find_times(start - timedelta(seconds=1), len(expected) + 1)
            assert [at for at in found if at <= end] == expected
