"""Cron expressions with a time zone: which instants match, and in which minutes of UTC the engine has to ask.

An expression has five fields: minute, hour, day of month, month and day of week. If both day fields are restricted, a
day matches if one of them does, as in POSIX.

The engine has time zones too, but calculates wrong times on days on which clocks go back (docs/decisions/0028). So it
gets the fields in UTC, for every offset of the time zone, and `matches` selects the right instants.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from footplate.domain.errors import InvalidRequest

MAX_EXPRESSION: Final = 256
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[Sequence[tuple[str, int, int, Mapping[str, int]]]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of week", 0, 7, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_PART: Final = re.compile(r"(\*|[a-z0-9]{1,3})(?:-([a-z0-9]{1,3}))?(?:/([0-9]{1,2}))?", re.IGNORECASE | re.ASCII)
_MAX_DAYS_AHEAD: Final = 9 * 366
"""A day that only leap years have comes again within this time."""
_OFFSET_DAYS: Final = 3 * 366
"""How far ahead the offsets of a time zone are looked up."""
_END_OF_MONTH: Final = 28


@dataclass(frozen=True, slots=True)
class UtcCalendar:
    """Minutes in UTC that include all matching ones: the numbers of each field."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Fields:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    any_hour: bool
    any_day: bool
    """Whether the field starts with an asterisk, so that it does not restrict the days, as in POSIX."""
    any_weekday: bool

    def includes_day(self, day: date) -> bool:
        by_number, by_name = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        matches = by_number and by_name if self.any_day or self.any_weekday else by_number or by_name
        return matches and day.month in self.months


@dataclass(frozen=True, slots=True)
class CronSchedule:
    expression: str
    timezone: str

    def check(self) -> None:
        """Raise `InvalidRequest` unless the expression and the time zone are valid."""
        _parse(self.expression)
        if self.timezone not in available_timezones():
            raise InvalidRequest(
                f"schedule.timezone: there is no time zone {self.timezone!r}",
                field="schedule.timezone",
                help_text="Use a name of the IANA time zone database, such as `Europe/Berlin` or `UTC`.",
            )
        if not self.find_times(datetime.now(UTC), 1):
            raise _refuse("no month that it names has such a day, so it would never run")

    def matches(self, at: datetime) -> bool:
        """Return whether the schedule runs in this minute. A time that clocks show twice matches once, unless the
        expression is for every hour.
        """
        fields, local = _parse(self.expression), at.astimezone(ZoneInfo(self.timezone))
        return (
            local.minute in fields.minutes
            and local.hour in fields.hours
            and fields.includes_day(local.date())
            and (local.fold == 0 or fields.any_hour)
        )

    def find_times(self, after: datetime, count: int) -> Sequence[datetime]:
        """Return the next times of the schedule, at most `count`."""
        found: list[datetime] = []
        for at in self._iterate(after):
            found.append(at)
            if len(found) == count:
                break
        return found

    def find_offsets(self, now: datetime) -> Sequence[int]:
        """Return the offsets from UTC that the time zone will have, in minutes."""
        place = ZoneInfo(self.timezone)
        offsets = ((now + timedelta(days=days)).astimezone(place).utcoffset() for days in range(-1, _OFFSET_DAYS))
        return sorted({int(offset.total_seconds() // 60) for offset in offsets if offset is not None})

    def to_utc(self, offsets: Sequence[int]) -> Sequence[UtcCalendar]:
        """Return minutes in UTC that include all matching ones, and some that do not match."""
        fields = _parse(self.expression)
        minutes = {(minute - offset) % 60 for minute in fields.minutes for offset in offsets}
        hours = {
            (hour * 60 + minute - offset) // 60 % 24
            for hour in fields.hours
            for minute in fields.minutes
            for offset in offsets
        }
        days, months, weekdays = _widen_days(fields)
        both, either = [(days, weekdays)], [(days, frozenset(range(7))), (frozenset(range(1, 32)), weekdays)]
        pairs = both if fields.any_day or fields.any_weekday else either
        return [UtcCalendar(frozenset(minutes), frozenset(hours), day, months, weekday) for day, weekday in pairs]

    def _iterate(self, after: datetime) -> Iterator[datetime]:
        fields, place = _parse(self.expression), ZoneInfo(self.timezone)
        first = after.astimezone(place).date() - timedelta(days=1)
        for number in range(_MAX_DAYS_AHEAD):
            day = first + timedelta(days=number)
            if not fields.includes_day(day):
                continue
            shown = [datetime.combine(day, time(hour, minute)) for hour in fields.hours for minute in fields.minutes]
            instants = {local.replace(tzinfo=place, fold=fold).astimezone(UTC) for local in shown for fold in (0, 1)}
            # A time that clocks skip becomes another one, which does not match, or belongs to another day.
            today = (at for at in sorted(instants) if at.astimezone(place).date() == day)
            yield from (at for at in today if at > after and self.matches(at))


def _widen_days(fields: _Fields) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    """Return the days, months and weekdays with their neighbours: a day in UTC begins up to a day earlier or later."""
    days = {near for day in fields.days for near in (day - 1, day, day + 1) if 1 <= near <= 31}  # noqa: PLR2004
    if 1 in fields.days:
        days |= {*range(_END_OF_MONTH, 32)}
    if max(fields.days) >= _END_OF_MONTH:
        days.add(1)
    months = {(month + near - 1) % 12 + 1 for month in fields.months for near in (-1, 0, 1)}
    weekdays = {(weekday + near) % 7 for weekday in fields.weekdays for near in (-1, 0, 1)}
    return frozenset(days), frozenset(months), frozenset(weekdays)


@lru_cache(maxsize=1024)
def _parse(expression: str) -> _Fields:
    texts = expression.split()
    if len(texts) != len(_FIELDS) or len(expression) > MAX_EXPRESSION:
        raise _refuse("it must have five fields: minute, hour, day of month, month and day of week")
    minutes, hours, days, months, weekdays = (frozenset(_read_field(*pair)) for pair in enumerate(texts))
    _, hour, day, _, weekday = (text.startswith("*") for text in texts)
    return _Fields(minutes, hours, days, months, frozenset(each % 7 for each in weekdays), hour, day, weekday)


def _read_field(number: int, text: str) -> Iterator[int]:
    """Yield the numbers that a field names."""
    name, low, high, _ = _FIELDS[number]
    for part in text.split(","):
        matched = _PART.fullmatch(part)
        if matched is None or (matched[1] == "*" and matched[2] is not None):
            raise _refuse(f"{part!r} is not a valid {name}")
        first, last, step = matched.groups()
        start = low if first == "*" else _read_number(first, number)
        open_end = high if first == "*" or step is not None else start
        end = open_end if last is None else _read_number(last, number)
        if end < start or step in {"0", "00"}:
            raise _refuse(f"{part!r} is not a valid {name}")
        yield from range(start, end + 1, int(step or 1))


def _read_number(text: str, field: int) -> int:
    name, low, high, names = _FIELDS[field]
    value = names.get(text.lower(), int(text) if text.isdecimal() else -1)
    if not low <= value <= high:
        raise _refuse(f"{text!r} is not a valid {name}, which is from {low} to {high}")
    return value


def _refuse(reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"schedule.expression: {reason}",
        field="schedule.expression",
        help_text="For example, `0 9 * * 1-5` runs at 9:00 from Monday to Friday.",
    )
