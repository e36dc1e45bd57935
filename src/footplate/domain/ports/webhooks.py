"""Ports of webhooks: what the API and the engine need from the store and from each other."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.webhooks import (
    AttemptResult,
    DeliveryStatus,
    NewDelivery,
    PendingDelivery,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookFormat,
    WebhookTarget,
)
from footplate.domain.pagination import Page
from footplate.domain.sessions.feed import FeedChange


class WebhookReads(Protocol):
    async def webhook_endpoint(self, principal: Principal, endpoint_id: str) -> WebhookEndpoint:
        """Return an endpoint of a session that the principal can see. Administrators can read every endpoint."""

    async def webhook_endpoints(
        self, principal: Principal, page: Page, *, session_id: str | None = None
    ) -> Sequence[WebhookEndpoint]: ...

    async def webhook_delivery(self, principal: Principal, endpoint_id: str, delivery_id: str) -> WebhookDelivery: ...

    async def webhook_deliveries(
        self, principal: Principal, endpoint_id: str, page: Page, *, status: DeliveryStatus | None = None
    ) -> Sequence[WebhookDelivery]: ...


class WebhookUnit(Protocol):
    """The part of the API's unit of work that changes webhook endpoints. Every change is in the audit trail."""

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
        """Create an endpoint and return its secret, which cannot be read again."""

    async def update_webhook_endpoint(
        self, principal: Principal, endpoint_id: str, change: Callable[[WebhookEndpoint], WebhookEndpoint]
    ) -> WebhookEndpoint:
        """Change an endpoint, or disable or enable it: `disabled_at` is only compared with None."""

    async def delete_webhook_endpoint(self, principal: Principal, endpoint_id: str) -> None:
        """Delete an endpoint with its deliveries."""

    async def rotate_webhook_secret(
        self, principal: Principal, endpoint_id: str, *, overlap: timedelta
    ) -> tuple[WebhookEndpoint, str]:
        """Replace the secret and return the new one. The old one signs too for the time of `overlap`."""

    async def test_webhook_endpoint(self, principal: Principal, endpoint_id: str) -> WebhookDelivery:
        """Create a delivery that only tests the endpoint."""

    async def replay_webhook_delivery(
        self, principal: Principal, endpoint_id: str, delivery_id: str
    ) -> WebhookDelivery:
        """Send a delivery again, with the same id."""


class WebhookNotifier(Protocol):
    def endpoints_changed(self, organisation: str) -> None:
        """Wake the endpoints of an organisation after the commit of a change to one of them. Best effort."""


class EndpointRunner(Protocol):
    """Delivers to one endpoint."""

    async def run(self, organisation: str, endpoint_id: str) -> float | None:
        """Send what is due. Returns the seconds until the next attempt, or None if nothing is pending."""


class ChangeReader(Protocol):
    """Reads the feed of an organisation."""

    async def number_changes(self, organisations: Sequence[str]) -> Mapping[str, int]: ...
    async def read_changes(self, organisation: str, after: int, limit: int) -> Sequence[FeedChange]: ...


class WebhookStore(Protocol):
    """The engine's view of endpoints and deliveries. Every method may safely run twice."""

    async def load_target(self, organisation: str, endpoint_id: str) -> WebhookTarget | None:
        """Return the endpoint, or None if it was deleted. From now on, a new change sends a new wake signal."""

    async def create_deliveries(
        self, endpoint_id: str, *, after: int, position: int, deliveries: Sequence[NewDelivery]
    ) -> None:
        """Create the deliveries of the changes after one position up to another, unless it was done before."""

    async def next_deliveries(self, endpoint: WebhookEndpoint, limit: int) -> Sequence[PendingDelivery]:
        """Return pending deliveries in the order of their next attempts, without those that wait for another one."""

    async def record_attempt(self, delivery: WebhookDelivery, result: AttemptResult, wait: timedelta | None) -> None:
        """Record an attempt. `wait`: the time until the next one if it failed; None: there is no next one."""

    async def disable(self, endpoint_id: str, reason: str) -> None: ...

    async def find_organisations(self) -> frozenset[str]:
        """Return the organisations that have an enabled endpoint."""

    async def mark_for_wake(self, organisations: Sequence[str]) -> Sequence[tuple[str, str]]:
        """Return organisation and id of the endpoints to which a wake signal is to be sent."""

    async def find_endpoints_to_wake(self) -> Sequence[tuple[str, str]]:
        """Return organisation and id of the endpoints whose wake signal was lost."""
