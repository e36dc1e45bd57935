"""Each time of a schedule starts one session, although everything is killed at that moment or restored from a backup.

Temporal starts the run of the last whole minute again (a backfill), or of a minute that begins. At this moment the
worker is killed before or after its commit, and then everything else. Further parts: each overlap policy, the times
around daylight-saving changes as Temporal calculates them, a restored database and Temporal, and a disabled member.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from temporalio.client import ScheduleBackfill, ScheduleHandle, ScheduleOverlapPolicy
from temporalio.service import RPCError

from bench.prove.figure import Figure, require
from bench.support import databases
from bench.support.cluster import Cluster, open_cluster
from bench.support.crash import temporal_state
from bench.support.schedules import daylight_saving
from footplate import wiring
from footplate.client import AsyncFootplate, Deployment, DeploymentRun
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.deployments import OverlapPolicy
from footplate.engine.temporal.deployment_schedules import find_engine_times, schedule_id
from footplate.failpoints import FIRING_POINTS
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal

_KILLS, _TICKS = (16, 4), (2, 0)
"""Trials with a backfill and with a minute that begins; in a sample, the second pair."""
_SETTINGS: Final = {"FOOTPLATE_SWEEP_INTERVAL": "2", "FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6"}
_MINUTELY: Final = {"type": "cron", "expression": "* * * * *", "timezone": "Asia/Kolkata"}
_EXPRESSIONS: Final = ("30 * * * *", "*/15 * * * *", "0 9 * * *", "15 0,2 * * *", "45 1,23 * * *", "30 1 13 * 0")
_PATIENCE: Final = 120.0
_ORGANISATION: Final = wiring.DEFAULT_ORGANISATION


@dataclass(slots=True)
class _Trial:
    cluster: Cluster
    client: AsyncFootplate
    agent_id: str
    environment_id: str
    faults: list[str] = field(default_factory=list)

    async def create(self, client: AsyncFootplate | None = None, **fields: Any) -> Deployment:
        steps = [{"kind": "shell", "command": "true"}]
        given = {"schedule": _MINUTELY, "steps": steps, "ends_when_done": True, **fields}
        return await (client or self.client).deployments.create(
            name="build", agent=self.agent_id, environment_id=self.environment_id, **given
        )

    async def handle(self, deployment: Deployment) -> ScheduleHandle:
        client = await connect_temporal(self.cluster.settings.temporal_address)
        return client.get_schedule_handle(schedule_id(_ORGANISATION, deployment.id))

    async def fire(self, deployment: Deployment, at: datetime | None = None) -> datetime:
        """Lets Temporal start the run of a whole minute, by default the last one."""
        await self.wait_for_schedule(deployment)
        at = at or datetime.now(UTC).replace(second=0, microsecond=0)
        policy = ScheduleOverlapPolicy.ALLOW_ALL
        period = ScheduleBackfill(start_at=at - timedelta(seconds=1), end_at=at, overlap=policy)
        await (await self.handle(deployment)).backfill(period)
        return at

    async def wait_for_schedule(self, deployment: Deployment) -> None:
        """Waits until Temporal has the schedule: it is created after the response."""

        async def exists() -> bool:
            try:
                await (await self.handle(deployment)).describe()
            except RPCError:
                return False
            return True

        require(holds=await wait_until(exists, _PATIENCE), otherwise=f"Temporal has no schedule of {deployment.id}")

    async def runs(self, deployment: Deployment, at: datetime | None = None) -> list[DeploymentRun]:
        found = [run async for run in self.client.deployment_runs.list(deployment_id=deployment.id, limit=100)]
        return [run for run in found if at is None or run.trigger_context.scheduled_at == at]

    async def wait_for_run(self, deployment: Deployment, at: datetime) -> DeploymentRun:
        async def has_run() -> bool:
            return bool(await self.runs(deployment, at))

        require(holds=await wait_until(has_run, _PATIENCE), otherwise=f"the run of {at} does not start")
        return (await self.runs(deployment, at))[0]

    async def sessions(self, deployment: Deployment) -> list[str]:
        return [one.id async for one in self.client.sessions.list(limit=100, deployment_id=deployment.id)]

    async def restart_everything(self) -> None:
        await self.cluster.kill_worker(0)
        await self.cluster.kill_api(0)
        services = self.cluster.stack.services
        for service in services:
            await service.kill()
        for service in services:
            await service.start()
        await self.cluster.restart_api(0)
        await self.cluster.restart_worker(0)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    kills, ticks = _TICKS if quick else _KILLS
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        async with (
            Stack(Path(directory)) as stack,
            open_cluster(stack=stack, environment=_SETTINGS) as cluster,
            AsyncFootplate(cluster.base_urls[0], cluster.key, patience=_PATIENCE) as client,
        ):
            agent = await client.agents.create(name="a", model="claude-sonnet-5", harness="native")
            environment = await client.environments.create(name="e")
            trial = _Trial(cluster, client, agent.id, environment.id)
            once = [await _kill_at_firing(trial, FIRING_POINTS[number % 2]) for number in range(kills)]
            once += [await _kill_at_tick(trial) for _ in range(ticks)]
            policies = [await _POLICIES[policy](trial) for policy in OverlapPolicy]
            zones = await _compare_times(trial)
            restored = await _restore(trial, directory=Path(directory))
            disabled = await _disable_member(trial)
    return _figure(trial, once, policies, zones, restored=restored, disabled=disabled)


async def _kill_at_firing(trial: _Trial, point: str) -> bool:
    """Kills the worker at a failpoint and then everything else. Returns whether exactly one session was created."""
    deployment = await trial.create()
    armed = trial.cluster.failpoints / point
    armed.write_text("kill")
    at = await trial.fire(deployment)

    async def was_killed() -> bool:
        return not armed.exists()

    require(holds=await wait_until(was_killed, _PATIENCE), otherwise=f"no worker reached {point}")
    await trial.restart_everything()
    return await _check_once(trial, deployment, at, point)


async def _kill_at_tick(trial: _Trial) -> bool:
    """Kills everything while a minute begins."""
    deployment = await trial.create()
    at = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    await asyncio.sleep((at - datetime.now(UTC)).total_seconds())
    await trial.restart_everything()
    return await _check_once(trial, deployment, at, "a minute that begins")


async def _check_once(trial: _Trial, deployment: Deployment, at: datetime, where: str) -> bool:
    run = await trial.wait_for_run(deployment, at)
    await trial.fire(deployment, at)
    await trial.client.deployments.pause(deployment.id)

    async def has_ended() -> bool:
        return (await trial.client.sessions.retrieve(str(run.session_id))).status == "terminated"

    ended = run.error is None and await wait_until(has_ended, _PATIENCE)
    runs, sessions = await trial.runs(deployment), await trial.sessions(deployment)
    times = [one.trigger_context.scheduled_at for one in runs]
    holds = ended and len(times) == len(set(times)) and len(sessions) == len(runs)
    if not holds:
        trial.faults.append(f"{where}: {len(runs)} runs at {len(set(times))} times, {len(sessions)} sessions, {run}")
    return holds


async def _prepare_overlap(trial: _Trial, policy: OverlapPolicy) -> tuple[Deployment, DeploymentRun, datetime]:
    """Returns a deployment whose first run waits for a client, and the time of the next one."""
    steps = [{"kind": "external", "name": "wait"}]
    deployment = await trial.create(steps=steps, overlap_policy=policy.value, schedule=_MINUTELY)
    second = datetime.now(UTC).replace(second=0, microsecond=0)
    first = await trial.fire(deployment, second - timedelta(minutes=1))
    return deployment, await trial.wait_for_run(deployment, first), second


async def _allow_all(trial: _Trial) -> bool:
    deployment, first, at = await _prepare_overlap(trial, OverlapPolicy.ALLOW_ALL)
    await trial.fire(deployment, at)
    second = await trial.wait_for_run(deployment, at)
    await trial.client.deployments.archive(deployment.id)
    return None not in {first.session_id, second.session_id}


async def _skip(trial: _Trial) -> bool:
    deployment, _, at = await _prepare_overlap(trial, OverlapPolicy.SKIP)
    await trial.fire(deployment, at)
    second = await trial.wait_for_run(deployment, at)
    await trial.client.deployments.archive(deployment.id)
    return second.skipped and second.session_id is None


async def _buffer_one(trial: _Trial) -> bool:
    deployment, first, at = await _prepare_overlap(trial, OverlapPolicy.BUFFER_ONE)
    await trial.fire(deployment, at)
    await asyncio.sleep(5)
    waited = not await trial.runs(deployment, at)
    (step,) = [one async for one in trial.client.steps.list(str(first.session_id))]
    await trial.client.steps.submit_result(str(first.session_id), step.id, status="completed")
    second = await trial.wait_for_run(deployment, at)
    await trial.client.deployments.archive(deployment.id)
    return waited and second.session_id is not None


async def _cancel_other(trial: _Trial) -> bool:
    deployment, first, at = await _prepare_overlap(trial, OverlapPolicy.CANCEL_OTHER)
    await trial.fire(deployment, at)
    second = await trial.wait_for_run(deployment, at)
    await trial.client.deployments.archive(deployment.id)
    ended = (await trial.client.sessions.retrieve(str(first.session_id))).wire()["end"]
    return second.session_id is not None and ended is not None and ended["outcome"] == "cancelled"


_POLICIES: Final[dict[OverlapPolicy, Callable[[_Trial], Awaitable[bool]]]] = {
    OverlapPolicy.ALLOW_ALL: _allow_all,
    OverlapPolicy.SKIP: _skip,
    OverlapPolicy.BUFFER_ONE: _buffer_one,
    OverlapPolicy.CANCEL_OTHER: _cancel_other,
}


async def _compare_times(trial: _Trial) -> list[bool]:
    """Compares the times around each change with the expected ones. Returns a result for each time zone."""
    temporal = await connect_temporal(trial.cluster.settings.temporal_address)
    results = []
    for zone, *changes in daylight_saving.CHANGES:
        before = len(trial.faults)
        for expression in _EXPRESSIONS:
            schedule = CronSchedule(expression, zone)
            deployment = await trial.create(schedule={"type": "cron", "expression": expression, "timezone": zone})
            await trial.wait_for_schedule(deployment)
            for change in changes:
                start, end = daylight_saving.period(zone, change)
                identity = schedule_id(_ORGANISATION, deployment.id)
                asked = await find_engine_times(temporal, identity, start - timedelta(seconds=1), end)
                found = [at for at in asked if schedule.matches(at)]
                expected = daylight_saving.expected_times(schedule, change)
                if found != expected:
                    trial.faults.append(f"{zone} {change} {expression}: {found} instead of {expected}")
            await trial.client.deployments.archive(deployment.id)
        results.append(len(trial.faults) == before)
    return results


async def _restore(trial: _Trial, *, directory: Path) -> bool:
    """Restores the database and Temporal from a backup. The run that the backup contains must not start again."""
    cluster, stack = trial.cluster, trial.cluster.stack
    deployment = await trial.create(catch_up_seconds=3600)
    at = await trial.fire(deployment)
    first = await trial.wait_for_run(deployment, at)
    copy = directory / "temporal-copy.db"
    assert stack.temporal is not None
    name, backup = cluster.settings.database_url.rsplit("/", 1)[1], "backup_of_schedules"
    temporal_state.copy_state(stack.temporal, copy)
    await cluster.kill_worker(0)
    await cluster.kill_api(0)
    await databases.execute(stack, f"CREATE DATABASE {backup} TEMPLATE {name}")
    await cluster.restart_api(0)
    await cluster.restart_worker(0)
    later = await trial.fire(deployment, at - timedelta(minutes=5))
    await trial.wait_for_run(deployment, later)
    await cluster.kill_worker(0)
    await cluster.kill_api(0)
    await stack.temporal.kill()
    temporal_state.replace_state(stack.temporal, copy)
    await databases.drop_database(stack, name)
    await databases.execute(stack, f"ALTER DATABASE {backup} RENAME TO {name}")
    await stack.temporal.start()
    await cluster.restart_api(0)
    await cluster.restart_worker(0)
    await trial.fire(deployment, at)
    await trial.fire(deployment, later)
    await trial.wait_for_run(deployment, later)  # the backup does not know it
    (again,) = await trial.runs(deployment, at)
    await trial.client.deployments.archive(deployment.id)
    return (again.id, again.session_id) == (first.id, first.session_id)


async def _disable_member(trial: _Trial) -> bool:
    """Disables the member of a schedule. Its next time must create no session, and pause the schedule."""
    member = await trial.client.members.create(name="leaver", roles=["operator"])
    key = await trial.client.api_keys.create(name="leaver", member_id=member.id)
    async with AsyncFootplate(trial.cluster.base_urls[0], key.secret or "", patience=_PATIENCE) as leaver:
        deployment = await trial.create(leaver)
    await trial.client.members.update(member.id, disabled=True)
    run = await trial.wait_for_run(deployment, await trial.fire(deployment))
    paused = await trial.client.deployments.retrieve(deployment.id)
    return run.session_id is None and paused.status == "paused" and not await trial.sessions(deployment)


def _figure(
    trial: _Trial,
    once: Sequence[bool],
    policies: Sequence[bool],
    zones: Sequence[bool],
    *,
    restored: bool,
    disabled: bool,
) -> Figure:
    headline = f"{sum(once)} of {len(once)} runs started one session although everything was killed"
    return Figure(
        headline=headline,
        summary=f"{headline} at that moment; {sum(policies)} of {len(policies)} overlap policies as documented; "
        f"times right in {sum(zones)} of {len(zones)} time zones across both daylight-saving changes; a restored "
        f"database and Temporal {'started no past run again' if restored else 'started a past run again'}; the "
        f"schedule of a disabled member {'paused' if disabled else 'did not pause'}"
        + (f"; faults: {'; '.join(trial.faults[:3])}" if trial.faults else ""),
        holds=all((*once, *policies, *zones, restored, disabled)),
        details={"faults": [*trial.faults], "policies": [*policies], "time_zones": [*zones]},
    )
