"""Finds the calls that results and decisions belong to, for views that show only part of a session's log."""

from collections.abc import Sequence
from typing import Final

from footplate.client import AsyncFootplate
from footplate.client.response_models import Event

TOOL_USES: Final = ("agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use")
_DECISION: Final = "user.tool_confirmation"
_REFERRING_EVENTS: Final = ("agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result", _DECISION)


def referenced_call(event: Event) -> str | None:
    """Returns the id of the call that a result or a decision belongs to."""
    if event.type not in _REFERRING_EVENTS:
        return None
    return event.tool_use_id or event.mcp_tool_use_id or event.custom_tool_use_id


async def find_missing_calls(client: AsyncFootplate, session_id: str, shown: Sequence[Event]) -> list[Event]:
    """Returns the calls that these events refer to but do not contain, and the decisions on them, oldest first."""
    shown_ids = {event.id for event in shown}
    missing = {call for event in shown if (call := referenced_call(event))} - shown_ids
    found: list[Event] = []
    if not missing:
        return found
    async for event in client.events.list(session_id, limit=100, order="desc", types=[*TOOL_USES, _DECISION]):
        if event.id not in shown_ids and (event.id in missing or event.tool_use_id in missing):
            found.append(event)
        if event.type in TOOL_USES:
            missing.discard(str(event.id))
        if not missing:
            break
    return found[::-1]
