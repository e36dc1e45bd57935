"""Ports of notifications: what the API and the engine need from the store."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.webhooks import WebhookDelivery
from footplate.domain.sessions.notifications import (
    NewPushSubscription,
    NotificationSettings,
    PushSubscription,
    PushTarget,
    VapidKey,
)


class NotificationReads(Protocol):
    async def notification_settings(self, principal: Principal) -> NotificationSettings: ...
    async def push_subscriptions(self, principal: Principal) -> Sequence[PushSubscription]:
        """Return the subscriptions of the caller, the newest first."""


class NotificationUnit(Protocol):
    """The part of the API's unit of work that changes the notifications of the caller."""

    async def update_notification_settings(
        self, principal: Principal, change: Callable[[NotificationSettings], NotificationSettings]
    ) -> NotificationSettings:
        """Change the settings, which are locked meanwhile, and return the new ones. What quiet hours have postponed
        is sent at the end of the new ones.
        """

    async def save_push_subscription(self, principal: Principal, new: NewPushSubscription) -> PushSubscription:
        """Create a subscription, or renew the one with the same address. Of another member, it is replaced."""

    async def delete_push_subscription(self, principal: Principal, subscription_id: str) -> None:
        """Delete a subscription with its pending deliveries."""

    async def test_push_subscription(self, principal: Principal, subscription_id: str) -> WebhookDelivery:
        """Create a delivery that only tests the subscription."""


class PushKeys(Protocol):
    async def load(self) -> VapidKey:
        """Return the key pair of this server. The first call creates it, unless a setting has it."""


class PushStore(Protocol):
    """The engine's view of subscriptions. Every method may safely run twice."""

    async def load_push_target(self, organisation: str, subscription_id: str) -> PushTarget | None:
        """Return the subscription, or None if it was deleted or disabled. From now on, a new item sends a new wake
        signal.
        """

    async def create_item_deliveries(self, target: PushTarget) -> None:
        """Create a delivery for each recent inbox item that needs the member, unless there is one."""

    async def postpone(self, target: PushTarget, delivery: WebhookDelivery, until: datetime) -> None:
        """Send the delivery at the end of the quiet hours, unless they were changed since `target` was loaded."""

    async def drop(self, delivery: WebhookDelivery) -> None:
        """Delete a pending delivery whose item needs the member no more."""

    async def drop_pending(self, subscription_id: str) -> None: ...
    async def record_push_success(self, subscription_id: str) -> None: ...
    async def remove_subscription(self, subscription_id: str) -> None:
        """Delete a subscription that the push service no longer knows."""
