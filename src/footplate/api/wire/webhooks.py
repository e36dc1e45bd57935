"""Wire models of webhook endpoints and deliveries: request bodies, list filters and responses."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.request_base import (
    NOT_NULLABLE,
    Body,
    Id,
    Parameters,
    Text,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.organisations.webhooks import MAX_OVERLAP, WebhookDelivery, WebhookEndpoint
from footplate.domain.sessions.webhook_events import DESCRIPTIONS

Url = Annotated[Text, StringConstraints(min_length=1, max_length=2000)]
Description = Annotated[Text, StringConstraints(max_length=500)]
EventTypes = Annotated[
    list[Annotated[str, StringConstraints(max_length=64)]],
    Field(max_length=50, description="The types of events to send. Empty: all types."),
]
Format = Literal["standard", "slack"]
Status = Literal["pending", "delivered", "failed"]
_OVERLAP_DESCRIPTION = "How long the old secret signs too, in seconds. Default: a day. 0: not at all."


class WebhookEndpointCreate(Body):
    url: Url
    description: Description | None = None
    event_types: EventTypes = Field(default_factory=list)
    session_id: Annotated[
        Id | None, Field(description="Only events of this session. Default: of all sessions, which needs `admin`.")
    ] = None
    format: Annotated[
        Format, Field(description="`standard`: the event of the reference API. `slack`: a message for people.")
    ] = "standard"
    ordered: Annotated[
        bool, Field(description="Whether an event waits until the earlier events of its session are delivered.")
    ] = False


class WebhookEndpointUpdate(Body):
    """Omitted fields keep their values."""

    url: Url = NOT_NULLABLE
    description: Description | None = None
    event_types: EventTypes = NOT_NULLABLE
    format: Format = NOT_NULLABLE
    ordered: bool = NOT_NULLABLE
    disabled: Annotated[
        bool, Field(description="A disabled endpoint receives nothing. Enabled again, it receives what it missed.")
    ] = NOT_NULLABLE


class SecretRotation(Body):
    overlap_seconds: Annotated[
        int, Field(ge=0, le=int(MAX_OVERLAP.total_seconds()), description=_OVERLAP_DESCRIPTION)
    ] = 86_400


class ListWebhookEndpoints(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    session_id: Id | None = None


class ListWebhookDeliveries(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    status: Status | None = None


class WebhookEndpointResponse(ResponseModel):
    id: str
    type: Literal["webhook_endpoint"]
    url: str
    description: str | None
    event_types: list[str]
    session_id: str | None
    format: Format
    ordered: bool
    created_at: datetime
    created_by: str
    failing_since: datetime | None
    """The first failed attempt since the last successful one."""
    disabled_at: datetime | None
    disabled_reason: str | None
    """Why the server disabled the endpoint."""
    old_secret_expires_at: datetime | None


class NewWebhookEndpointResponse(WebhookEndpointResponse):
    secret: str
    """The secret that signs the events. It cannot be read again."""


class DeletedWebhookEndpointResponse(ResponseModel):
    id: str
    type: Literal["webhook_endpoint_deleted"]


class WebhookDeliveryResponse(ResponseModel):
    id: str
    type: Literal["webhook_delivery"]
    endpoint_id: str
    session_id: str | None
    event_type: str
    status: Status
    attempts: int
    created_at: datetime
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_status_code: int | None
    last_error: str | None
    payload: dict[str, Any]
    """The event, as an endpoint with the format `standard` receives it."""


def check_event_types(types: list[str]) -> None:
    """Raises `InvalidRequest` for a type that does not exist."""
    for each in types:
        if each not in DESCRIPTIONS:
            raise InvalidRequest(
                f"event_types: there is no event type {each!r}",
                field="event_types",
                help_text=f"The types are {', '.join(DESCRIPTIONS)}.",
            )


def serialize_endpoint(endpoint: WebhookEndpoint) -> JsonObject:
    return {
        "id": endpoint.id,
        "type": "webhook_endpoint",
        "url": endpoint.url,
        "description": endpoint.description,
        "event_types": [*endpoint.types],
        "session_id": endpoint.session_id,
        "format": endpoint.format.value,
        "ordered": endpoint.ordered,
        "created_at": timestamp(endpoint.created_at),
        "created_by": endpoint.created_by,
        "failing_since": optional_timestamp(endpoint.failing_since),
        "disabled_at": optional_timestamp(endpoint.disabled_at),
        "disabled_reason": endpoint.disabled_reason,
        "old_secret_expires_at": optional_timestamp(endpoint.old_secret_expires_at),
    }


def serialize_delivery(delivery: WebhookDelivery) -> JsonObject:
    return {
        "id": delivery.id,
        "type": "webhook_delivery",
        "endpoint_id": delivery.endpoint_id,
        "session_id": delivery.session_id,
        "event_type": delivery.type,
        "status": delivery.status.value,
        "attempts": delivery.attempts,
        "created_at": timestamp(delivery.created_at),
        "next_attempt_at": optional_timestamp(delivery.next_attempt_at),
        "last_attempt_at": optional_timestamp(delivery.last_attempt_at),
        "last_status_code": delivery.last_status_code,
        "last_error": delivery.last_error,
        "payload": delivery.payload,
    }
