"""Cron expressions and time zones that are accepted, refused, and split for the engine."""

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.sessions.cron import CronSchedule


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


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 * * 1-5", ["0 9 * * 1-5"]),
        ("0 9 1 * *", ["0 9 1 * *"]),
        ("0 9 */2 * 1", ["0 9 */2 * 1"]),
        ("0 9 13 6 5", ["0 9 13 6 *", "0 9 * 6 5"]),
    ],
)
def test_two_restricted_day_fields_become_two_expressions(expression: str, expected: list[str]) -> None:
    assert CronSchedule(expression, "UTC").engine_expressions == expected
