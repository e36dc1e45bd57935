"""The Temporal workflow of a webhook endpoint, and its activity, which sends what is due.

Each endpoint has its own workflow, so one that fails or hangs delays no other. The activities have their own task
queue: they never take the place of a turn. Between attempts the workflow waits for a timer or a wake signal. Its
history contains ids only, and is cut by continue-as-new.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from temporalio import activity, workflow
from temporalio.common import Priority, RetryPolicy

from footplate.domain.errors import Unavailable
from footplate.domain.ports.webhooks import EndpointRunner
from footplate.engine.temporal.activities import IMMEDIATELY, heartbeat, retryable_error
from footplate.engine.temporal.workflows import WAKE

DELIVER: Final = "deliver_webhooks"
_LINGER: Final = timedelta(seconds=30)
"""How long a workflow without work stays open."""
_MAX_WAIT: Final = timedelta(hours=4)
_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), backoff_coefficient=2, maximum_interval=timedelta(seconds=30)
)


def webhook_queue(task_queue: str) -> str:
    return f"{task_queue}-webhooks"


@dataclass(frozen=True)
class EndpointRef:
    organisation: str
    endpoint_id: str


@dataclass(frozen=True)
class WebhookInput:
    organisation: str
    endpoint_id: str
    task_queue: str
    """The queue of the activity."""
    heartbeat_timeout: float
    woken: bool = True
    """The wake flag, passed on by continue-as-new."""
    wait: float | None = None
    """The seconds until the next attempt, passed on by continue-as-new."""


@workflow.defn(name="WebhookWorkflow")
class WebhookWorkflow:
    def __init__(self) -> None:
        self._woken = False

    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        self._woken = True

    @workflow.run
    async def run(self, endpoint: WebhookInput) -> None:
        self._woken = self._woken or endpoint.woken
        wait = endpoint.wait
        while True:
            if not self._woken:
                timeout = _LINGER if wait is None else min(timedelta(seconds=wait), _MAX_WAIT)
                try:
                    await workflow.wait_condition(lambda: self._woken, timeout=timeout)
                except TimeoutError:
                    if wait is None and not self._woken:
                        return
            self._woken = False
            wait = await workflow.execute_activity(
                DELIVER,
                EndpointRef(endpoint.organisation, endpoint.endpoint_id),
                task_queue=endpoint.task_queue,
                start_to_close_timeout=timedelta(minutes=10),
                heartbeat_timeout=timedelta(seconds=endpoint.heartbeat_timeout),
                retry_policy=_RETRY,
                priority=Priority(fairness_key=endpoint.organisation[:64]),
            )
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(replace(endpoint, woken=self._woken, wait=wait))


class WebhookActivities:
    def __init__(self, runner: EndpointRunner, *, heartbeat_timeout: float) -> None:
        self._runner = runner
        self._interval = heartbeat_timeout / 4

    @activity.defn(name=DELIVER)
    async def deliver(self, endpoint: EndpointRef) -> float | None:
        """Send what is due. Returns the seconds until the next attempt, or None if nothing is pending."""
        async with heartbeat(self._interval):
            try:
                return await self._runner.run(endpoint.organisation, endpoint.endpoint_id)
            except asyncio.CancelledError:
                message = "The worker is stopping; another worker sends the webhooks."
                raise retryable_error(message, "handover", after=IMMEDIATELY) from None
            except Unavailable as error:
                raise retryable_error(error.message, error.code) from error
