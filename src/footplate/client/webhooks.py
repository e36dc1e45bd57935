"""Client methods and models for webhooks in both directions: endpoints, which receive the events of sessions, and
triggers, by which other systems start sessions.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field
from standardwebhooks import Webhook

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import AgentReference, Deleted, ResponseModel, RunError
from footplate.client.transport import Transport

_PATH = "/v1/webhook_endpoints"
_TRIGGERS = "/v1/triggers"


class WebhookEndpoint(ResponseModel):
    id: str
    url: str
    description: str | None = None
    event_types: list[str] = Field(default_factory=list)
    """Empty: all types."""
    session_id: str | None = None
    """None: all sessions."""
    format: Literal["standard", "slack"]
    ordered: bool
    created_at: datetime
    created_by: str
    failing_since: datetime | None = None
    disabled_at: datetime | None = None
    disabled_reason: str | None = None
    """Why the server disabled the endpoint."""
    old_secret_expires_at: datetime | None = None
    secret: str | None = None
    """The secret that signs events, only in the response that creates the endpoint or replaces its secret."""


class WebhookDelivery(ResponseModel):
    id: str
    """Also the header `webhook-id` of every attempt."""
    endpoint_id: str
    session_id: str | None = None
    event_type: str
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    created_at: datetime
    next_attempt_at: datetime | None = None
    last_attempt_at: datetime | None = None
    last_status_code: int | None = None
    last_error: str | None = None
    payload: dict[str, Any]


class Webhooks:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self,
        url: str,
        *,
        session_id: str | None = None,
        event_types: Sequence[str] = (),
        description: str | None = None,
        format: Literal["standard", "slack"] = "standard",  # noqa: A002 - the name of the field
        ordered: bool = False,
    ) -> WebhookEndpoint:
        """Creates an endpoint. The result contains its `secret`, which cannot be read again."""
        fields = drop_none(
            url=url,
            session_id=session_id,
            event_types=[*event_types],
            description=description,
            format=format,
            ordered=ordered,
        )
        return WebhookEndpoint.model_validate(await self._transport.post(_PATH, fields))

    def list(self, *, limit: int | None = None, session_id: str | None = None) -> Pages[WebhookEndpoint]:
        return Pages(self._transport, _PATH, WebhookEndpoint, {"limit": limit, "session_id": session_id})

    async def retrieve(self, endpoint_id: str) -> WebhookEndpoint:
        return WebhookEndpoint.model_validate(await self._transport.get(f"{_PATH}/{endpoint_id}"))

    async def update(self, endpoint_id: str, **fields: Any) -> WebhookEndpoint:
        """Changes `url`, `description`, `event_types`, `format`, `ordered` or `disabled`. A field that is None is
        unchanged.
        """
        body = drop_none(**fields)
        return WebhookEndpoint.model_validate(await self._transport.post(f"{_PATH}/{endpoint_id}", body))

    async def delete(self, endpoint_id: str) -> Deleted:
        return Deleted.model_validate(await self._transport.delete(f"{_PATH}/{endpoint_id}"))

    async def rotate_secret(self, endpoint_id: str, *, overlap_seconds: int | None = None) -> WebhookEndpoint:
        """Replaces the secret. The result contains the new one. The old one signs too for `overlap_seconds`, by default
        a day.
        """
        body = drop_none(overlap_seconds=overlap_seconds)
        return WebhookEndpoint.model_validate(await self._transport.post(f"{_PATH}/{endpoint_id}/rotate_secret", body))

    async def test(self, endpoint_id: str) -> WebhookDelivery:
        """Sends a test event. The result is its delivery, which is still pending."""
        return WebhookDelivery.model_validate(await self._transport.post(f"{_PATH}/{endpoint_id}/test"))

    def deliveries(
        self, endpoint_id: str, *, limit: int | None = None, status: str | None = None
    ) -> Pages[WebhookDelivery]:
        """Lists deliveries, newest first."""
        params = {"limit": limit, "status": status}
        return Pages(self._transport, f"{_PATH}/{endpoint_id}/deliveries", WebhookDelivery, params)

    async def delivery(self, endpoint_id: str, delivery_id: str) -> WebhookDelivery:
        path = f"{_PATH}/{endpoint_id}/deliveries/{delivery_id}"
        return WebhookDelivery.model_validate(await self._transport.get(path))

    async def replay(self, endpoint_id: str, delivery_id: str) -> WebhookDelivery:
        """Sends a delivery again, with the same id."""
        path = f"{_PATH}/{endpoint_id}/deliveries/{delivery_id}/replay"
        return WebhookDelivery.model_validate(await self._transport.post(path))


class Trigger(ResponseModel):
    """What a signed request of another system starts."""

    id: str
    name: str
    description: str | None = None
    session_id: str | None = None
    """The session that gets the steps. None: each delivery creates a session."""
    agent: AgentReference | None = None
    environment_id: str | None = None
    title: str | None = None
    steps: list[dict[str, Any]] = Field(default_factory=list)
    condition: str | None = None
    max_per_minute: int
    status: Literal["active", "paused"]
    metadata: dict[str, str] = Field(default_factory=dict)
    runs_as: str
    """The member in whose name deliveries act."""
    old_secret_expires_at: datetime | None = None
    created_at: datetime
    archived_at: datetime | None = None
    secret: str | None = None
    """The secret that signs deliveries, only in the response that creates the trigger or replaces its secret."""


class TriggerDelivery(ResponseModel):
    id: str
    trigger_id: str
    delivery_id: str
    """The id that the sender gave it, from the header `webhook-id`."""
    outcome: Literal["session_created", "steps_added", "ignored", "failed"]
    session_id: str | None = None
    error: RunError | None = None
    """Why it failed. The response to the sender does not have it."""
    attempts: int = 1
    created_at: datetime


class Triggers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, *, name: str, steps: Sequence[Mapping[str, Any]], **fields: Any) -> Trigger:
        """Creates a trigger. Needs `agent` and `environment_id`, or `session_id`. The result contains its `secret`,
        which cannot be read again.
        """
        body = drop_none(name=name, steps=[*steps], **fields)
        return Trigger.model_validate(await self._transport.post(_TRIGGERS, body))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[Trigger]:
        """Newest first."""
        return Pages(self._transport, _TRIGGERS, Trigger, {"limit": limit, "include_archived": include_archived})

    async def retrieve(self, trigger_id: str) -> Trigger:
        return Trigger.model_validate(await self._transport.get(f"{_TRIGGERS}/{trigger_id}"))

    async def update(self, trigger_id: str, **fields: Any) -> Trigger:
        """Changes the fields that are passed. `paused` pauses or resumes it. It acts in your name from then on."""
        return Trigger.model_validate(await self._transport.post(f"{_TRIGGERS}/{trigger_id}/update", fields))

    async def archive(self, trigger_id: str) -> Trigger:
        """Ends a trigger for good. Its sessions and deliveries stay."""
        return Trigger.model_validate(await self._transport.post(f"{_TRIGGERS}/{trigger_id}/archive"))

    async def rotate_secret(self, trigger_id: str, *, overlap_seconds: int | None = None) -> Trigger:
        """Replaces the secret. The result contains the new one. The old one is valid too for `overlap_seconds`, by
        default a day.
        """
        body = drop_none(overlap_seconds=overlap_seconds)
        return Trigger.model_validate(await self._transport.post(f"{_TRIGGERS}/{trigger_id}/rotate_secret", body))

    def deliveries(
        self, trigger_id: str, *, limit: int | None = None, outcome: str | None = None
    ) -> Pages[TriggerDelivery]:
        """Lists deliveries, newest first."""
        params = {"limit": limit, "outcome": outcome}
        return Pages(self._transport, f"{_TRIGGERS}/{trigger_id}/deliveries", TriggerDelivery, params)

    async def send(
        self, trigger_id: str, payload: Mapping[str, Any], *, secret: str, delivery_id: str | None = None
    ) -> TriggerDelivery:
        """Sends a signed delivery, as another system does. One with a `delivery_id` that was received before has no
        further effect, and returns the same.
        """
        body = json.dumps(payload)
        headers = sign_delivery(secret, delivery_id or f"msg_{uuid.uuid4().hex}", body)
        response = await self._transport.post_signed(f"{_TRIGGERS}/{trigger_id}", body.encode(), headers)
        return TriggerDelivery.model_validate(response)


def sign_delivery(secret: str, delivery_id: str, body: str) -> dict[str, str]:
    """Returns the headers of a delivery with this body, which are valid for five minutes."""
    now = datetime.now(UTC)
    return {
        "content-type": "application/json",
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(delivery_id, now, body),
    }
