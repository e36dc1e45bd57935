"""Notifications by web push: the browsers of a member that receive them, quiet hours, and what a notification says.

A subscription is a webhook endpoint with the format `push`, so notifications are delivered and retried as webhooks are.
A delivery is one inbox item for one browser.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.webhooks import WebhookEndpoint
from footplate.domain.sessions.inbox import InboxItem, InboxKind

MAX_SUBSCRIPTIONS: Final = 20
"""The number of browsers of a member."""
MAX_AGE: Final = timedelta(days=1)
"""Older items cause no notification."""
ITEM: Final = "inbox.item"
TEST: Final = "push.test"
_MAX_TOOL: Final = 60
_MAX_TITLE: Final = 120
_TITLES: Final = {
    InboxKind.QUESTION: "An agent asks a question",
    InboxKind.FAILURE: "A turn failed",
    InboxKind.MERGE_CONFLICT: "A merge has conflicts",
}

SubscriptionState: TypeAlias = Literal["active", "signed_out", "failing", "disabled"]


@dataclass(frozen=True, slots=True)
class VapidKey:
    """The key pair with which this server identifies itself to push services (VAPID, RFC 8292), in base64url.

    Browsers receive the public key when they subscribe, and a push service accepts messages to a subscription only with
    signatures by the private one.
    """

    private: str = field(repr=False)
    public: str


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The time of each day in which a member receives nothing. The end is the first minute after it."""

    start: time
    end: time
    timezone: str

    def check(self) -> None:
        if self.start == self.end:
            raise InvalidRequest(
                "quiet_hours: start and end are the same time",
                field="quiet_hours",
                help_text="To receive no notifications at all, send `enabled: false`.",
            )
        if self.timezone not in _time_zones():
            raise InvalidRequest(
                f"quiet_hours.timezone: there is no time zone {self.timezone!r}",
                field="quiet_hours.timezone",
                help_text="Use a name of the IANA database, such as Europe/Berlin.",
            )

    def find_end(self, now: datetime) -> datetime | None:
        """Return when the quiet time that includes `now` ends. None: it is not quiet."""
        zone = ZoneInfo(self.timezone)
        local = now.astimezone(zone)
        clock = local.time()
        if self.start < self.end:
            is_quiet, is_tomorrow = self.start <= clock < self.end, False
        else:
            is_quiet, is_tomorrow = clock >= self.start or clock < self.end, clock >= self.start
        if not is_quiet:
            return None
        day = local.date() + timedelta(days=1) if is_tomorrow else local.date()
        end = datetime.combine(day, self.end, zone).astimezone(UTC)
        # An hour that clocks go back repeats the time of the end: its second occurrence ends the quiet time.
        return end if end > now else datetime.combine(day, self.end.replace(fold=1), zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """What a member has chosen for all own browsers."""

    is_enabled: bool = True
    quiet_hours: QuietHours | None = None

    def quiet_until(self, now: datetime) -> datetime | None:
        return None if self.quiet_hours is None else self.quiet_hours.find_end(now)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPushSubscription:
    """What a browser sends: the address at its push service, and the keys with which messages to it are encrypted."""

    url: str
    p256dh: str
    auth: str
    user_agent: str
    api_key_id: str | None = None
    browser_session_id: str | None = None
    """The credential of the request. The browser receives nothing after it was revoked or signed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSubscription:
    id: str
    url: str
    user_agent: str
    created_at: datetime
    last_success_at: datetime | None
    state: SubscriptionState
    problem: str | None = None
    """The error of the last attempt, if it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTarget:
    """A subscription with what the sender needs to know about it."""

    endpoint: WebhookEndpoint
    p256dh: str
    auth: str
    principal: Principal | None
    """The member, with the roles that count now. None: the member is disabled, or the credential is no longer valid."""
    settings: NotificationSettings


def build_notification(item: InboxItem) -> JsonObject:
    """Return what the service worker of a browser receives: no command, no input and no text of an agent."""
    title = _TITLES.get(item.kind)
    if title is None:
        tool = str(item.approval.body.get("name")) if item.approval is not None else "A call"
        title = f"{_shorten(tool, _MAX_TOOL)} needs approval"
    return {
        "type": ITEM,
        "id": item.id,
        "kind": item.kind.value,
        "session_id": item.session.id,
        "title": title,
        "body": _shorten(item.session.title or item.session.agent_name or item.session.id, _MAX_TITLE),
    }


def build_test_notification(delivery_id: str) -> JsonObject:
    return {
        "type": TEST,
        "id": delivery_id,
        "title": "This is a test",
        "body": "Notifications from Footplate reach this browser.",
    }


def concerns(item: InboxItem, principal: Principal, now: datetime) -> bool:
    """Whether an item needs this member: it is not snoozed, and assigned to the member or to nobody."""
    is_snoozed = item.snoozed_until is not None and item.snoozed_until > now
    return not is_snoozed and item.assignee_id in {None, principal.id}


def parse_clock(text: str) -> time:
    """Parse a time of the day in the form 22:00."""
    return datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 - a time of the day has no zone


def _shorten(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


@lru_cache(maxsize=1)
def _time_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def describe_state(
    *, is_valid: bool, disabled_at: datetime | None, failing_since: datetime | None
) -> SubscriptionState:
    if disabled_at is not None:
        return "disabled"
    if not is_valid:
        return "signed_out"
    return "active" if failing_since is None else "failing"
