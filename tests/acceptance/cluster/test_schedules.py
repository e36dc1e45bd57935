"""Schedules in a whole cell: a worker that is killed while a run starts."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from bench.support.cluster import Cluster, open_cluster
from temporalio.client import ScheduleBackfill, ScheduleHandle, ScheduleOverlapPolicy
from temporalio.service import RPCError

from footplate.client import AsyncFootplate, Deployment, DeploymentRun
from footplate.engine.temporal.deployment_schedules import schedule_id
from footplate.failpoints import FIRING_POINTS
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal

pytestmark = [pytest.mark.timing, pytest.mark.timeout(300)]

MINUTELY = {"type": "cron", "expression": "* * * * *", "timezone": "Asia/Kolkata"}


@pytest.fixture(scope="module")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(workers=1, stack=stack, environment={"FOOTPLATE_SWEEP_INTERVAL": "2"}) as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key, patience=60) as client:
        yield client


async def _create(client: AsyncFootplate) -> Deployment:
    agent = await client.agents.create(name="a", model="claude-sonnet-5", harness="native")
    environment = await client.environments.create(name=f"for {agent.id}")
    steps = [{"kind": "shell", "command": "echo built"}]
    return await client.deployments.create(
        name="build",
        agent=agent.id,
        environment_id=environment.id,
        schedule=MINUTELY,
        steps=steps,
        ends_when_done=True,
    )


async def _handle(cluster: Cluster, deployment: Deployment) -> ScheduleHandle:
    temporal = await connect_temporal(cluster.settings.temporal_address)
    return temporal.get_schedule_handle(schedule_id("default", deployment.id))


async def _wait_for_schedule(cluster: Cluster, deployment: Deployment) -> bool:
    """Waits until Temporal has the schedule: it is created after the response, or by the sweep."""

    async def exists() -> bool:
        try:
            await (await _handle(cluster, deployment)).describe()
        except RPCError:
            return False
        return True

    return await wait_until(exists, 60)


async def _fire_last_minute(cluster: Cluster, deployment: Deployment) -> datetime:
    """Lets Temporal start the run of the last whole minute, instead of waiting for the next one."""
    assert await _wait_for_schedule(cluster, deployment)
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    period = ScheduleBackfill(start_at=at - timedelta(seconds=1), end_at=at, overlap=ScheduleOverlapPolicy.ALLOW_ALL)
    await (await _handle(cluster, deployment)).backfill(period)
    return at


async def _runs(client: AsyncFootplate, deployment: Deployment) -> list[DeploymentRun]:
    return [run async for run in client.deployment_runs.list(deployment_id=deployment.id)]


@pytest.mark.parametrize("point", FIRING_POINTS)
async def test_a_worker_killed_while_a_run_starts_loses_and_repeats_nothing(
    cluster: Cluster, client: AsyncFootplate, point: str
) -> None:
    deployment = await _create(client)
    armed = cluster.failpoints / point
    armed.write_text("kill")
    at = await _fire_last_minute(cluster, deployment)

    async def was_killed() -> bool:
        return not armed.exists()

    assert await wait_until(was_killed, 60)
    await cluster.restart_worker(0)

    async def has_worked() -> bool:
        runs = [run for run in await _runs(client, deployment) if run.trigger_context.scheduled_at == at]
        sessions = [await client.sessions.retrieve(str(run.session_id)) for run in runs]
        return bool(sessions) and all(session.status == "terminated" for session in sessions)

    assert await wait_until(has_worked, 60), await _runs(client, deployment)
    await client.deployments.pause(deployment.id)
    await _fire_last_minute(cluster, deployment)
    runs = await _runs(client, deployment)
    assert sum(run.trigger_context.scheduled_at == at for run in runs) == 1
    assert {run.error for run in runs} == {None}
    sessions = [one async for one in client.sessions.list(limit=100, deployment_id=deployment.id)]
    assert len(sessions) == len(runs)
