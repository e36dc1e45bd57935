"""Limits the tools of a session by `--allowed-tools` and `--disallowed-tools`.

Both only remove tools. The server does not offer disabled tools to the model, so the limit is enforced. A tool can be
given by its own name or by Claude Code's name: `bash` or `Bash`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from footplate.client import ClientError

BUILT_IN: Final = ("bash", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search")
_ON_REQUEST: Final = frozenset({"web_fetch", "web_search"})
"""Tools that are disabled unless they are enabled by name."""
_CLAUDE_CODES: Final = {"".join(word.capitalize() for word in name.split("_")): name for name in BUILT_IN}
_WORD: Final = re.compile(r"(?:\([^)]*\)?|[^\s,(])+")
"""A tool name, with an optional rule in parentheses."""


class NotEnforced(ValueError):
    """The limit cannot be enforced. The message says why."""


@dataclass(frozen=True, slots=True)
class Limit:
    allowed: frozenset[str] = frozenset()
    """Only these tools. Empty for all tools."""
    disallowed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.allowed or self.disallowed)

    def of(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        there = [name for tool in tools for name in _names(tool)]
        if unknown := sorted((self.allowed | self.disallowed) - set(there) - set(BUILT_IN)):
            raise ClientError(
                f"The agent has no tool named {', '.join(unknown)}.",
                help_text=f"It has: {', '.join(there) or 'none'}. Separate several names with commas.",
            )
        return [limited for tool in tools if (limited := self._limited(tool)) is not None]

    def _limited(self, tool: Mapping[str, Any]) -> dict[str, Any] | None:
        kept = [name for name in _names(tool) if self._keeps(name)]
        if not kept:
            return None
        if tool.get("type") == "custom":
            return dict(tool)
        on = [{"name": name, "enabled": True} for name in kept]
        return {"type": tool["type"], "default_config": {"enabled": False}, "configs": on}

    def _keeps(self, name: str) -> bool:
        return name not in self.disallowed and (not self.allowed or name in self.allowed)


ALL: Final = Limit()


def names(given: Sequence[str]) -> frozenset[str]:
    """Parses tool names such as `bash,read` or `Bash Read`."""
    words = [word for text in given for word in _WORD.findall(text)]
    if rules := [word for word in words if "(" in word]:
        tool = rules[0].partition("(")[0]
        raise NotEnforced(
            f"{rules[0]} is a rule about a tool's input, which these options do not support. "
            f"Use the tool name alone: {_CLAUDE_CODES.get(tool, tool)}."
        )
    return frozenset(_CLAUDE_CODES.get(word, word) for word in words)


def _names(tool: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of the enabled tools of a toolset, or the name of a custom tool."""
    if tool.get("type") == "custom":
        yield str(tool["name"])
        return
    usual = (tool.get("default_config") or {}).get("enabled", True)
    said = {each["name"]: each.get("enabled", usual) for each in tool.get("configs") or []}
    yield from (name for name in BUILT_IN if said.get(name, usual and name not in _ON_REQUEST))
