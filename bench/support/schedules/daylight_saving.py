"""The days on which clocks change in five time zones, and the times that a schedule should have on them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

CHANGES: Final[Sequence[tuple[str, date, date]]] = (
    ("Europe/Berlin", date(2027, 3, 28), date(2027, 10, 31)),
    ("America/New_York", date(2027, 3, 14), date(2027, 11, 7)),
    ("Australia/Lord_Howe", date(2027, 10, 3), date(2027, 4, 4)),
    ("America/Santiago", date(2027, 9, 5), date(2027, 4, 3)),
    ("Africa/Cairo", date(2027, 4, 30), date(2027, 10, 28)),
)
"""When clocks go forward and back. On Lord Howe Island by half an hour, in Santiago and Cairo at midnight."""
EXPRESSIONS: Final[Sequence[tuple[str, Sequence[int]]]] = (
    ("30 * * * *", range(30, 1440, 60)),
    ("0 9 * * *", (540,)),
    ("15 0,2 * * *", (15, 135)),
)
"""Cron expressions, with the minutes of the day that they name."""


def period(zone: str, change: date) -> tuple[datetime, datetime]:
    """Returns the start of the day before the change and the end of the day of the change."""
    place = ZoneInfo(zone)
    start, end = (datetime.combine(change + timedelta(days=days), time(), place).astimezone(UTC) for days in (-1, 1))
    return start, end - timedelta(seconds=1)


def expected_times(zone: str, change: date, minutes: Sequence[int]) -> list[datetime]:
    """Returns when the clock shows these minutes on the two days. A time that clocks skip is left out, and of a time
    that they show twice the first one counts.
    """
    place, found = ZoneInfo(zone), []
    for day in (change - timedelta(days=1), change):
        for minute in minutes:
            local = datetime.combine(day, time(minute // 60, minute % 60))
            at = local.replace(tzinfo=place).astimezone(UTC)
            if at.astimezone(place).replace(tzinfo=None) == local:
                found.append(at)
    return found
