"""The comparison of `door-4` finds real differences and ignores ids, times and previews."""

from typing import Any

import pytest
from bench.support.provider_scenarios import event_comparison
from bench.support.provider_scenarios.scenarios import build_scenarios
from bench.support.provider_scenarios.web_site import WebSite


def turn(prefix: str, **changes: Any) -> list[dict[str, Any]]:
    return [
        {"type": "user.message", "id": f"{prefix}_1", "processed_at": None},
        {"type": "user.message", "id": f"{prefix}_1", "processed_at": f"{prefix} o'clock"},
        {"type": "event_start", "event": {"id": f"{prefix}_2", "type": "agent.message"}},
        {"type": "agent.tool_use", "id": f"{prefix}_3", "input": {"url": f"http://x/?sesn_{prefix}"}},
        {"type": "agent.tool_result", "id": f"{prefix}_4", "tool_use_id": f"{prefix}_3", "is_error": False, **changes},
        {"type": "span.model_request_end", "id": f"{prefix}_5", "is_error": False, "model_usage": {"input_tokens": 1}},
    ]


def test_ids_times_and_previews_are_ignored() -> None:
    assert event_comparison.comparable_events(turn("a")) == event_comparison.comparable_events(turn("b"))
    assert event_comparison.comparable_events(turn("a"))[3]["tool_use_id"] == 2


@pytest.mark.parametrize(
    "changes", [{"is_error": True}, {"tool_use_id": "other"}, {"extra": 1}, {"type": "agent.message"}]
)
def test_every_other_difference_is_found(changes: dict[str, Any]) -> None:
    assert event_comparison.comparable_events(turn("a")) != event_comparison.comparable_events(turn("b", **changes))
    assert event_comparison.comparable_events(turn("a")) != event_comparison.comparable_events(turn("b")[:-1])


def test_only_a_failed_request_may_have_used_another_amount() -> None:
    def ended(tokens: int, *, is_error: bool) -> list[dict[str, Any]]:
        usage = {"input_tokens": tokens}
        return event_comparison.comparable_events(
            [{"type": "span.model_request_end", "id": "x", "is_error": is_error, "model_usage": usage}]
        )

    assert ended(1, is_error=True) == ended(2, is_error=True)
    assert ended(1, is_error=False) != ended(2, is_error=False)


def test_every_scenario_has_its_expected_end() -> None:
    scenarios = build_scenarios(WebSite())
    assert len({scenario.name for scenario in scenarios}) == len(scenarios)
    for story in scenarios:
        assert story.types[-1] == "session.status_idle"
        assert story.types.count("session.error") == len(story.errors)
        assert story.types.count("agent.message") == len(story.messages)
        assert story.types.count("agent.tool_result") == len(story.results)
