"""Stores push subscriptions, the notification settings of members, and the key pair of the server.

A subscription is a webhook endpoint with the format `push`, so its deliveries are those of webhooks. No method returns
the private key or the keys of a browser to the API.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from footplate.domain import audit, ids
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import restrict_roles
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.organisations.webhooks import RETRY_PERIOD, WebhookDelivery
from footplate.domain.ports.notifications import NotificationUnit
from footplate.domain.ports.notifications import PushKeys as PushKeysPort
from footplate.domain.sessions.notifications import (
    ITEM,
    MAX_AGE,
    MAX_SUBSCRIPTIONS,
    TEST,
    NewPushSubscription,
    NotificationSettings,
    PushSubscription,
    PushTarget,
    QuietHours,
    VapidKey,
    describe_state,
)
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.resources.audit_trail import AuditUnitOfWork
from footplate.store.resources.webhooks import load_delivery, load_endpoint
from footplate.store.row_mapping import Row
from footplate.vapid_key import create_vapid_key, parse_vapid_key

_KIND: Final = "push subscription"


class NotificationUnitOfWork(AuditUnitOfWork, NotificationUnit):
    """The methods of a unit of work that change the notifications of the caller."""

    _connection: Connection

    async def update_notification_settings(
        self, principal: Principal, change: Callable[[NotificationSettings], NotificationSettings]
    ) -> NotificationSettings:
        owner = (principal.id, principal.organisation)
        row = await self._connection.fetchrow(
            SQL["lock_notification_settings"], *owner, NotificationSettings().is_enabled
        )
        assert row is not None
        settings = change(_load_settings(row))
        quiet = settings.quiet_hours
        await self._connection.execute(
            *bind(
                "save_notification_settings",
                principal=principal.id,
                organisation=principal.organisation,
                is_enabled=settings.is_enabled,
                quiet_start=None if quiet is None else quiet.start,
                quiet_end=None if quiet is None else quiet.end,
                timezone=None if quiet is None else quiet.timezone,
            )
        )
        await self._connection.execute(SQL["resume_postponed_pushes"], *owner)
        return settings

    async def save_push_subscription(self, principal: Principal, new: NewPushSubscription) -> PushSubscription:
        owner = (principal.id, principal.organisation)
        await self._connection.execute(SQL["remove_push_subscription_of_others"], new.url, *owner)
        known = {row["url"] for row in await self._connection.fetch(SQL["push_subscriptions"], *owner, None)}
        if new.url not in known and len(known) >= MAX_SUBSCRIPTIONS:
            raise Conflict(
                f"You receive notifications in {len(known)} browsers, and the limit is {MAX_SUBSCRIPTIONS}.",
                help_text="Remove one that you no longer use: footplate notifications rm",
            )
        subscription_id = await self._connection.fetchval(
            SQL["save_push_endpoint"],
            *(ids.new_id(ids.PUSH_SUBSCRIPTION), principal.organisation, new.url, principal.id),
            sorted(principal.roles),
        )
        if subscription_id is None:
            raise Conflict("Another member subscribed with this browser at the same time.", help_text="Try again.")
        await self._connection.execute(
            *bind(
                "save_push_subscription",
                endpoint_id=subscription_id,
                p256dh=new.p256dh,
                auth=new.auth,
                user_agent=new.user_agent,
                api_key=new.api_key_id,
                browser_session=new.browser_session_id,
            )
        )
        if new.url not in known:
            await self._record_push(principal, "push_subscription.create", subscription_id)
        return await self._push_subscription(principal, subscription_id)

    async def delete_push_subscription(self, principal: Principal, subscription_id: str) -> None:
        if not await self._connection.fetchval(
            SQL["delete_push_subscription"], subscription_id, principal.organisation, principal.id
        ):
            raise NotFound(_KIND, subscription_id)
        await self._record_push(principal, "push_subscription.delete", subscription_id)

    async def test_push_subscription(self, principal: Principal, subscription_id: str) -> WebhookDelivery:
        found = await self._push_subscription(principal, subscription_id)
        if found.state == "disabled":
            raise Conflict(
                "The push service has refused all notifications for days, so nothing is sent to this browser.",
                help_text="Turn notifications off and on again in that browser.",
            )
        row = await self._connection.fetchrow(
            *bind(
                "insert_webhook_test",
                id=ids.new_id(ids.WEBHOOK_DELIVERY),
                endpoint_id=subscription_id,
                organisation=principal.organisation,
                type=TEST,
                payload={},
                retry_period=RETRY_PERIOD,
            )
        )
        assert row is not None
        return load_delivery(row)

    async def _push_subscription(self, principal: Principal, subscription_id: str) -> PushSubscription:
        row = await self._connection.fetchrow(
            SQL["push_subscriptions"], principal.id, principal.organisation, subscription_id
        )
        if row is None:
            raise NotFound(_KIND, subscription_id)
        return _load_subscription(row)

    async def _record_push(self, principal: Principal, action: str, subscription_id: str) -> None:
        """The address is not recorded: who knows it can send to the browser what looks like an attempt."""
        await self.record(principal, audit.build_change_entry(action, subscription_id, {}))


async def read_settings(database: Database, principal: Principal) -> NotificationSettings:
    row = await database.fetchrow("notification_settings", principal.id, principal.organisation)
    return NotificationSettings() if row is None else _load_settings(row)


async def list_subscriptions(database: Database, principal: Principal) -> Sequence[PushSubscription]:
    rows = await database.fetch("push_subscriptions", principal.id, principal.organisation, None)
    return [_load_subscription(row) for row in rows]


class PushKeys(PushKeysPort):
    """Reads the key pair once. `private_key`: the one of the settings, which has priority over the stored one."""

    def __init__(self, database: Database, private_key: str | None) -> None:
        self._database = database
        self._key = None if private_key is None else parse_vapid_key(private_key)

    async def load(self) -> VapidKey:
        if self._key is None:
            # Two processes may create a key at the same time: the second one's statement may not see the first one's.
            row = None
            while row is None:
                row = await self._database.fetchrow("push_key", create_vapid_key().private)
            self._key = parse_vapid_key(row["private_key"])
        return self._key


@dataclass(frozen=True, slots=True)
class PushSubscriptions:
    """The engine's view of subscriptions. Implements the `PushStore` port."""

    database: Database
    retry_period: timedelta = RETRY_PERIOD

    async def load_push_target(self, organisation: str, subscription_id: str) -> PushTarget | None:
        row = await self.database.fetchrow("load_push_target", subscription_id, organisation)
        if row is None or row["disabled_at"] is not None:
            return None
        return PushTarget(
            endpoint=load_endpoint(row),
            p256dh=row["p256dh"],
            auth=row["auth"],
            principal=_load_principal(row),
            settings=_load_settings(row),
        )

    async def create_item_deliveries(self, target: PushTarget) -> None:
        assert target.principal is not None
        await self.database.fetch(
            "create_item_deliveries",
            endpoint_id=target.endpoint.id,
            organisation=target.endpoint.organisation,
            audiences=ViewFilter.of(target.principal).audiences,
            max_age=MAX_AGE,
            type=ITEM,
            retry_period=self.retry_period,
        )

    async def postpone(self, target: PushTarget, delivery: WebhookDelivery, until: datetime) -> None:
        quiet = target.settings.quiet_hours
        assert target.principal is not None
        assert quiet is not None
        await self.database.fetch(
            "postpone_push",
            id=delivery.id,
            until=until,
            principal=target.principal.id,
            organisation=target.endpoint.organisation,
            quiet_start=quiet.start,
            quiet_end=quiet.end,
            timezone=quiet.timezone,
        )

    async def drop(self, delivery: WebhookDelivery) -> None:
        await self.database.fetch("drop_push", delivery.id)

    async def drop_pending(self, subscription_id: str) -> None:
        await self.database.fetch("drop_pending_pushes", subscription_id)

    async def record_push_success(self, subscription_id: str) -> None:
        await self.database.fetch("record_push_success", subscription_id)

    async def remove_subscription(self, subscription_id: str) -> None:
        await self.database.fetch("remove_push_subscription", subscription_id)


def _load_subscription(row: Row) -> PushSubscription:
    return PushSubscription(
        id=row["id"],
        url=row["url"],
        user_agent=row["user_agent"],
        created_at=row["created_at"],
        last_success_at=row["last_success_at"],
        state=describe_state(
            is_valid=row["is_valid"], disabled_at=row["disabled_at"], failing_since=row["failing_since"]
        ),
        problem=row["problem"],
    )


def _load_settings(row: Row) -> NotificationSettings:
    quiet = None
    if row["quiet_start"] is not None:
        quiet = QuietHours(row["quiet_start"], row["quiet_end"], row["timezone"])
    return NotificationSettings(is_enabled=row["is_enabled"], quiet_hours=quiet)


def _load_principal(row: Row) -> Principal | None:
    if row["acting_id"] is None:
        return None
    roles = restrict_roles(row["roles"], row["acting_roles"])
    return Principal(row["organisation"], row["acting_id"], row["acting_name"], roles, frozenset(row["team_ids"]))
