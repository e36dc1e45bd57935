"""Reads the Temporal workflow histories of a cluster's sessions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from bench.prove.figure import require
from bench.support.cluster import Cluster
from footplate.engine.temporal.session_waker import workflow_id
from footplate.stack.orphan_processes import wait_until
from footplate.stack.temporal_connection import connect_temporal

ORGANISATION: Final = "default"
_PATIENCE: Final = 30.0
_IDLE_EVENT_TYPES: Final = (EventType.EVENT_TYPE_TIMER_STARTED, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)


class WorkflowHistories:
    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    async def connect(cls, cluster: Cluster) -> "WorkflowHistories":
        return cls(await connect_temporal(cluster.settings.temporal_address))

    def _handle(self, session_id: str, run_id: str | None = None) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(workflow_id(ORGANISATION, session_id), run_id=run_id)

    async def fetch_events(self, session_id: str, run_id: str | None = None) -> Sequence[HistoryEvent]:
        """Returns the history of one run, by default of the newest."""
        return (await self._handle(session_id, run_id).fetch_history()).events

    async def wait_until_idle(self, session_id: str) -> Sequence[HistoryEvent]:
        """Waits until the workflow has completed or only waits for its linger timer, then returns its history."""
        history: Sequence[HistoryEvent] = ()

        async def is_idle() -> bool:
            nonlocal history
            history = await self.fetch_events(session_id)
            return history[-1].event_type in _IDLE_EVENT_TYPES

        became_idle = await wait_until(is_idle, _PATIENCE)
        require(holds=became_idle, otherwise=f"the workflow of {session_id} did not become idle")
        return history

    async def describe(self, session_id: str, run_id: str | None = None) -> WorkflowExecutionDescription:
        return await self._handle(session_id, run_id).describe()

    async def is_open(self, session_id: str) -> bool:
        try:
            return (await self.describe(session_id)).status is WorkflowExecutionStatus.RUNNING
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise

    async def wait_until_closed(self, session_id: str) -> WorkflowExecutionDescription:
        """Waits until the newest run has closed, then returns its description."""

        async def is_closed() -> bool:
            return not await self.is_open(session_id)

        ended = await wait_until(is_closed, _PATIENCE)
        require(holds=ended, otherwise=f"the workflow of {session_id} is still open after its linger")
        return await self.describe(session_id)


def event_type_name(event: HistoryEvent) -> str:
    return EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")


def event_seconds(event: HistoryEvent) -> float:
    return event.event_time.ToNanoseconds() / 1e9


def timestamp_seconds(time: datetime | None) -> float:
    require(holds=time is not None, otherwise="a closed workflow has no end time")
    assert time is not None
    return time.timestamp()
