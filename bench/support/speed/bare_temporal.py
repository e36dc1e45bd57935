"""Bare Temporal for comparison: a workflow that is started with a signal, runs one activity and completes.

Run it as a module with the arguments ADDRESS, QUEUE and SLOTS to start its worker, which has our worker's options.
"""

import asyncio
import sys
from datetime import timedelta
from typing import Final

from temporalio import activity, workflow
from temporalio.common import Priority
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from footplate.stack.temporal_connection import connect_temporal

READY: Final = b"bare worker ready"
WAKE: Final = "wake"


@activity.defn
async def one_activity(number: int, seconds: float = 0.0) -> int:
    if seconds:
        await asyncio.sleep(seconds)
    return number


@workflow.defn
class BareWorkflow:
    def __init__(self) -> None:
        self._woken = False

    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        self._woken = True

    @workflow.run
    async def run(self, number: int, seconds: float = 0.0) -> int:
        await workflow.wait_condition(lambda: self._woken)
        return await workflow.execute_activity(
            one_activity,
            args=[number, seconds],
            start_to_close_timeout=timedelta(minutes=1),
            priority=Priority(fairness_key="bare"),
        )


async def _work(address: str, queue: str, slots: int) -> None:
    worker = Worker(
        await connect_temporal(address),
        task_queue=queue,
        workflows=[BareWorkflow],
        activities=[one_activity],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=slots,
        max_cached_workflows=1000,
        max_concurrent_workflow_task_polls=4,
        max_concurrent_activity_task_polls=4,
    )
    async with worker:
        print(READY.decode(), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
