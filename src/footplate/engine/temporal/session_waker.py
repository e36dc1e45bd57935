"""Wakes a session's Temporal workflow: one request signals the workflow, and starts it if it is not running.

The workflow id contains the organisation and the session id.
"""

from datetime import timedelta

from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy
from temporalio.service import RPCError

from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.engine.temporal.workflows import PREPARE, WAKE, SessionInput, SessionWorkflow


def workflow_id(organisation: str, session_id: str) -> str:
    return f"session/{organisation}/{session_id}"


class TemporalWaker:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def wake(self, organisation: str, session_id: str, *, ends_when_idle: bool = False) -> None:
        await self._signal(WAKE, organisation, session_id, ends_when_idle=ends_when_idle)

    async def prepare(self, organisation: str, session_id: str) -> None:
        await self._signal(PREPARE, organisation, session_id)

    async def _signal(self, name: str, organisation: str, session_id: str, *, ends_when_idle: bool = False) -> None:
        linger, heartbeat_timeout = self._settings.linger, self._settings.heartbeat_timeout
        session = SessionInput(organisation, session_id, linger, heartbeat_timeout, ends_when_idle=ends_when_idle)
        try:
            await self._client.start_workflow(
                SessionWorkflow.run,
                session,
                id=workflow_id(organisation, session_id),
                task_queue=self._settings.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal=name,
                priority=Priority(fairness_key=organisation[:64]),
                rpc_timeout=timedelta(seconds=5),
            )
        except RPCError as error:
            raise Unavailable(f"Temporal does not respond: {error.message}") from error
