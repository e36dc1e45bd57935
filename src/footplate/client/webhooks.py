"""Client methods and models for webhook endpoints, and the deliveries to them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import Deleted, ResponseModel
from footplate.client.transport import Transport

_PATH = "/v1/webhook_endpoints"


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
