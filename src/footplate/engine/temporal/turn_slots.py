"""Limits the concurrent turns of a worker, whichever task queues they come from.

The SDK limits each task queue separately, and counts a slot from the moment that it waits for a task. A common limit of
that kind could be taken up by one queue that has no tasks. So only running turns count here: a worker that runs as many
as it may asks no queue for another one. A request that is already on its way may still bring a turn, which the activity
then refuses.
"""

import asyncio
import threading
from dataclasses import dataclass

from temporalio.worker import (
    ActivitySlotInfo,
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

from footplate.engine.temporal.workflows import RUN_TURN

_OTHER_SLOTS = 100
"""The SDK's default for other kinds of tasks."""


@dataclass(slots=True)
class _Permit(SlotPermit):
    runs_turn: bool = False


class TurnSlots(CustomSlotSupplier):
    """Create it in the event loop of the workers. The SDK marks and releases slots from threads of its own."""

    def __init__(self, max_turns: int) -> None:
        self._max_turns = max_turns
        self._count = 0
        self._lock = threading.Lock()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._loop = asyncio.get_running_loop()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002 - all queues share the slots
        await self._has_room.wait()
        return _Permit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002
        return _Permit() if self._count < self._max_turns else None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        if isinstance(ctx.permit, _Permit) and _is_turn(ctx):
            ctx.permit.runs_turn = True
            self._change_count(1)

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        if isinstance(ctx.permit, _Permit) and ctx.permit.runs_turn:
            ctx.permit.runs_turn = False
            self._change_count(-1)

    def _change_count(self, change: int) -> None:
        with self._lock:
            self._count += change
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._update)

    def _update(self) -> None:
        if self._count < self._max_turns:
            self._has_room.set()
        else:
            self._has_room.clear()


def create_tuner(slots: TurnSlots) -> WorkerTuner:
    """Return the options of a worker whose activities use these slots."""
    others = FixedSizeSlotSupplier(_OTHER_SLOTS)
    return WorkerTuner.create_composite(
        workflow_supplier=others, activity_supplier=slots, local_activity_supplier=others, nexus_supplier=others
    )


def _is_turn(ctx: SlotMarkUsedContext) -> bool:
    return isinstance(ctx.slot_info, ActivitySlotInfo) and ctx.slot_info.activity_type == RUN_TURN
