"""Stores webhook endpoints and the deliveries to them.

The secrets of endpoints sign requests, so they are stored as they are. No method but `load_target` returns a stored
secret.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg
import orjson

from footplate.domain import audit, ids
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import restrict_roles
from footplate.domain.organisations.visibility import SessionAudience, ViewFilter
from footplate.domain.organisations.webhooks import (
    DISABLED_AFTER,
    MAX_ENDPOINTS,
    MAX_PENDING,
    RETRY_PERIOD,
    AttemptResult,
    DeliveryStatus,
    NewDelivery,
    PendingDelivery,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookFormat,
    WebhookTarget,
    new_secret,
)
from footplate.domain.ports.webhooks import WebhookUnit
from footplate.domain.sessions import webhook_events
from footplate.domain.sessions.triggers import MIN_RETENTION
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.resources.audit_trail import AuditUnitOfWork
from footplate.store.row_mapping import Row

_FAILING_REASON: Final = f"It has failed for more than {DISABLED_AFTER.days} days."


class WebhookUnitOfWork(AuditUnitOfWork, WebhookUnit):
    """The methods of a unit of work that change webhook endpoints."""

    _connection: Connection

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
        count = await self._connection.fetchval(SQL["count_webhook_endpoints"], principal.organisation)
        if count >= MAX_ENDPOINTS:
            raise Conflict(
                f"The organisation has {count} webhook endpoints, and the limit is {MAX_ENDPOINTS}.",
                help_text="Delete one that is no longer needed, or use one endpoint for all sessions.",
            )
        secret = new_secret()
        with _unique_url():
            row = await self._connection.fetchrow(
                *bind(
                    "insert_webhook_endpoint",
                    id=ids.new_id(ids.WEBHOOK),
                    organisation=principal.organisation,
                    session_id=session_id,
                    url=url,
                    description=description,
                    types=[*types],
                    format=webhook_format.value,
                    ordered=ordered,
                    secret=secret,
                    principal=principal.id,
                    roles=sorted(principal.roles),
                )
            )
        assert row is not None
        endpoint = load_endpoint(row)
        await self._record_webhook(principal, "webhook.create", endpoint)
        return endpoint, secret

    async def update_webhook_endpoint(
        self, principal: Principal, endpoint_id: str, change: Callable[[WebhookEndpoint], WebhookEndpoint]
    ) -> WebhookEndpoint:
        old = await self._webhook(principal, endpoint_id)
        new = change(old)
        with _unique_url():
            row = await self._connection.fetchrow(
                *bind(
                    "update_webhook_endpoint",
                    id=endpoint_id,
                    organisation=principal.organisation,
                    url=new.url,
                    description=new.description,
                    types=[*new.types],
                    format=new.format.value,
                    ordered=new.ordered,
                    is_disabled=new.disabled_at is not None,
                )
            )
        assert row is not None
        endpoint = load_endpoint(row)
        await self._record_webhook(principal, "webhook.update", endpoint)
        return endpoint

    async def delete_webhook_endpoint(self, principal: Principal, endpoint_id: str) -> None:
        endpoint = await self._webhook(principal, endpoint_id)
        await self._connection.execute(SQL["delete_webhook_endpoint"], endpoint_id, principal.organisation)
        await self._record_webhook(principal, "webhook.delete", endpoint)

    async def rotate_webhook_secret(
        self, principal: Principal, endpoint_id: str, *, overlap: timedelta
    ) -> tuple[WebhookEndpoint, str]:
        await self._webhook(principal, endpoint_id)
        secret = new_secret()
        row = await self._connection.fetchrow(
            SQL["replace_webhook_secret"], endpoint_id, principal.organisation, secret, overlap
        )
        assert row is not None
        endpoint = load_endpoint(row)
        await self._record_webhook(principal, "webhook.rotate", endpoint)
        return endpoint, secret

    async def test_webhook_endpoint(self, principal: Principal, endpoint_id: str) -> WebhookDelivery:
        endpoint = await self._enabled_webhook(principal, endpoint_id)
        delivery_id = ids.new_id(ids.WEBHOOK_DELIVERY)
        payload = webhook_events.build_test_payload(endpoint, delivery_id, datetime.now(UTC).isoformat())
        row = await self._connection.fetchrow(
            *bind(
                "insert_webhook_test",
                id=delivery_id,
                endpoint_id=endpoint_id,
                organisation=principal.organisation,
                type=webhook_events.TEST,
                payload=payload,
                retry_period=RETRY_PERIOD,
            )
        )
        assert row is not None
        return load_delivery(row)

    async def replay_webhook_delivery(
        self, principal: Principal, endpoint_id: str, delivery_id: str
    ) -> WebhookDelivery:
        await self._enabled_webhook(principal, endpoint_id)
        row = await self._connection.fetchrow(SQL["replay_webhook_delivery"], delivery_id, endpoint_id, RETRY_PERIOD)
        if row is None:
            raise NotFound("delivery", delivery_id)
        return load_delivery(row)

    async def _enabled_webhook(self, principal: Principal, endpoint_id: str) -> WebhookEndpoint:
        endpoint = await self._webhook(principal, endpoint_id)
        if endpoint.disabled_at is not None:
            raise Conflict(
                f"The webhook endpoint {endpoint_id!r} is disabled, so nothing is sent to it.",
                help_text=f"Enable it first: footplate webhooks update {endpoint_id} --enable",
            )
        return endpoint

    async def _webhook(self, principal: Principal, endpoint_id: str) -> WebhookEndpoint:
        row = await self._connection.fetchrow(
            SQL["webhook_endpoint"], endpoint_id, principal.organisation, ViewFilter.of(principal).audiences
        )
        if row is None:
            raise NotFound("webhook endpoint", endpoint_id)
        return load_endpoint(row)

    async def _record_webhook(self, principal: Principal, action: str, endpoint: WebhookEndpoint) -> None:
        """The URL is not recorded, because it may contain a secret."""
        details: JsonObject = {"session": endpoint.session_id, "disabled": endpoint.disabled_at is not None}
        await self.record(
            principal, audit.build_change_entry(action, endpoint.id, details, session=endpoint.session_id)
        )


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The engine's view of endpoints and deliveries. Implements the `WebhookStore` port."""

    database: Database
    retry_period: timedelta = RETRY_PERIOD

    async def load_target(self, organisation: str, endpoint_id: str) -> WebhookTarget | None:
        row = await self.database.fetchrow("load_webhook_endpoint", endpoint_id, organisation)
        if row is None:
            return None
        is_old_valid = row["old_secret_expires_at"] is not None and row["old_secret_expires_at"] > datetime.now(UTC)
        return WebhookTarget(
            endpoint=load_endpoint(row),
            secrets=[row["secret"], *([row["old_secret"]] if is_old_valid else [])],
            view=_load_view(row),
            position=row["position"],
            pending=row["pending"],
        )

    async def create_deliveries(
        self, endpoint_id: str, *, after: int, position: int, deliveries: Sequence[NewDelivery]
    ) -> None:
        await self.database.fetch(
            "create_webhook_deliveries",
            endpoint_id=endpoint_id,
            old_position=after,
            new_position=position,
            retry_period=self.retry_period,
            ids=[each.id for each in deliveries],
            positions=[each.position for each in deliveries],
            session_ids=[each.session_id for each in deliveries],
            types=[each.type for each in deliveries],
            payloads=[orjson.dumps(each.payload).decode() for each in deliveries],
        )

    async def next_deliveries(self, endpoint: WebhookEndpoint, limit: int) -> Sequence[PendingDelivery]:
        rows = await self.database.fetch("next_webhook_deliveries", endpoint.id, endpoint.ordered, limit)
        return [_load_pending(row) for row in rows]

    async def record_attempt(self, delivery: WebhookDelivery, result: AttemptResult, wait: timedelta | None) -> None:
        if result.is_success:
            await self.database.fetch("record_webhook_success", delivery.id, result.status_code)
        else:
            await self.database.fetch(
                "record_webhook_failure",
                id=delivery.id,
                status_code=result.status_code,
                error=result.error,
                wait=wait,
                disabled_after=DISABLED_AFTER,
                reason=_FAILING_REASON,
            )

    async def disable(self, endpoint_id: str, reason: str) -> None:
        await self.database.fetch("disable_webhook_endpoint", endpoint_id, reason)

    async def find_organisations(self) -> frozenset[str]:
        return frozenset(row["organisation"] for row in await self.database.fetch("webhook_organisations"))

    async def mark_for_wake(self, organisations: Sequence[str]) -> Sequence[tuple[str, str]]:
        rows = await self.database.fetch("mark_webhooks_for_wake", [*organisations])
        return [(row["organisation"], row["id"]) for row in rows]

    async def find_endpoints_to_wake(self) -> Sequence[tuple[str, str]]:
        rows = await self.database.fetch("webhooks_to_wake", MAX_PENDING)
        return [(row["organisation"], row["id"]) for row in rows]


class WebhookExpiry:
    """Deletes old deliveries, also those to triggers, replaced secrets, the endpoints of deleted sessions, and browsers
    that have been signed out for long. Archives the triggers of deleted sessions.
    """

    def __init__(self, database: Database, older_than: timedelta) -> None:
        self._database = database
        self._older_than = older_than

    async def run(self) -> None:
        await self._database.fetch("delete_old_webhook_secrets")
        await self._database.fetch("expire_webhooks", self._older_than)
        await self._database.fetch("remove_unused_push_subscriptions")
        await self._database.fetch("delete_old_trigger_secrets")
        await self._database.fetch("archive_triggers_of_deleted_sessions")
        await self._database.fetch("expire_trigger_deliveries", max(self._older_than, MIN_RETENTION))


@contextmanager
def _unique_url() -> Iterator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError:
        raise Conflict(
            "There is already a webhook endpoint with this URL for the same sessions.",
            help_text="Change that one, or replace its secret: footplate webhooks rotate",
        ) from None


def load_endpoint(row: Row) -> WebhookEndpoint:
    return WebhookEndpoint(
        id=row["id"],
        organisation=row["organisation"],
        session_id=row["session_id"],
        url=row["url"],
        description=row["description"],
        types=row["types"],
        format=WebhookFormat(row["format"]),
        ordered=row["ordered"],
        created_by=row["principal"],
        created_at=row["created_at"],
        failing_since=row["failing_since"],
        disabled_at=row["disabled_at"],
        disabled_reason=row["disabled_reason"],
        old_secret_expires_at=row["old_secret_expires_at"],
    )


def load_delivery(row: Row) -> WebhookDelivery:
    return WebhookDelivery(
        id=row["id"],
        endpoint_id=row["endpoint_id"],
        session_id=row["session_id"],
        type=row["type"],
        payload=row["payload"],
        status=DeliveryStatus(row["status"]),
        attempts=row["attempts"],
        created_at=row["created_at"],
        next_attempt_at=row["next_attempt_at"],
        last_attempt_at=row["last_attempt_at"],
        last_status_code=row["last_status_code"],
        last_error=row["last_error"],
    )


def _load_pending(row: Row) -> PendingDelivery:
    audience = None
    if row["visible_to"] is not None:
        audience = SessionAudience(row["owner"], row["visible_to"], frozenset(row["project_ids"]))
    return PendingDelivery(
        delivery=load_delivery(row), seconds=row["seconds"], session_title=row["title"], audience=audience
    )


def _load_view(row: Row) -> ViewFilter | None:
    """Returns what the endpoint's principal can see, with the roles that the API key had and the principal has."""
    if row["acting_id"] is None:
        return None
    roles = restrict_roles(row["roles"], row["acting_roles"])
    principal = Principal(row["organisation"], row["acting_id"], row["acting_name"], roles, frozenset(row["team_ids"]))
    return ViewFilter.of(principal)
