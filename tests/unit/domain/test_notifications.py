"""Quiet hours in any time zone, and what a notification says."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.approvals import Approval
from footplate.domain.sessions import notifications
from footplate.domain.sessions.inbox import InboxItem, InboxKind, InboxSession, TurnFailure
from footplate.domain.sessions.notifications import NotificationSettings, QuietHours
from footplate.vapid_key import create_vapid_key, is_auth_secret, is_browser_key, parse_vapid_key

NIGHT = QuietHours(time(22), time(7, 30), "Europe/Berlin")
LUNCH = QuietHours(time(12), time(13), "UTC")
SECRET = "curl -H 'authorization: Bearer sk-secret' https://example.com"
ANN = Principal("org", "memb_ann", "Ann", frozenset({"member"}))
ITEM = InboxItem(
    id="sevt_1",
    kind=InboxKind.APPROVAL,
    session=InboxSession(id="sesn_1", title="Release 2.1", project_ids=(), agent_name="builder", parent_id=None),
    turn_id="turn_1",
    turn_number=1,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("hours", "now", "end"),
    [
        (NIGHT, "2026-01-10T23:00+01:00", "2026-01-11T07:30+01:00"),
        (NIGHT, "2026-01-11T03:00+01:00", "2026-01-11T07:30+01:00"),
        (NIGHT, "2026-01-10T22:00+01:00", "2026-01-11T07:30+01:00"),
        (NIGHT, "2026-01-11T07:30+01:00", None),
        (NIGHT, "2026-01-10T21:59+01:00", None),
        (NIGHT, "2026-07-10T21:30+00:00", "2026-07-11T07:30+02:00"),
        (NIGHT, "2026-03-28T23:00+01:00", "2026-03-29T07:30+02:00"),
        (NIGHT, "2026-10-24T23:00+02:00", "2026-10-25T07:30+01:00"),
        (LUNCH, "2026-01-10T12:30+00:00", "2026-01-10T13:00+00:00"),
        (LUNCH, "2026-01-10T13:00+00:00", None),
        (QuietHours(time(1), time(2, 30), "Europe/Berlin"), "2026-10-25T02:10+02:00", "2026-10-25T02:30+02:00"),
        (QuietHours(time(1), time(2, 30), "Europe/Berlin"), "2026-10-25T02:10+01:00", "2026-10-25T02:30+01:00"),
        (QuietHours(time(1), time(2, 30), "Europe/Berlin"), "2026-10-25T02:40+02:00", None),
        (QuietHours(time(0), time(23, 59), "Asia/Kathmandu"), "2026-01-10T12:00+05:45", "2026-01-10T23:59+05:45"),
    ],
)
def test_the_end_of_the_quiet_time(hours: QuietHours, now: str, end: str | None) -> None:
    assert hours.find_end(at(now)) == (end and at(end))
    assert NotificationSettings(quiet_hours=hours).quiet_until(at(now)) == (end and at(end))


def test_the_end_is_always_later_and_not_quiet() -> None:
    for hours in (NIGHT, LUNCH, QuietHours(time(2, 15), time(2, 45), "Europe/Berlin")):
        for minutes in range(0, 400 * 24 * 60, 37):
            now = at("2026-01-01T00:00+00:00") + timedelta(minutes=minutes)
            end = hours.find_end(now)
            assert end is None or (now < end <= now + timedelta(hours=25) and hours.find_end(end) is None), (hours, now)


def test_without_quiet_hours_it_is_never_quiet() -> None:
    assert NotificationSettings().quiet_until(at("2026-01-10T03:00+00:00")) is None


def approval(**body: Any) -> Approval:
    return Approval(
        id="sevt_1",
        session_id="sesn_1",
        title=None,
        turn_id="turn_1",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        body={"name": "bash", "input": {"command": SECRET}, **body},
    )


def test_a_notification_names_the_tool_and_the_session_and_nothing_of_the_call() -> None:
    content = notifications.build_notification(replace(ITEM, approval=approval()))
    assert content == {
        "type": "inbox.item",
        "id": "sevt_1",
        "kind": "approval",
        "session_id": "sesn_1",
        "title": "bash needs approval",
        "body": "Release 2.1",
    }
    question = notifications.build_notification(replace(ITEM, kind=InboxKind.QUESTION, approval=approval()))
    assert (question["title"], SECRET in str(question)) == ("An agent asks a question", False)
    failure = TurnFailure(code="failed", title="The turn failed", message=SECRET, turn_id="turn_1")
    failed = notifications.build_notification(replace(ITEM, kind=InboxKind.FAILURE, failure=failure))
    assert (failed["title"], SECRET in str(failed)) == ("A turn failed", False)


def test_long_names_are_shortened_and_a_session_without_title_has_a_name() -> None:
    long = replace(ITEM, approval=approval(name="x" * 500), session=replace(ITEM.session, title="é\n" * 500))
    content = notifications.build_notification(long)
    assert len(str(content["title"])) < 80
    assert (len(str(content["body"])), "\n" in str(content["body"])) == (120, False)
    unnamed = replace(ITEM, approval=approval(), session=replace(ITEM.session, title=None))
    assert notifications.build_notification(unnamed)["body"] == "builder"


def test_only_those_whom_an_item_needs_are_notified() -> None:
    now = ITEM.created_at
    assert notifications.concerns(ITEM, ANN, now)
    assert notifications.concerns(replace(ITEM, assignee_id=ANN.id), ANN, now)
    assert not notifications.concerns(replace(ITEM, assignee_id="memb_bob"), ANN, now)
    assert not notifications.concerns(replace(ITEM, snoozed_until=now + timedelta(hours=1)), ANN, now)
    assert notifications.concerns(replace(ITEM, snoozed_until=now - timedelta(hours=1)), ANN, now)


def test_keys_are_read_back_and_others_refused() -> None:
    key = create_vapid_key()
    assert parse_vapid_key(key.private) == key
    assert key.private not in repr(key)
    assert is_browser_key(key.public)
    for wrong in ("", "AAAA", "é" * 43, key.public, "A" * 43):
        with pytest.raises(ValueError, match=r".+"):
            parse_vapid_key(wrong)
    assert not is_browser_key(key.private)
    assert (is_auth_secret("A" * 22), is_auth_secret("A" * 21), is_auth_secret("A" * 44)) == (True, False, False)
