"""Webhook endpoints: URLs that receive the changes of an organisation's sessions, and the deliveries to them.

An endpoint belongs to the organisation or to one session, and receives what the principal who created it can see. A
delivery is one event for one endpoint. It is sent until the endpoint accepts it, for at most a day.
"""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.organisations.visibility import SessionAudience, ViewFilter

MAX_ENDPOINTS: Final = 200
"""The number of endpoints of an organisation. Each change wakes all of them."""
MAX_PENDING: Final = 1000
"""The number of pending deliveries of an endpoint. Beyond it, changes wait in the feed."""
RETRY_PERIOD: Final = timedelta(days=1)
"""How long a delivery is tried, from its creation or replay. It is tried at least once."""
DISABLED_AFTER: Final = timedelta(days=5)
"""An endpoint is disabled when a delivery has failed and every attempt did since this time."""
MAX_OVERLAP: Final = timedelta(days=7)
"""How long a replaced secret can stay valid."""
MAX_RETRY_WAIT: Final = timedelta(hours=4)
_RETRY_FACTOR: Final = 4
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix of every secret
_SECRET_BYTES: Final = 32
_SCHEMES: Final = ("https", "http")


class WebhookFormat(StrEnum):
    STANDARD = "standard"
    """The event of the reference API."""
    SLACK = "slack"
    """A message for an incoming webhook of Slack, or of a program that accepts the same."""
    PUSH = "push"
    """A notification for a member's browser. The routes of webhooks do not have such endpoints."""


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEndpoint:
    """An endpoint without its secrets, which only the sender needs."""

    id: str
    organisation: str
    session_id: str | None
    """None: all sessions."""
    url: str
    description: str | None
    types: Sequence[str]
    """Empty: all types."""
    format: WebhookFormat
    ordered: bool
    """Whether the deliveries of a session are sent one after the other, in the order of its log."""
    created_by: str
    created_at: datetime
    failing_since: datetime | None = None
    disabled_at: datetime | None = None
    disabled_reason: str | None = None
    """Why the server disabled it. None: a person did."""
    old_secret_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    id: str
    """Also the `webhook-id` of every attempt, so that a receiver can recognise a repeated one."""
    endpoint_id: str
    session_id: str | None
    type: str
    payload: JsonObject
    status: DeliveryStatus
    attempts: int
    created_at: datetime
    next_attempt_at: datetime | None = None
    last_attempt_at: datetime | None = None
    last_status_code: int | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """An endpoint with what the sender needs to know about it."""

    endpoint: WebhookEndpoint
    secrets: Sequence[str]
    """The current secret, and the previous one while it is valid."""
    view: ViewFilter | None
    """What its principal can see now. None: the principal is disabled."""
    position: int
    """The position in the feed up to which deliveries were created."""
    pending: int
    """The number of pending deliveries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDelivery:
    delivery: WebhookDelivery
    seconds: float
    """The time until its next attempt. 0: it is due."""
    session_title: str | None
    audience: SessionAudience | None
    """Who can see the session now. None: it was deleted, or the delivery is a test."""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    id: str
    position: int
    session_id: str
    type: str
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of one attempt: the status of the response, or why there was none."""

    status_code: int | None
    error: str | None = None

    @property
    def is_success(self) -> bool:
        return self.error is None


def retry_wait(attempts: int, first: timedelta) -> timedelta:
    """Return the time between a failed attempt and the next one. `attempts` includes the failed one."""
    exponent = min(attempts - 1, 20)  # beyond it, the result is the maximum anyway
    return min(first * int(_RETRY_FACTOR**exponent), MAX_RETRY_WAIT)


def new_secret() -> str:
    """Return a secret in the form of Standard Webhooks."""
    return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


@dataclass(frozen=True, slots=True)
class WebhookAccess:
    """Which URLs may receive webhooks. The address of a host name is checked at each connection, not here."""

    addresses: AddressPolicy
    allow_http: bool = False

    def check_url(self, url: str, field: str = "url") -> None:
        """Raise `InvalidRequest` for a URL to which nothing may be sent. `field`: where the request has it."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise _invalid_url(field, f"is not a valid URL: {error}") from None
        if parts.scheme not in _SCHEMES or not host or not url.isprintable() or " " in url:
            raise _invalid_url(field, "must have the form https://host/path")
        if parts.username is not None or parts.password is not None or "@" in parts.netloc:
            raise _invalid_url(field, "must not contain a user name or password")
        if parts.fragment:
            raise _invalid_url(field, "must not contain a fragment")
        if parts.scheme == "http" and not self.allow_http:
            raise _invalid_url(
                field, "must use https. The operator of this server can allow http with FOOTPLATE_WEBHOOK_HTTP"
            )
        try:
            address = ip_address(host)
        except ValueError:
            return
        if not self.addresses.permits(host, address):
            raise _invalid_url(
                field,
                f"{host} is not a public internet address. The operator of this server can allow it with "
                "FOOTPLATE_WEBHOOK_ALLOW",
            )


def _invalid_url(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{field}: {problem}", field=field, help_text="Use a public https address.")
