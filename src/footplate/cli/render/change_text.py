"""Describes a change of a session as one line: its time, the session, and what happened. Untrusted text is escaped."""

import json
from datetime import UTC, datetime
from typing import Final

from footplate.cli.render.value_formatting import describe_decision
from footplate.client import Change
from footplate.domain.text.visible_text import show_line

_MAX_TEXT: Final = 100
_MAX_TITLE: Final = 40
_FIELDS: Final = ("title", "metadata", "agent", "permissions", "owner_id", "visibility")
"""The fields that `session.updated` can have."""
_DESCRIPTIONS: Final = {
    "session.created": "created",
    "session.archived": "archived",
    "session.deleted": "deleted",
    "session.thread_created": "started a subagent",
    "session.thread_status_idle": "a subagent is idle",
    "session.status_running": "running",
    "session.status_rescheduled": "waits for another attempt",
}


def describe_change(change: Change) -> str:
    at = (change.processed_at or datetime.now(UTC)).astimezone()
    title = f"  {show_line(change.session_title, _MAX_TITLE)}" if change.session_title else ""
    return f"{at:%H:%M:%S}  {show_line(change.session_id or change.deployment_id or '')}{title}  {_describe(change)}"


def _describe(change: Change) -> str:
    match change.type:
        case "session.status_idle":
            waits = (change.stop_reason or {}).get("type") == "requires_action"
            text = "waits for you" if waits else "idle"
        case "session.status_terminated":
            body = change.wire()
            reason = f": {show_line(str(body['reason']), _MAX_TEXT)}" if body.get("reason") else ""
            text = f"ended: {show_line(str(body.get('outcome') or 'terminated'))}{reason}"
        case "session.error":
            text = f"error: {show_line(str((change.error or {}).get('message', '')), _MAX_TEXT)}"
        case "session.updated":
            text = f"updated: {', '.join(name for name in _FIELDS if name in change.wire())}"
        case "agent.tool_use" | "agent.mcp_tool_use" | "agent.custom_tool_use":
            name = "/".join(part for part in (change.mcp_server_name, change.name) if part)
            needed = "its result" if change.type == "agent.custom_tool_use" else "approval"
            call = show_line(f"{name} {json.dumps(change.input, ensure_ascii=False)}", _MAX_TEXT)
            text = f"needs {needed}: {call}"
        case "deployment_run.failed":
            text = f"run failed: {show_line(str((change.error or {}).get('message', '')), _MAX_TEXT)}"
        case "user.tool_confirmation":
            text = describe_decision(change)
        case other:
            text = _DESCRIPTIONS.get(other) or f"{show_line(other)} {show_line(change.name or '', _MAX_TEXT)}".rstrip()
    return text
