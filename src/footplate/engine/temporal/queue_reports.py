"""Reads the state of the deployment's task queues from Temporal: how many tasks wait, for how long, and who asks."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.domain.ports.deployment_health import QueueRecord
from footplate.engine.temporal.webhook_workflow import webhook_queue
from footplate.engine.temporal.workflows import backend_queue

_TIMEOUT: Final = timedelta(seconds=2)
_WORKFLOW: Final = "workflow"
_ACTIVITY: Final = "activity"


class QueueReports:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        shared = settings.task_queue
        backends = settings.backend_names if settings.backends else []  # as the workers do
        self._queues: Sequence[tuple[str, str, str | None]] = [
            (shared, _WORKFLOW, None),
            (shared, _ACTIVITY, None),
            *((backend_queue(shared, each), _ACTIVITY, each) for each in backends),
            (webhook_queue(shared), _ACTIVITY, None),
        ]

    async def describe(self) -> Sequence[QueueRecord]:
        try:
            return await asyncio.gather(*(self._describe(*queue) for queue in self._queues))
        except RPCError as error:
            raise Unavailable(
                f"Temporal does not report its task queues ({error.status.name}).",
                retry_after=1,
                help_text="Try again in a moment. Run `footplate doctor` to check whether Temporal is reachable.",
            ) from error

    async def server_version(self) -> str | None:
        try:
            info = await self._client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=_TIMEOUT)
        except RPCError:
            return None
        return info.server_version or None

    async def _describe(self, name: str, kind: str, backend: str | None) -> QueueRecord:
        is_workflow = kind == _WORKFLOW
        found = await self._client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=self._client.namespace,
                task_queue=TaskQueue(name=name),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
                if is_workflow
                else TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
                report_stats=True,
            ),
            timeout=_TIMEOUT,
        )
        stats = found.stats
        return QueueRecord(
            name=name,
            kind=kind,
            backend=backend,
            backlog=stats.approximate_backlog_count,
            oldest_seconds=stats.approximate_backlog_age.ToTimedelta().total_seconds(),
            added_per_second=stats.tasks_add_rate,
            taken_per_second=stats.tasks_dispatch_rate,
            pollers=len(found.pollers),
        )
