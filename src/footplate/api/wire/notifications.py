"""Wire models of notifications: a member's settings, and the browsers that receive notifications."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from footplate.api.wire.request_base import NOT_NULLABLE, Body, Text, optional_timestamp, timestamp
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.json import JsonObject
from footplate.domain.sessions import notifications
from footplate.domain.sessions.notifications import NotificationSettings, PushSubscription
from footplate.vapid_key import is_auth_secret, is_browser_key

Clock = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
State = Literal["active", "signed_out", "failing", "disabled"]


def _check_browser_key(text: str) -> str:
    if not is_browser_key(text):
        raise ValueError("must be a point of the curve P-256, uncompressed, in base64url")
    return text


def _check_auth(text: str) -> str:
    if not is_auth_secret(text):
        raise ValueError("must be 16 bytes in base64url")
    return text


class QuietHours(Body):
    """The time of each day in which you receive nothing. What still waits is sent when it ends."""

    start: Annotated[Clock, Field(description="`22:00`. A start after the end is on the day before.")]
    end: Clock
    timezone: Annotated[
        Text, StringConstraints(min_length=1, max_length=64), Field(description="A name such as `Europe/Berlin`.")
    ]

    def to_domain(self) -> notifications.QuietHours:
        start, end = notifications.parse_clock(self.start), notifications.parse_clock(self.end)
        return notifications.QuietHours(start, end, self.timezone)


class NotificationSettingsUpdate(Body):
    """Omitted fields keep their values."""

    enabled: Annotated[bool, Field(description="Whether your browsers receive anything but tests.")] = NOT_NULLABLE
    quiet_hours: QuietHours | None = None


class PushSubscriptionKeys(Body):
    p256dh: Annotated[Text, StringConstraints(max_length=100), AfterValidator(_check_browser_key)]
    auth: Annotated[Text, StringConstraints(max_length=40), AfterValidator(_check_auth)]


class PushSubscriptionCreate(Body):
    """A subscription as a browser has it: `PushSubscription.toJSON()`."""

    endpoint: Annotated[Text, StringConstraints(min_length=1, max_length=2000)]
    keys: PushSubscriptionKeys


class QuietHoursResponse(ResponseModel):
    start: str
    end: str
    timezone: str


class NotificationSettingsResponse(ResponseModel):
    type: Literal["notification_settings"]
    enabled: bool
    quiet_hours: QuietHoursResponse | None
    public_key: Annotated[str, Field(description="The key with which a browser subscribes: `applicationServerKey`.")]


class PushSubscriptionResponse(ResponseModel):
    id: str
    type: Literal["push_subscription"]
    endpoint: str
    user_agent: str
    state: Annotated[
        State,
        Field(
            description="`signed_out`: nothing is sent until you sign in there again. `failing`: the last attempt "
            "failed. `disabled`: all attempts have failed for 5 days."
        ),
    ]
    problem: str | None
    created_at: datetime
    last_success_at: datetime | None


class DeletedPushSubscription(ResponseModel):
    id: str
    type: Literal["push_subscription_deleted"]


class PushTestResponse(ResponseModel):
    id: str
    type: Literal["push_test"]


def serialize_settings(settings: NotificationSettings, public_key: str) -> JsonObject:
    quiet = settings.quiet_hours
    hours: JsonObject | None = None
    if quiet is not None:
        hours = {"start": f"{quiet.start:%H:%M}", "end": f"{quiet.end:%H:%M}", "timezone": quiet.timezone}
    return {
        "type": "notification_settings",
        "enabled": settings.is_enabled,
        "quiet_hours": hours,
        "public_key": public_key,
    }


def serialize_subscription(subscription: PushSubscription) -> JsonObject:
    return {
        "id": subscription.id,
        "type": "push_subscription",
        "endpoint": subscription.url,
        "user_agent": subscription.user_agent,
        "state": subscription.state,
        "problem": subscription.problem,
        "created_at": timestamp(subscription.created_at),
        "last_success_at": optional_timestamp(subscription.last_success_at),
    }
