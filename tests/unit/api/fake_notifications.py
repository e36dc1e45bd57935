"""In-memory fakes of push subscriptions and notification settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.webhooks import DeliveryStatus, WebhookDelivery
from footplate.domain.sessions.notifications import (
    TEST,
    NewPushSubscription,
    NotificationSettings,
    PushSubscription,
    VapidKey,
)
from footplate.vapid_key import create_vapid_key

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class NotificationWorld:
    subscriptions: dict[str, tuple[str, PushSubscription]] = field(default_factory=dict)
    """By id, with the member."""
    new: list[NewPushSubscription] = field(default_factory=list)
    settings: dict[str, NotificationSettings] = field(default_factory=dict)
    key: VapidKey = field(default_factory=create_vapid_key)

    async def load(self) -> VapidKey:
        return self.key

    def check_owner(self, principal: Principal, subscription_id: str) -> None:
        if self.subscriptions.get(subscription_id, ("",))[0] != principal.id:
            raise NotFound("push subscription", subscription_id)


class FakeNotificationReads:
    notification_world: NotificationWorld

    async def notification_settings(self, principal: Principal) -> NotificationSettings:
        return self.notification_world.settings.get(principal.id, NotificationSettings())

    async def push_subscriptions(self, principal: Principal) -> Sequence[PushSubscription]:
        return [each for owner, each in self.notification_world.subscriptions.values() if owner == principal.id]


class FakeNotificationUnit:
    notification_world: NotificationWorld

    async def update_notification_settings(
        self, principal: Principal, change: Callable[[NotificationSettings], NotificationSettings]
    ) -> NotificationSettings:
        settings = self.notification_world.settings
        settings[principal.id] = change(settings.get(principal.id, NotificationSettings()))
        return settings[principal.id]

    async def save_push_subscription(self, principal: Principal, new: NewPushSubscription) -> PushSubscription:
        self.notification_world.new.append(new)
        saved = PushSubscription(
            id=ids.new_id(ids.PUSH_SUBSCRIPTION),
            url=new.url,
            user_agent=new.user_agent,
            created_at=_NOW,
            last_success_at=None,
            state="active",
        )
        self.notification_world.subscriptions[saved.id] = (principal.id, saved)
        return saved

    async def delete_push_subscription(self, principal: Principal, subscription_id: str) -> None:
        self.notification_world.check_owner(principal, subscription_id)
        del self.notification_world.subscriptions[subscription_id]

    async def test_push_subscription(self, principal: Principal, subscription_id: str) -> WebhookDelivery:
        self.notification_world.check_owner(principal, subscription_id)
        return WebhookDelivery(
            id=ids.new_id(ids.WEBHOOK_DELIVERY),
            endpoint_id=subscription_id,
            session_id=None,
            type=TEST,
            payload={},
            status=DeliveryStatus.PENDING,
            attempts=0,
            created_at=_NOW,
        )
