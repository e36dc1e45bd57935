"""Wakes the Temporal workflow of a webhook endpoint: one request signals it, and starts it if it is not running."""

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError

from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.engine.temporal.session_waker import RPC_TIMEOUT, find_replacement_policy
from footplate.engine.temporal.webhook_workflow import WebhookInput, WebhookWorkflow, webhook_queue
from footplate.engine.temporal.workflows import WAKE


class TemporalWebhookSignals:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def wake(self, organisation: str, endpoint_id: str) -> None:
        await self._signal(organisation, endpoint_id, WorkflowIDConflictPolicy.USE_EXISTING)

    async def wake_overdue(self, organisation: str, endpoint_id: str) -> None:
        """Wake an endpoint whose signal was lost. A workflow that does nothing is replaced."""
        policy = await find_replacement_policy(self._client, webhook_workflow_id(organisation, endpoint_id))
        if policy is not None:
            await self._signal(organisation, endpoint_id, policy)

    async def _signal(self, organisation: str, endpoint_id: str, conflict_policy: WorkflowIDConflictPolicy) -> None:
        settings = self._settings
        queue = webhook_queue(settings.task_queue)
        try:
            await self._client.start_workflow(
                WebhookWorkflow.run,
                WebhookInput(organisation, endpoint_id, queue, settings.heartbeat_timeout),
                id=webhook_workflow_id(organisation, endpoint_id),
                task_queue=settings.task_queue,
                id_conflict_policy=conflict_policy,
                start_signal=WAKE,
                rpc_timeout=RPC_TIMEOUT,
            )
        except RPCError as error:
            raise Unavailable(f"Temporal does not respond: {error.message}") from error


def webhook_workflow_id(organisation: str, endpoint_id: str) -> str:
    return f"webhook/{organisation}/{endpoint_id}"
