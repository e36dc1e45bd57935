"""A change of a session as one line."""

import pytest

from footplate.cli.render.change_text import describe_change
from footplate.client import Change


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"type": "session.created"}, "created"),
        ({"type": "session.status_idle", "stop_reason": {"type": "end_turn"}}, "idle"),
        ({"type": "session.status_idle", "stop_reason": {"type": "requires_action"}}, "waits for you"),
        ({"type": "session.error", "error": {"message": "no\x1b[31m"}}, "error: no<U+001B>[31m"),
        ({"type": "session.updated", "title": "t", "visibility": "private"}, "updated: title, visibility"),
        (
            {"type": "agent.mcp_tool_use", "mcp_server_name": "git", "name": "push", "input": {"to": "main"}},
            'needs approval: git/push {"to": "main"}',
        ),
        ({"type": "agent.custom_tool_use", "name": "ask", "input": {}}, "needs its result: ask {}"),
        ({"type": "user.tool_confirmation", "result": "allow", "decided_by_name": "Ada"}, "allowed by Ada"),
        ({"type": "step.completed", "name": "build"}, "step.completed build"),
    ],
)
def test_a_change_is_one_line(fields: dict[str, object], text: str) -> None:
    change = Change.model_validate({"session_id": "sesn_1", "session_title": "Tit\nle", **fields})
    _, session_id, rest = describe_change(change).split("  ", 2)
    assert session_id == "sesn_1"
    assert rest.partition("  ")[2] == text
    assert "\n" not in rest
