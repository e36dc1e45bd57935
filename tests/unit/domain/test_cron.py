"""Cron expressions and time zones that are accepted, refused, and split for the engine."""

from datetime import UTC, datetime

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.sessions.cron import CronSchedule, UtcCalendar


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *",
        "0 9 * * 1-5",
        "*/15 0-6/2 1,15 jan-mar MON,wed",
        "59 23 31 12 7",
        "0 0 29 2 *",
        "5/10 * * * *",
        "0 0 30 2,3 *",
        "0 0 31 2 5",
    ],
)
def test_posix_expressions_are_accepted(expression: str) -> None:
    CronSchedule(expression, "Europe/Berlin").check()


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "@daily",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "0 0 L * *",
        "0 0 ? * 1",
        "0 0 * * 1#2",
        "0 0 15W * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "*/00 * * * *",
        "*-5 * * * *",
        "1,,2 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "-1 * * * *",
        "\u0665 * * * *",
        f"{','.join(['1'] * 200)} * * * *",
    ],
)
def test_other_expressions_are_refused(expression: str) -> None:
    with pytest.raises(InvalidRequest, match=r"schedule\.expression"):
        CronSchedule(expression, "UTC").check()


@pytest.mark.parametrize("timezone", ["", "Berlin", "CET+1", "../etc/passwd", "europe/berlin", "UTC+2"])
def test_unknown_time_zones_are_refused(timezone: str) -> None:
    with pytest.raises(InvalidRequest, match=r"schedule\.timezone"):
        CronSchedule("0 9 * * *", timezone).check()


def _times(expression: str, timezone: str, after: datetime, count: int = 3) -> list[str]:
    schedule = CronSchedule(expression, timezone)
    found = schedule.find_times(after, count)
    offsets = schedule.find_offsets(after)
    for at in found:
        assert schedule.matches(at)
        assert any(_includes(calendar, at) for calendar in schedule.to_utc(offsets))
    return [f"{at:%m-%d %H:%M}" for at in found]


def _includes(calendar: UtcCalendar, at: datetime) -> bool:
    return (
        at.minute in calendar.minutes
        and at.hour in calendar.hours
        and at.day in calendar.days
        and at.month in calendar.months
        and at.isoweekday() % 7 in calendar.weekdays
    )


@pytest.mark.parametrize(
    ("expression", "timezone", "after", "expected"),
    [
        ("0 9 * * 1-5", "UTC", datetime(2027, 1, 1, 9, tzinfo=UTC), ["01-04 09:00", "01-05 09:00", "01-06 09:00"]),
        ("0 9 13 * 5", "UTC", datetime(2027, 1, 7, tzinfo=UTC), ["01-08 09:00", "01-13 09:00", "01-15 09:00"]),
        ("0 9 */10 * 5", "UTC", datetime(2027, 1, 1, tzinfo=UTC), ["01-01 09:00", "05-21 09:00", "06-11 09:00"]),
        (
            "30 2 * * *",
            "Europe/Berlin",
            datetime(2027, 3, 27, tzinfo=UTC),
            ["03-27 01:30", "03-29 00:30", "03-30 00:30"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            datetime(2027, 10, 30, tzinfo=UTC),
            ["10-30 00:30", "10-31 00:30", "11-01 01:30"],
        ),
        (
            "30 * * * *",
            "Europe/Berlin",
            datetime(2027, 10, 31, tzinfo=UTC),
            ["10-31 00:30", "10-31 01:30", "10-31 02:30"],
        ),
        ("0 0 29 2 *", "Pacific/Kiritimati", datetime(2027, 1, 1, tzinfo=UTC), ["02-28 10:00", "02-28 10:00"]),
        ("0 0 1 1 *", "Pacific/Pago_Pago", datetime(2027, 1, 1, tzinfo=UTC), ["01-01 11:00"] * 3),
        (
            "0 0 * * 7",
            "Asia/Kathmandu",
            datetime(2027, 1, 1, tzinfo=UTC),
            ["01-02 18:15", "01-09 18:15", "01-16 18:15"],
        ),
    ],
)
def test_the_next_times_match_and_the_engine_asks_for_them(
    expression: str, timezone: str, after: datetime, expected: list[str]
) -> None:
    assert _times(expression, timezone, after) == expected


def test_the_engine_asks_for_few_other_minutes() -> None:
    schedule = CronSchedule("0 9 * * 1", "America/New_York")
    (calendar,) = schedule.to_utc(schedule.find_offsets(datetime(2027, 1, 1, tzinfo=UTC)))
    assert [sorted(one) for one in (calendar.minutes, calendar.hours, calendar.weekdays)] == [[0], [13, 14], [0, 1, 2]]


def test_a_time_that_clocks_show_twice_matches_once_unless_it_is_for_every_hour() -> None:
    first, second = (datetime(2027, 10, 31, hour, 30, tzinfo=UTC) for hour in (0, 1))
    daily, hourly = (CronSchedule(f"30 {hour} * * *", "Europe/Berlin") for hour in ("2", "*"))
    assert (daily.matches(first), daily.matches(second)) == (True, False)
    assert (hourly.matches(first), hourly.matches(second)) == (True, True)
