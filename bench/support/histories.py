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
_AT_REST: Final = (EventType.EVENT_TYPE_TIMER_STARTED, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)


class Histories:
    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    async def of(cls, cluster: Cluster) -> "Histories":
        return cls(await connect_temporal(cluster.settings.temporal_address))

    def _handle(self, session_id: str, run_id: str | None = None) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(workflow_id(ORGANISATION, session_id), run_id=run_id)

    async def events(self, session_id: str, run_id: str | None = None) -> Sequence[HistoryEvent]:
        """Returns the history of one run, by default of the newest."""
        return (await self._handle(session_id, run_id).fetch_history()).events

    async def at_rest(self, session_id: str) -> Sequence[HistoryEvent]:
        """Waits until the workflow has completed or only waits for its linger timer, then returns its history."""
        found: Sequence[HistoryEvent] = ()

        async def resting() -> bool:
            nonlocal found
            found = await self.events(session_id)
            return found[-1].event_type in _AT_REST

        rests = await wait_until(resting, _PATIENCE)
        require(holds=rests, otherwise=f"the workflow of {session_id} did not become idle")
        return found

    async def describe(self, session_id: str, run_id: str | None = None) -> WorkflowExecutionDescription:
        return await self._handle(session_id, run_id).describe()

    async def is_open(self, session_id: str) -> bool:
        try:
            return (await self.describe(session_id)).status is WorkflowExecutionStatus.RUNNING
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise

    async def closed(self, session_id: str) -> WorkflowExecutionDescription:
        """Waits until the newest run has closed, then returns its description."""

        async def over() -> bool:
            return not await self.is_open(session_id)

        ended = await wait_until(over, _PATIENCE)
        require(holds=ended, otherwise=f"the workflow of {session_id} is still open after its linger")
        return await self.describe(session_id)


def kind(event: HistoryEvent) -> str:
    return EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")


def moment(event: HistoryEvent) -> float:
    return event.event_time.ToNanoseconds() / 1e9


def seconds(time: datetime | None) -> float:
    require(holds=time is not None, otherwise="a closed workflow has no end time")
    assert time is not None
    return time.timestamp()
