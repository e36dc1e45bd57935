"""Sends everything that is due at one webhook endpoint: creates deliveries from the feed, sends them, and records the
result of each attempt.

A delivery is a row before it is sent, and the result is recorded after the response. If the process dies in between,
the delivery is sent again with the same id, so each arrives at least once.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import orjson
import structlog

from footplate import failpoints
from footplate.domain import ids
from footplate.domain.organisations.webhooks import (
    MAX_PENDING,
    AttemptResult,
    NewDelivery,
    PendingDelivery,
    WebhookFormat,
    WebhookTarget,
    retry_wait,
)
from footplate.domain.ports.webhooks import ChangeReader, WebhookStore
from footplate.domain.sessions import webhook_events
from footplate.domain.sessions.feed import FeedChange, FeedViewer
from footplate.engine.bounded_concurrency import call_for_each
from footplate.engine.webhooks.http_sender import WebhookSender

log = structlog.get_logger(__name__)

_PAGE_SIZE: Final = 200
_ROUND_SIZE: Final = 64
_CONCURRENCY: Final = 8
_MAX_SECONDS: Final = 30.0
"""After this time, the activity ends and starts again, so that endpoints take turns."""
_GONE: Final = 410
SESSION_PLACEHOLDER: Final = "{session_id}"


class WebhookRunner:
    def __init__(
        self,
        store: WebhookStore,
        feed: ChangeReader,
        sender: WebhookSender,
        *,
        first_retry_wait: timedelta,
        session_link: str | None = None,
    ) -> None:
        """`session_link`: the address of a session in messages for people, with `{session_id}`."""
        self._store = store
        self._feed = feed
        self._sender = sender
        self._first_retry_wait = first_retry_wait
        self._session_link = session_link

    async def run(self, organisation: str, endpoint_id: str) -> float | None:
        """Send what is due. Returns the seconds until the next attempt, or None if nothing is pending."""
        deadline = time.monotonic() + _MAX_SECONDS
        while True:
            target = await self._load_target(organisation, endpoint_id)
            if target is None:
                return None
            await self._create_deliveries(target)
            pending = await self._store.next_deliveries(target.endpoint, _ROUND_SIZE)
            due = [each for each in pending if each.seconds <= 0]
            if not due:
                return pending[0].seconds if pending else None
            # Again, so that a delivery that was requested after a rotation is not signed with the old secret.
            if (target := await self._load_target(organisation, endpoint_id)) is None:
                return None
            await call_for_each(due, partial(self._send, target), concurrency=_CONCURRENCY)
            if time.monotonic() > deadline:
                return 0.0

    async def _load_target(self, organisation: str, endpoint_id: str) -> WebhookTarget | None:
        """Return the endpoint and its secrets, unless it was deleted or disabled."""
        target = await self._store.load_target(organisation, endpoint_id)
        if target is None or target.endpoint.disabled_at is not None:
            return None
        if target.view is None:
            await self._store.disable(endpoint_id, "The member who created it was disabled.")
            return None
        return target

    async def _create_deliveries(self, target: WebhookTarget) -> None:
        organisation, position, pending = target.endpoint.organisation, target.position, target.pending
        head = (await self._feed.number_changes([organisation]))[organisation]
        while position < head and pending < MAX_PENDING:
            page = await self._feed.read_changes(organisation, position, _PAGE_SIZE)
            end = page[-1].position if page else head
            if not page or page[0].position > position + 1:
                log.warning(
                    "changes were deleted from the feed before a webhook endpoint received them",
                    action="webhook.gap",
                    endpoint=target.endpoint.id,
                )
            new = [delivery for change in page for delivery in _build_deliveries(target, change)]
            await self._store.create_deliveries(target.endpoint.id, after=position, position=end, deliveries=new)
            position, pending = end, pending + len(new)

    async def _send(self, target: WebhookTarget, pending: PendingDelivery) -> None:
        delivery = pending.delivery
        wait: timedelta | None = retry_wait(delivery.attempts + 1, self._first_retry_wait)
        if pending.audience is not None and target.view is not None and not target.view.includes(pending.audience):
            result = AttemptResult(None, "The member who created the endpoint can no longer see the session.")
            wait = None
        else:
            body = orjson.dumps(self._build_body(target, pending)).decode()
            result = await self._sender.send(target.endpoint.url, delivery.id, body, target.secrets)
            await failpoints.hit("webhook_sent")
        await self._store.record_attempt(delivery, result, wait)
        if not result.is_success:
            log.info(
                "a webhook could not be delivered",
                action="webhook.failed",
                endpoint=target.endpoint.id,
                delivery=delivery.id,
                reason=result.error,
            )
        if result.status_code == _GONE:
            await self._store.disable(target.endpoint.id, "It responded with HTTP status 410, Gone.")

    def _build_body(self, target: WebhookTarget, pending: PendingDelivery) -> object:
        delivery = pending.delivery
        if target.endpoint.format is WebhookFormat.STANDARD:
            return delivery.payload
        link = None
        if self._session_link is not None and (session_id := webhook_events.find_session(delivery.payload)) is not None:
            link = self._session_link.replace(SESSION_PLACEHOLDER, session_id)
        return webhook_events.build_slack_message(delivery.payload, pending.session_title, link)


def _build_deliveries(target: WebhookTarget, change: FeedChange) -> Sequence[NewDelivery]:
    endpoint = target.endpoint
    assert target.view is not None
    viewer = FeedViewer(organisation=endpoint.organisation, view=target.view, session_id=endpoint.session_id)
    if not viewer.can_see(change):
        return ()
    found = []
    for event_type in webhook_events.select_types(endpoint, change):
        delivery_id = ids.new_id(ids.WEBHOOK_DELIVERY)
        payload = webhook_events.build_payload(endpoint.organisation, delivery_id, event_type, change)
        found.append(NewDelivery(delivery_id, change.position, change.session_id, event_type, payload))
    return found
