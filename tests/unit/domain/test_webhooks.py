"""The events of webhooks, their payloads, messages for a chat, and the times of retries."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from footplate.domain.json import JsonObject, as_object
from footplate.domain.organisations.visibility import SessionAudience
from footplate.domain.organisations.webhooks import MAX_RETRY_WAIT, RETRY_PERIOD, retry_wait
from footplate.domain.sessions import events, feed, threads, webhook_events
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.feed import FeedChange

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def change(event: Event) -> FeedChange:
    audience = SessionAudience("memb_1", "organisation", frozenset())
    position = Position(3, event, NOW, None)
    return FeedChange(position=7, session_id="sesn_1", session_title="T", audience=audience, event=position)


@pytest.mark.parametrize(
    ("event", "types"),
    [
        (events.status_running(), ["session.status_run_started"]),
        (events.status_idle({"type": "end_turn"}), ["session.status_idled"]),
        (events.status_idle({"type": "requires_action"}), ["session.status_idled", "session.requires_action"]),
        (Event("session.updated"), ["session.updated"]),
        (events.custom_tool_use("look", {}, call_id="c"), ["custom_tool.called"]),
        (Event(events.AGENT_CUSTOM_TOOL_USE, {"question": True}), ["question.asked"]),
        (Event(events.AGENT_TOOL_USE, {"evaluated_permission": "ask"}), ["approval.requested"]),
        (Event(events.AGENT_MCP_TOOL_USE, {"evaluated_permission": "ask"}), ["approval.requested"]),
        (Event(events.USER_TOOL_CONFIRMATION, {}), ["approval.decided"]),
        (Event("step.ended", {}), ["step.ended"]),
        (Event(feed.LIMIT_REACHED), ["limit.reached"]),
        (Event(feed.SESSION_ARCHIVED), ["session.archived"]),
        (threads.created("sthr_1", "helper", "c"), ["session.thread_created"]),
        (threads.waiting("sthr_1", "helper", ["sevt_1"]), ["session.thread_idled"]),
        (Event("deployment.paused"), ["deployment.paused"]),
    ],
)
def test_each_change_causes_its_events(event: Event, types: list[str]) -> None:
    assert [*webhook_events.webhook_types(event)] == types
    assert {*types} <= {*webhook_events.DESCRIPTIONS}


def test_the_event_of_a_run_is_about_the_run_and_links_to_its_session() -> None:
    body: JsonObject = {
        "deployment_id": "depl_1",
        "deployment_name": "nightly",
        "deployment_run_id": "drun_1",
        "session_id": "sesn_2",
        "error": None,
    }
    event = Event("deployment_run.succeeded", body, "sevt_1")
    payload = webhook_events.build_payload("org_1", "whdl_1", event.type, replace(change(event), session_id="depl_1"))
    data = as_object(payload["data"])
    assert (data["id"], data["deployment_id"], data["session_id"]) == ("drun_1", "depl_1", "sesn_2")
    assert webhook_events.find_session(payload) == "sesn_2"
    message = webhook_events.build_slack_message(payload, None, "https://example.com/sesn_2")
    assert message["text"] == "<https://example.com/sesn_2|nightly> started a session"


def test_a_payload_has_ids_and_states_and_no_content() -> None:
    body: JsonObject = {
        "name": "bash",
        "input": {"command": "echo secret"},
        "evaluated_permission": "ask",
        "step_id": "step_1",
        "type": "forged",
        "id": "forged",
    }
    event = Event(events.AGENT_TOOL_USE, body, "sevt_1")
    payload = webhook_events.build_payload("org_1", "whdl_1", "approval.requested", change(event))
    assert payload == {
        "type": "event",
        "id": "whdl_1",
        "created_at": "2026-01-01T00:00:00Z",
        "data": {
            "type": "approval.requested",
            "id": "sesn_1",
            "organization_id": "org_1",
            "workspace_id": "default",
            "event_id": "sevt_1",
            "event_type": "agent.tool_use",
            "position": 7,
            "step_id": "step_1",
            "tool_name": "bash",
        },
    }
    error = events.session_error("unknown_error", "a secret", "exhausted")
    failed = webhook_events.build_payload("org_1", "whdl_1", "session.error", change(error))
    assert ("unknown_error" in str(failed), "a secret" in str(failed)) == (True, False)


def test_a_title_cannot_format_a_message() -> None:
    idle = change(events.status_idle({"type": "end_turn"}))
    payload = webhook_events.build_payload("org_1", "whdl_1", "session.status_idled", idle)
    message = webhook_events.build_slack_message(payload, "<!here>\n*x* `y` <https://e.test|z>", None)
    assert message["text"] == "*&lt;!here&gt; x 'y' &lt;https://e.test/z&gt;* is idle"


def test_waits_grow_and_reach_a_day() -> None:
    first = timedelta(seconds=5)
    waits = [retry_wait(attempts, first) for attempts in range(1, 100)]
    assert waits[:4] == [timedelta(seconds=5), timedelta(seconds=20), timedelta(seconds=80), timedelta(seconds=320)]
    assert waits == sorted(waits)
    assert waits[-1] == MAX_RETRY_WAIT
    attempts = next(count for count in range(1, 100) if sum(waits[:count], timedelta()) > RETRY_PERIOD)
    assert attempts == 12
