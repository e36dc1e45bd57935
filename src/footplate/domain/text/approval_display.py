"""Renders the full input of a tool call for the person who approves or denies it, escaped and identical in every
client. Renders its main argument for lists.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from footplate.domain.text.visible_text import mark_missing, show_block, show_line

_ESCAPED_SEPARATORS: Final = {ord(sign): f"<U+{ord(sign):04X}>" for sign in " :|\\()"}
"""Characters that are escaped in a field's name, because they separate it from the value."""

_MAIN_ARGUMENTS: Final = {
    "bash": "command",
    "read": "file_path",
    "write": "file_path",
    "edit": "file_path",
    "glob": "pattern",
    "grep": "pattern",
    "web_fetch": "url",
    "web_search": "query",
}


def call_label(name: str, tool_input: Mapping[str, Any] | None) -> str:
    """Return the main argument of a call, unescaped. It is escaped where it is shown."""
    tool_input = tool_input or {}
    if name == "ask_user" and isinstance(asked := tool_input.get("questions"), list):
        return "; ".join(str(item.get("question")) for item in asked if isinstance(item, dict))
    value = tool_input.get(_MAIN_ARGUMENTS.get(name, ""))
    if isinstance(value, str):
        return value
    return json.dumps(tool_input, ensure_ascii=False) if tool_input else ""


@dataclass(frozen=True, slots=True)
class ShownField:
    """One field of a call's input. `text` may have several lines; `recover_text` recovers the original value."""

    name: str
    kind: Literal["text", "json"]
    """`json`: the value is not a string, and `text` is its JSON."""
    text: str


@dataclass(frozen=True, slots=True)
class ShownCall:
    name: str
    """The name of the tool, prefixed with its MCP server and a dot if it has one."""
    agent_name: str | None
    """The subagent that makes the call."""
    reason: str | None
    """Why the gate requires approval."""
    input: tuple[ShownField, ...]
    whole: bool
    """False if the input was truncated, as in lists."""


def describe_call(
    body: Mapping[str, Any], edited_input: Mapping[str, Any] | None = None, *, max_characters: int | None = None
) -> ShownCall:
    """Render the event of a call. `edited_input` replaces the input, for an approver who edited it.

    `max_characters` limits the characters of the input that are shown; markers say how many are missing.
    """
    server, name, agent = body.get("mcp_server_name"), body.get("name"), body.get("agent_name")
    call_input = edited_input if edited_input is not None else body.get("input") or {}
    reason = (body.get("permission") or {}).get("reason")
    fields, cut = _show_fields(call_input, max_characters)
    return ShownCall(
        name=show_line(f"{server}.{name}" if server else str(name)),
        agent_name=None if agent is None else show_line(str(agent)),
        reason=None if reason is None else show_line(str(reason)),
        input=fields,
        whole=not cut and (edited_input is not None or "truncated" not in body),
    )


def _show_fields(call_input: Mapping[str, Any], max_characters: int | None) -> tuple[tuple[ShownField, ...], bool]:
    """Return the fields, and whether anything was cut."""
    fields: list[ShownField] = []
    remaining = sys.maxsize if max_characters is None else max_characters
    for name, value in call_input.items():
        remaining -= len(name)
        if remaining <= 0:
            return tuple(fields), True
        kind: Literal["text", "json"] = "text" if isinstance(value, str) else "json"
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = show_block(text[:remaining]) + (mark_missing(len(text) - remaining) if len(text) > remaining else "")
        fields.append(ShownField(show_line(name).translate(_ESCAPED_SEPARATORS), kind, shown))
        remaining -= len(text)
    return tuple(fields), remaining < 0
