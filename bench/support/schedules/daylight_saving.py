"""The days on which clocks change in five time zones, and the times that a schedule should have on them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from footplate.domain.sessions.cron import CronSchedule

CHANGES: Final[Sequence[tuple[str, date, date]]] = (
    ("Europe/Berlin", date(2027, 3, 28), date(2027, 10, 31)),
    ("America/New_York", date(2027, 3, 14), date(2027, 11, 7)),
    ("Australia/Lord_Howe", date(2027, 10, 3), date(2027, 4, 4)),
    ("America/Santiago", date(2027, 9, 5), date(2027, 4, 3)),
    ("Africa/Cairo", date(2027, 4, 30), date(2027, 10, 28)),
)
"""When clocks go forward and back. On Lord Howe Island by half an hour, in Santiago and Cairo at midnight."""


def period(zone: str, change: date) -> tuple[datetime, datetime]:
    """Returns the start of the day before the change and the end of the day after the change."""
    place = ZoneInfo(zone)
    start, end = (datetime.combine(change + timedelta(days=days), time(), place).astimezone(UTC) for days in (-1, 2))
    return start, end - timedelta(seconds=1)


def expected_times(schedule: CronSchedule, change: date) -> list[datetime]:
    """Returns the minutes of the period in which the clock shows a time of the schedule. It reads the clock in every
    minute. Of a time that clocks show twice, only the first one counts, unless the expression is for every hour.
    """
    minute, hour, day, month, weekday = schedule.expression.split()
    start, end = period(schedule.timezone, change)
    place = ZoneInfo(schedule.timezone)
    found: list[datetime] = []
    shown: set[datetime] = set()
    for number in range(int((end - start).total_seconds() // 60) + 1):
        at = start + timedelta(minutes=number)
        local = at.astimezone(place).replace(tzinfo=None, fold=0)
        by_day, by_weekday = _fits(day, local.day), _fits(weekday, local.isoweekday() % 7)
        is_day = by_day or by_weekday if "*" not in day + weekday else by_day and by_weekday
        if not (_fits(minute, local.minute) and _fits(hour, local.hour) and is_day and _fits(month, local.month)):
            continue
        if local not in shown or hour == "*":
            found.append(at)
        shown.add(local)
    return found


def _fits(text: str, value: int) -> bool:
    """Whether a field of an expression fits a number. It knows lists, and steps of everything."""
    if text.startswith("*"):
        return value % int(text.partition("/")[2] or 1) == 0
    return str(value) in text.split(",")
