"""Short texts for calls, failures, times, tokens and titles."""

from datetime import UTC, datetime, timedelta

import pytest

from footplate.cli.render import value_formatting
from footplate.client import Usage
from footplate.client.response_models import Event


def test_a_failed_command_shows_its_last_line_and_a_failed_tool_its_first() -> None:
    def result(text: str) -> Event:
        return Event(type="agent.tool_result", content=[{"type": "text", "text": text}])

    assert (
        value_formatting.failure_reason(result("Traceback\n  x\nValueError: no\n\n[exit code 1]"), "bash")
        == "ValueError: no"
    )
    assert value_formatting.failure_reason(result("There is no file.\nLook again."), "read") == "There is no file."
    assert value_formatting.failure_reason(result("[exit code 7]"), "bash") == "[exit code 7]"


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0.0s"), (9.94, "9.9s"), (59, "59s"), (61, "1m 01s"), (3600, "60m 00s")]
)
def test_seconds(amount: float, text: str) -> None:
    assert value_formatting.format_seconds(amount) == text


@pytest.mark.parametrize(("passed", "text"), [(-5, "0s"), (59, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d")])
def test_age(passed: float, text: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert value_formatting.format_age(now - timedelta(seconds=passed), now) == text


def test_an_unknown_cost_is_not_shown_as_zero() -> None:
    assert value_formatting.format_tokens(Usage(input_tokens=1000, output_tokens=2)) == "1,000 in · 2 out"
    assert value_formatting.format_tokens(Usage(cost_microusd=0)) == "0 in · 0 out · $0.0000"
    assert value_formatting.format_tokens(Usage(cost_microusd=12_345_678)) == "0 in · 0 out · $12.35"


def test_a_title_is_the_first_line() -> None:
    assert value_formatting.title_from_prompt("\n  Fix   it\nand more") == "Fix it"
    assert len(value_formatting.title_from_prompt("x" * 500)) == 80
