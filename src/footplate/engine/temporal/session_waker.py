"""Wakes a session's Temporal workflow: one request signals the workflow, and starts it if it is not running.

The workflow id contains the organisation and the session id.

If Temporal was restored from an older copy, a worker may have a newer state of a workflow in its cache. Such a workflow
waits for an activity that Temporal does not know, and every signal is lost on it. So the sweep replaces the workflow of
a session that has work, if Temporal knows of nothing that the workflow is doing.
"""

from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.engine.temporal.workflows import PREPARE, WAKE, SessionInput, SessionWorkflow

RPC_TIMEOUT: Final = timedelta(seconds=5)


def workflow_id(organisation: str, session_id: str) -> str:
    return f"session/{organisation}/{session_id}"


class TemporalWaker:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def wake(
        self, organisation: str, session_id: str, *, ends_when_idle: bool = False, priority: int | None = None
    ) -> None:
        await self._signal(WAKE, organisation, session_id, ends_when_idle=ends_when_idle, priority=priority)

    async def wake_overdue(self, organisation: str, session_id: str, *, priority: int | None = None) -> bool:
        policy = await find_replacement_policy(self._client, workflow_id(organisation, session_id))
        if policy is None:
            # Its turn waits for a worker, or ends now. If it ends without seeing the wake flag, the next sweep finds
            # the session again.
            return False
        # It may be the child of a session, which needs no workflow when it has ended.
        await self._signal(
            WAKE, organisation, session_id, ends_when_idle=True, priority=priority, conflict_policy=policy
        )
        return True

    async def end_wait(self, organisation: str, session_id: str) -> None:
        # Temporal cannot end the wait between two attempts of an activity, so the workflow is replaced. No work is
        # lost: an attempt that has started in the meantime obeys the interrupt too.
        policy = WorkflowIDConflictPolicy.TERMINATE_EXISTING
        await self._signal(WAKE, organisation, session_id, ends_when_idle=True, conflict_policy=policy)

    async def prepare(self, organisation: str, session_id: str) -> None:
        await self._signal(PREPARE, organisation, session_id)

    async def _signal(
        self,
        name: str,
        organisation: str,
        session_id: str,
        *,
        ends_when_idle: bool = False,
        priority: int | None = None,
        conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.USE_EXISTING,
    ) -> None:
        linger, heartbeat_timeout = self._settings.linger, self._settings.heartbeat_timeout
        session = SessionInput(
            organisation, session_id, linger, heartbeat_timeout, ends_when_idle=ends_when_idle, priority=priority
        )
        try:
            await self._client.start_workflow(
                SessionWorkflow.run,
                session,
                id=workflow_id(organisation, session_id),
                task_queue=self._settings.task_queue,
                id_conflict_policy=conflict_policy,
                start_signal=name,
                priority=Priority(priority_key=priority, fairness_key=organisation[:64]),
                rpc_timeout=RPC_TIMEOUT,
            )
        except RPCError as error:
            raise Unavailable(f"Temporal does not respond: {error.message}") from error


async def find_replacement_policy(client: Client, workflow_id: str) -> WorkflowIDConflictPolicy | None:
    """Return how to start a workflow that is overdue: one that does nothing is replaced. None: a worker has its
    activity or its next task, or will receive it.
    """
    try:
        found = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return WorkflowIDConflictPolicy.USE_EXISTING
        raise Unavailable(f"Temporal does not respond: {error.message}") from error
    raw = found.raw_description
    if raw.pending_activities or raw.HasField("pending_workflow_task"):
        return None
    return WorkflowIDConflictPolicy.TERMINATE_EXISTING
