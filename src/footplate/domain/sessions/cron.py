"""Validates cron expressions and time zones of schedules. The engine calculates their times.

An expression has five fields: minute, hour, day of month, month and day of week. If both day fields are restricted, a
day matches if one of them does, as in POSIX. The engine requires that both match, so such an expression becomes two.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from zoneinfo import available_timezones

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
_DAYS_OF_MONTH: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_PART: Final = re.compile(r"(\*|[a-z0-9]{1,3})(?:-([a-z0-9]{1,3}))?(?:/([0-9]{1,2}))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    expression: str
    timezone: str

    def check(self) -> None:
        """Raise `InvalidRequest` unless the expression and the time zone are valid."""
        values = [set(_read_field(number, text)) for number, text in enumerate(self._split())]
        if self.timezone not in available_timezones():
            raise InvalidRequest(
                f"schedule.timezone: there is no time zone {self.timezone!r}",
                field="schedule.timezone",
                help_text="Use a name of the IANA time zone database, such as `Europe/Berlin` or `UTC`.",
            )
        _, _, days, months, _ = values
        if self._is_any_day(4) and all(min(days) > _DAYS_OF_MONTH.get(month, 31) for month in months):
            raise _refuse("no month that it names has such a day, so it would never run")

    @property
    def engine_expressions(self) -> Sequence[str]:
        """The expressions that the engine gets. A time matches if it matches one of them."""
        minute, hour, day, month, weekday = self._split()
        if self._is_any_day(2) or self._is_any_day(4):
            return [f"{minute} {hour} {day} {month} {weekday}"]
        return [f"{minute} {hour} {day} {month} *", f"{minute} {hour} * {month} {weekday}"]

    def _split(self) -> Sequence[str]:
        fields = self.expression.split()
        if len(fields) != len(_FIELDS) or len(self.expression) > MAX_EXPRESSION:
            raise _refuse("it must have five fields: minute, hour, day of month, month and day of week")
        return fields

    def _is_any_day(self, number: int) -> bool:
        """Whether a day field does not restrict the days: it starts with an asterisk, as in POSIX."""
        return self._split()[number].startswith("*")


def _read_field(number: int, text: str) -> list[int]:
    """Return the numbers that a field names."""
    name, low, high, _ = _FIELDS[number]
    found: list[int] = []
    for part in text.split(","):
        matched = _PART.fullmatch(part)
        if matched is None:
            raise _refuse(f"{part!r} is not a valid {name}")
        first, last, step = matched.groups()
        if first == "*":
            if last is not None:
                raise _refuse(f"{part!r} is not a valid {name}")
            start, end = low, high
        else:
            start = _read_number(first, number)
            end = _read_number(last, number) if last is not None else high if step is not None else start
        if end < start or step == "0" * len(step or "x"):
            raise _refuse(f"{part!r} is not a valid {name}")
        found += range(start, end + 1, int(step or 1))
    return found


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
