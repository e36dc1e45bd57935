"""Limits the tools of a session by `--allowed-tools` and `--disallowed-tools`.

Both options only remove tools. The server does not offer the removed tools to the model, so the limit is enforced. A
tool can be given by its name in Footplate (`bash`) or in Claude Code (`Bash`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from footplate.client import ClientError
from footplate.domain.policy.permissions import TOOL_NAMES
from footplate.domain.sessions.groups import SESSION_TOOLS, SPAWN_SESSIONS

_ASK_USER: Final = "ask_user"
_FIELDS: Final = {_ASK_USER: _ASK_USER, **dict.fromkeys(SESSION_TOOLS, SPAWN_SESSIONS)}
"""Tools that a field of the toolset enables, with the name of the field."""
BUILT_IN_TOOLS: Final = ("bash", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search", *_FIELDS)
_OFF_BY_DEFAULT: Final = frozenset({"web_fetch", "web_search"})
"""Tools that are disabled unless they are enabled by name."""
_CLAUDE_CODE_NAMES: Final = {theirs: name for name, theirs in TOOL_NAMES.items()}
_TOOL_NAME: Final = re.compile(r"(?:\([^)]*\)?|[^\s,(])+")
"""A tool name, with an optional rule in parentheses."""


class UnsupportedToolRule(ValueError):
    """The limit cannot be enforced. The message says why."""


@dataclass(frozen=True, slots=True)
class ToolLimit:
    allowed: frozenset[str] = frozenset()
    """Only these tools. Empty for all tools."""
    disallowed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.allowed or self.disallowed)

    def apply_to(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        available = [name for tool in tools for name in _enabled_names(tool)]
        if unknown := sorted((self.allowed | self.disallowed) - set(available) - set(BUILT_IN_TOOLS)):
            raise ClientError(
                f"The agent has no tool named {', '.join(unknown)}.",
                help_text=f"Its tools: {', '.join(available) or 'none'}. Separate several names with commas.",
            )
        return [limited for tool in tools if (limited := self._limit_tool(tool)) is not None]

    def _limit_tool(self, tool: Mapping[str, Any]) -> dict[str, Any] | None:
        remaining = [name for name in _enabled_names(tool) if self._allows(name)]
        if not remaining:
            return None
        if tool.get("type") == "custom":
            return dict(tool)
        on = [{"name": name, "enabled": True} for name in remaining if name not in _FIELDS]
        fields = {field for field in _FIELDS.values() if field in remaining}
        more = dict.fromkeys(sorted(fields - {_FIELDS.get(name) for name in self.disallowed}), True)
        return {"type": tool["type"], "default_config": {"enabled": False}, "configs": on, **more}

    def _allows(self, name: str) -> bool:
        return name not in self.disallowed and (not self.allowed or name in self.allowed)


NO_LIMIT: Final = ToolLimit()


def parse_tool_names(given: Sequence[str]) -> frozenset[str]:
    """Parses tool names such as `bash,read` or `Bash Read`."""
    entries = [entry for text in given for entry in _TOOL_NAME.findall(text)]
    if rules := [name for name in entries if "(" in name]:
        tool = rules[0].partition("(")[0]
        raise UnsupportedToolRule(
            f"{rules[0]} is a rule about a tool's input, which these options do not support. "
            f"Use the tool name alone: {_CLAUDE_CODE_NAMES.get(tool, tool)}."
        )
    return frozenset(_CLAUDE_CODE_NAMES.get(name, name) for name in entries)


def _enabled_names(tool: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of the enabled tools of a toolset, or the name of a custom tool."""
    if tool.get("type") == "custom":
        yield str(tool["name"])
        return
    default = (tool.get("default_config") or {}).get("enabled", True)
    configured = {each["name"]: each.get("enabled", default) for each in tool.get("configs") or []}
    configured |= {name: tool.get(field) is True for name, field in _FIELDS.items()}
    yield from (name for name in BUILT_IN_TOOLS if configured.get(name, default and name not in _OFF_BY_DEFAULT))
