"""The schedule of the sweep is repaired, whatever another Temporal client does to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from temporalio.client import (
    Client,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError

from footplate.config import Settings
from footplate.domain import ids
from footplate.engine.temporal.sweep_schedule import SweepSchedule
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal

pytestmark = pytest.mark.timing


@pytest.fixture
async def client(stack: Stack) -> Client:
    return await connect_temporal(stack.settings.temporal_address)


@pytest.fixture
async def schedule(client: Client) -> AsyncIterator[ScheduleHandle]:
    settings = Settings(task_queue=ids.new_id("queue"), sweep_interval=1)
    sweep = SweepSchedule(client, settings)
    await sweep.create_or_repair()
    repairing = asyncio.create_task(sweep.keep_repaired())
    handle = client.get_schedule_handle(f"sweep/{settings.task_queue}")
    yield handle
    repairing.cancel()
    await handle.delete()


async def _pause(handle: ScheduleHandle) -> None:
    await handle.pause(note="by somebody else")


async def _delete(handle: ScheduleHandle) -> None:
    await handle.delete()


async def _make_rare(handle: ScheduleHandle) -> None:
    def rarely(found: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = found.description.schedule
        schedule.spec.intervals = [ScheduleIntervalSpec(every=timedelta(days=400))]
        return ScheduleUpdate(schedule)

    await handle.update(rarely)


async def _replace_action(handle: ScheduleHandle) -> None:
    def elsewhere(found: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = found.description.schedule
        schedule.action = ScheduleActionStartWorkflow("Nothing", id="nothing", task_queue="nowhere")
        return ScheduleUpdate(schedule)

    await handle.update(elsewhere)


@pytest.mark.parametrize("attack", [_pause, _delete, _make_rare, _replace_action])
async def test_the_schedule_is_repaired(
    schedule: ScheduleHandle, attack: Callable[[ScheduleHandle], Awaitable[None]]
) -> None:
    await attack(schedule)
    assert await wait_until(lambda: _is_intact(schedule), 20)


@pytest.mark.parametrize("interval", [1.5, 10])
async def test_an_untouched_schedule_has_no_fault(client: Client, interval: float) -> None:
    sweep = SweepSchedule(client, Settings(task_queue=(queue := ids.new_id("queue")), sweep_interval=interval))
    await sweep.create_or_repair()
    handle = client.get_schedule_handle(f"sweep/{queue}")
    before = (await handle.describe()).info.last_updated_at
    await sweep.create_or_repair()
    assert (await handle.describe()).info.last_updated_at == before
    await handle.delete()


async def test_the_start_of_a_worker_ends_an_earlier_pause(client: Client) -> None:
    sweep = SweepSchedule(client, Settings(task_queue=(queue := ids.new_id("queue")), sweep_interval=3600))
    await sweep.create_or_repair()
    handle = client.get_schedule_handle(f"sweep/{queue}")
    await handle.pause()
    await sweep.create_or_repair()
    assert not (await handle.describe()).schedule.state.paused
    await handle.delete()


async def _is_intact(handle: ScheduleHandle) -> bool:
    try:
        found = (await handle.describe()).schedule
    except RPCError:
        return False
    action = found.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    return (
        not found.state.paused
        and action.workflow == "SweepWorkflow"
        and found.spec.intervals[0].every < timedelta(days=1)
    )
