"""The strict checks refuse events that the SDK itself accepts."""

from typing import Any

import pytest
from anthropic.types.beta.sessions import BetaManagedAgentsAgentMessageEvent

from footplate.domain.sessions import events
from footplate.testing import sdk_validation

TIMESTAMP = "2026-11-01T10:00:00.5Z"
MESSAGE: dict[str, Any] = {
    "id": "sevt_1",
    "type": "agent.message",
    "content": [{"type": "text", "text": "hi"}],
    "processed_at": TIMESTAMP,
}


def test_a_valid_event_with_extra_fields_passes() -> None:
    sdk_validation.assert_valid_event({**MESSAGE, "turn_id": "turn_1"})
    sdk_validation.assert_valid_event(BetaManagedAgentsAgentMessageEvent.construct(**MESSAGE))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"type": "agent.poem"}, "has no event type"),
        ({"id": None}, "id"),
        ({"id": 7}, "valid string"),
        ({"processed_at": None}, "processed_at"),
        ({"processed_at": "soon"}, "processed_at"),
        ({"processed_at": 1700000000}, "processed_at"),
        ({"content": "hi"}, "valid array"),
        ({"content": [{"type": "poem", "text": "hi"}]}, "content.0"),
        ({"content": [{"type": "text"}]}, "Field required"),
    ],
)
def test_an_invalid_event_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        sdk_validation.assert_valid_event({**MESSAGE, **change})


@pytest.mark.parametrize("change", [{"id": 7}, {"processed_at": "soon"}, {"content": [{"type": "poem"}]}])
def test_an_invalid_event_is_refused_after_the_sdk_accepted_it(change: dict[str, Any]) -> None:
    taken = BetaManagedAgentsAgentMessageEvent.construct(**{**MESSAGE, **change})
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_event(taken)


@pytest.mark.parametrize("field", ["id", "content", "processed_at", "type"])
def test_a_missing_field_is_refused(field: str) -> None:
    partial = {name: value for name, value in MESSAGE.items() if name != field}
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_event(partial)
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_event(BetaManagedAgentsAgentMessageEvent.construct(**partial))


def test_an_unknown_stop_reason_and_error_are_refused() -> None:
    idle = {"id": "e", "processed_at": TIMESTAMP, "type": events.STATUS_IDLE, "stop_reason": {"type": "end_turn"}}
    sdk_validation.assert_valid_event(idle)
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_event({**idle, "stop_reason": {"type": "bored"}})
    error = events.session_error("unknown_error", "text", "retrying").body
    sdk_validation.assert_valid_event({"id": "e", "processed_at": TIMESTAMP, "type": events.SESSION_ERROR, **error})
    wrong = events.session_error("new_error", "text", "retrying").body
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_event({"id": "e", "processed_at": TIMESTAMP, "type": events.SESSION_ERROR, **wrong})


def test_previews_are_events_of_the_stream_too() -> None:
    sdk_validation.assert_valid_event({"type": "event_start", "event": {"type": "agent.message", "id": "sevt_1"}})
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_event({"type": "event_start", "event": {"type": "agent.message"}})


def test_resources_are_checked() -> None:
    environment = {
        "id": "env_1",
        "type": "environment",
        "name": "n",
        "description": "",
        "config": {
            "type": "cloud",
            "networking": {"type": "unrestricted"},
            "packages": {"type": "packages", **{name: [] for name in ("apt", "cargo", "gem", "go", "npm", "pip")}},
        },
        "metadata": {},
        "created_at": TIMESTAMP,
        "updated_at": TIMESTAMP,
        "archived_at": None,
    }
    sdk_validation.assert_valid_environment(environment)
    with pytest.raises(AssertionError, match="packages"):
        sdk_validation.assert_valid_environment(
            {**environment, "config": {"type": "cloud", "networking": {"type": "unrestricted"}}}
        )
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_agent({"id": "agent_1", "type": "agent"})
    with pytest.raises(AssertionError):
        sdk_validation.assert_valid_session({"id": "sesn_1", "type": "session"})
