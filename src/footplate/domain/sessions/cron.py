"""Cron expressions with a time zone: which instants match, and in which minutes of UTC the engine has to ask.

An expression has five fields: minute, hour, day of month, month and day of week. If both day fields are restricted, a
day matches if one of them does, as in POSIX. The library cronsim parses them. It also finds the next time, but starts a
time that clocks skip later, where ours leaves it out (docs/schedules.md).

The engine has time zones too, but calculates wrong times on days on which clocks go back (docs/decisions/0028). So it
gets the fields in UTC, for every offset of the time zone, and `matches` selects the right instants.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from footplate.domain.errors import InvalidRequest

MAX_EXPRESSION: Final = 256
_FIELDS: Final = 5
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
            raise _refuse("it has no time in the next nine years")

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
    if len(texts) != _FIELDS or len(expression) > MAX_EXPRESSION:
        raise _refuse("it must have five fields: minute, hour, day of month, month and day of week")
    try:
        parsed = CronSim(expression, datetime.now(UTC))
    except CronSimError as error:
        raise _refuse(f"the {str(error).removeprefix('Bad ')} is not valid") from error
    weekdays = frozenset(each % 7 for each in parsed.weekdays if isinstance(each, int))
    if min(parsed.days) < 1 or not all(isinstance(each, int) for each in parsed.weekdays):
        raise _refuse("`L`, `W` and `#` are not supported")
    _, hour, day, _, weekday = (text.startswith("*") for text in texts)
    return _Fields(
        minutes=frozenset(parsed.minutes),
        hours=frozenset(parsed.hours),
        days=frozenset(parsed.days),
        months=frozenset(parsed.months),
        weekdays=weekdays,
        any_hour=hour,
        any_day=day,
        any_weekday=weekday,
    )


def _refuse(reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"schedule.expression: {reason}",
        field="schedule.expression",
        help_text="For example, `0 9 * * 1-5` runs at 9:00 from Monday to Friday.",
    )
