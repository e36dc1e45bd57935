"""In-memory fakes of the webhook endpoints of one organisation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.webhooks import DeliveryStatus, WebhookDelivery, WebhookEndpoint, WebhookFormat
from footplate.domain.pagination import Page
from footplate.domain.sessions import webhook_events

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class WebhookWorld:
    endpoints: dict[str, WebhookEndpoint] = field(default_factory=dict)
    sent: dict[str, WebhookDelivery] = field(default_factory=dict)
    woken: list[str] = field(default_factory=list)

    def endpoints_changed(self, organisation: str) -> None:
        self.woken.append(organisation)

    def find(self, principal: Principal, endpoint_id: str) -> WebhookEndpoint:
        found = self.endpoints.get(endpoint_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("webhook endpoint", endpoint_id)
        return found

    def find_delivery(self, principal: Principal, endpoint_id: str, delivery_id: str) -> WebhookDelivery:
        self.find(principal, endpoint_id)
        if delivery_id not in self.sent:
            raise NotFound("delivery", delivery_id)
        return self.sent[delivery_id]


class FakeWebhookReads:
    webhook_world: WebhookWorld

    async def webhook_endpoint(self, principal: Principal, endpoint_id: str) -> WebhookEndpoint:
        return self.webhook_world.find(principal, endpoint_id)

    async def webhook_endpoints(
        self, principal: Principal, page: Page, *, session_id: str | None = None
    ) -> Sequence[WebhookEndpoint]:
        found = [
            each
            for each in self.webhook_world.endpoints.values()
            if each.organisation == principal.organisation and session_id in {None, each.session_id}
        ]
        return found[: page.limit]

    async def webhook_delivery(self, principal: Principal, endpoint_id: str, delivery_id: str) -> WebhookDelivery:
        return self.webhook_world.find_delivery(principal, endpoint_id, delivery_id)

    async def webhook_deliveries(
        self, principal: Principal, endpoint_id: str, page: Page, *, status: DeliveryStatus | None = None
    ) -> Sequence[WebhookDelivery]:
        self.webhook_world.find(principal, endpoint_id)
        found = [each for each in self.webhook_world.sent.values() if status in {None, each.status}]
        return found[: page.limit]


class FakeWebhookUnit:
    webhook_world: WebhookWorld

    async def create_webhook_endpoint(
        self,
        principal: Principal,
        *,
        url: str,
        session_id: str | None,
        description: str | None,
        types: Sequence[str],
        webhook_format: WebhookFormat,
        ordered: bool,
    ) -> tuple[WebhookEndpoint, str]:
        endpoint = WebhookEndpoint(
            id=ids.new_id(ids.WEBHOOK),
            organisation=principal.organisation,
            session_id=session_id,
            url=url,
            description=description,
            types=types,
            format=webhook_format,
            ordered=ordered,
            created_by=principal.id,
            created_at=_NOW,
        )
        self.webhook_world.endpoints[endpoint.id] = endpoint
        return endpoint, "whsec_first"

    async def update_webhook_endpoint(
        self, principal: Principal, endpoint_id: str, change: Callable[[WebhookEndpoint], WebhookEndpoint]
    ) -> WebhookEndpoint:
        changed = change(self.webhook_world.find(principal, endpoint_id))
        self.webhook_world.endpoints[endpoint_id] = changed
        return changed

    async def delete_webhook_endpoint(self, principal: Principal, endpoint_id: str) -> None:
        self.webhook_world.find(principal, endpoint_id)
        del self.webhook_world.endpoints[endpoint_id]

    async def rotate_webhook_secret(
        self, principal: Principal, endpoint_id: str, *, overlap: timedelta
    ) -> tuple[WebhookEndpoint, str]:
        found = self.webhook_world.find(principal, endpoint_id)
        return replace(found, old_secret_expires_at=_NOW + overlap), "whsec_second"

    async def test_webhook_endpoint(self, principal: Principal, endpoint_id: str) -> WebhookDelivery:
        endpoint = self.webhook_world.find(principal, endpoint_id)
        delivery_id = ids.new_id(ids.WEBHOOK_DELIVERY)
        delivery = WebhookDelivery(
            id=delivery_id,
            endpoint_id=endpoint_id,
            session_id=None,
            type=webhook_events.TEST,
            payload=webhook_events.build_test_payload(endpoint, delivery_id, _NOW.isoformat()),
            status=DeliveryStatus.PENDING,
            attempts=0,
            created_at=_NOW,
            next_attempt_at=_NOW,
        )
        self.webhook_world.sent[delivery.id] = delivery
        return delivery

    async def replay_webhook_delivery(
        self, principal: Principal, endpoint_id: str, delivery_id: str
    ) -> WebhookDelivery:
        return self.webhook_world.find_delivery(principal, endpoint_id, delivery_id)
