"""Sends the notifications of one browser: creates a delivery for each new inbox item, sends what is due, and records
the result of each attempt.

The workflow, the deliveries and the retries are those of webhooks. Each delivery is checked again right before it is
sent, because what needed a person a moment ago may be decided. A delivery that is sent twice has the same tag, so the
browser shows it once.
"""

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import orjson
import structlog

from footplate import failpoints
from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.domain.organisations.webhooks import AttemptResult, PendingDelivery, retry_wait
from footplate.domain.ports.notifications import PushStore
from footplate.domain.ports.webhooks import EndpointRunner, WebhookStore
from footplate.domain.sessions import notifications
from footplate.domain.sessions.inbox import InboxItemNotFound, InboxReads
from footplate.domain.sessions.notifications import PushTarget
from footplate.engine.bounded_concurrency import call_for_each
from footplate.engine.webhooks.push_sender import PushSender

log = structlog.get_logger(__name__)

_ROUND_SIZE: Final = 64
_CONCURRENCY: Final = 4
_MAX_SECONDS: Final = 30.0
_GONE: Final = frozenset({404, 410})
"""With these, a push service says that a subscription does not exist any more (RFC 8030)."""


class EndpointRunners(EndpointRunner):
    """Chooses who sends: endpoints that are browsers have ids of their own."""

    def __init__(self, webhooks: EndpointRunner, push: EndpointRunner) -> None:
        self._webhooks = webhooks
        self._push = push

    async def run(self, organisation: str, endpoint_id: str) -> float | None:
        is_push = endpoint_id.startswith(f"{ids.PUSH_SUBSCRIPTION}_")
        return await (self._push if is_push else self._webhooks).run(organisation, endpoint_id)


class PushRunner(EndpointRunner):
    def __init__(
        self,
        store: PushStore,
        deliveries: WebhookStore,
        inbox: InboxReads,
        sender: PushSender,
        *,
        first_retry_wait: timedelta,
    ) -> None:
        self._store = store
        self._deliveries = deliveries
        self._inbox = inbox
        self._sender = sender
        self._first_retry_wait = first_retry_wait

    async def run(self, organisation: str, endpoint_id: str) -> float | None:
        """Send what is due. Returns the seconds until the next attempt, or None if nothing is pending."""
        deadline = time.monotonic() + _MAX_SECONDS
        while True:
            target = await self._store.load_push_target(organisation, endpoint_id)
            if target is None:
                return None
            if target.principal is None:
                await self._store.drop_pending(endpoint_id)
                return None
            if target.settings.is_enabled:
                await self._store.create_item_deliveries(target)
            pending = await self._deliveries.next_deliveries(target.endpoint, _ROUND_SIZE)
            due = [each for each in pending if each.seconds <= 0]
            if not due:
                return pending[0].seconds if pending else None
            await call_for_each(due, partial(self._send, target), concurrency=_CONCURRENCY)
            if time.monotonic() > deadline:
                return 0.0

    async def _send(self, target: PushTarget, pending: PendingDelivery) -> None:
        delivery, endpoint_id = pending.delivery, target.endpoint.id
        is_test = delivery.type == notifications.TEST
        now = datetime.now(UTC)
        if not is_test and (until := target.settings.quiet_until(now)) is not None:
            await self._store.postpone(target, delivery, until)
            return
        content = (
            notifications.build_test_notification(delivery.id)
            if is_test
            else await self._build_notification(target, str(delivery.payload["item_id"]), now)
        )
        if content is None:
            await self._store.drop(delivery)
            return
        result = await self._sender.send(target, orjson.dumps(content), topic=str(content["id"]))
        await failpoints.hit("webhook_sent")
        if result.status_code in _GONE:
            await self._store.remove_subscription(endpoint_id)
            log.info("a browser no longer receives notifications", action="push.gone", endpoint=endpoint_id)
            return
        wait = retry_wait(delivery.attempts + 1, self._first_retry_wait)
        await self._deliveries.record_attempt(delivery, result, wait)
        await self._report(endpoint_id, result)

    async def _report(self, endpoint_id: str, result: AttemptResult) -> None:
        if result.is_success:
            await self._store.record_push_success(endpoint_id)
        else:
            log.info(
                "a notification could not be sent", action="push.failed", endpoint=endpoint_id, reason=result.error
            )

    async def _build_notification(self, target: PushTarget, item_id: str, now: datetime) -> JsonObject | None:
        """None: the item needs the member no more, or the member can no longer see it."""
        assert target.principal is not None
        if not target.settings.is_enabled:
            return None
        try:
            item = await self._inbox.inbox_item(target.principal, item_id)
        except InboxItemNotFound:
            return None
        return notifications.build_notification(item) if notifications.concerns(item, target.principal, now) else None
