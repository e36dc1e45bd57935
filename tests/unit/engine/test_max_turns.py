"""A worker with several task queues runs no more turns than its setting allows."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import SlotMarkUsedContext, SlotPermit, SlotReleaseContext

from footplate.engine.temporal.activities import TurnActivities
from footplate.engine.temporal.turn_slots import TurnSlots
from footplate.engine.temporal.workflows import RUN_TURN, SWEEP, SessionRef
from footplate.engine.turn.runner import TurnEnded, TurnRunner


class _Runner:
    def __init__(self) -> None:
        self.activities: TurnActivities
        self.refused: list[str | None] = []

    async def run(self, organisation: str, session_id: str) -> TurnEnded:
        with pytest.raises(ApplicationError) as caught:
            await self.activities.run_turn(SessionRef(organisation, session_id))
        self.refused.append(caught.value.type)
        return TurnEnded(has_more=False)


async def test_a_turn_beyond_the_limit_is_refused() -> None:
    runner = _Runner()
    activities = runner.activities = TurnActivities(cast("TurnRunner", runner), heartbeat_timeout=10, max_turns=1)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    for _ in range(2):  # a turn that has ended does not count
        assert await environment.run(activities.run_turn, SessionRef("org", "sesn_1")) is False
    assert runner.refused == ["busy", "busy"]


@dataclass(frozen=True)
class _Task:
    activity_type: str


@dataclass(frozen=True)
class _Used:
    slot_info: _Task
    permit: SlotPermit


def _use(slots: TurnSlots, permit: SlotPermit, activity_type: str = RUN_TURN) -> None:
    slots.mark_slot_used(cast("SlotMarkUsedContext", _Used(_Task(activity_type), permit)))


@pytest.mark.timing
async def test_all_queues_share_the_slots_and_only_running_turns_take_one() -> None:
    slots = TurnSlots(1)
    queue = cast("Any", None)
    waiting = [await slots.reserve_slot(queue) for _ in range(5)]  # pollers of any queue that get no task
    sweep = await slots.reserve_slot(queue)
    _use(slots, sweep, SWEEP)
    running = await slots.reserve_slot(queue)
    _use(slots, running)
    next_poll = asyncio.create_task(slots.reserve_slot(queue))
    await asyncio.sleep(0.01)
    assert not next_poll.done()
    assert slots.try_reserve_slot(queue) is None
    for permit in (*waiting, sweep):
        slots.release_slot(SlotReleaseContext(slot_info=None, permit=permit))
    await asyncio.sleep(0.01)
    assert not next_poll.done()
    await asyncio.to_thread(slots.release_slot, SlotReleaseContext(slot_info=None, permit=running))
    await asyncio.wait_for(next_poll, 5)
