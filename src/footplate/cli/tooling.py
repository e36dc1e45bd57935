"""Which of an agent's tools a session may use: `--allowed-tools` and `--disallowed-tools`. Pure.

Both only take away. The server does not offer the model what is switched off, so this is a limit and no advice. A tool
goes by the reference's name or by Claude Code's: `bash` or `Bash`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from footplate.client import ClientError

BUILT_IN: Final = ("bash", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search")
_ON_REQUEST: Final = frozenset({"web_fetch", "web_search"})
"""Off unless they are switched on by name."""
_CLAUDE_CODES: Final = {"".join(word.capitalize() for word in name.split("_")): name for name in BUILT_IN}
_WORD: Final = re.compile(r"(?:\([^)]*\)?|[^\s,(])+")
"""A name, with what stands in brackets behind it."""


class NotEnforced(ValueError):
    """More was asked for than anybody would hold to; the text says what."""


@dataclass(frozen=True, slots=True)
class Limit:
    allowed: frozenset[str] = frozenset()
    """Only these; empty for all that there are."""
    disallowed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.allowed or self.disallowed)

    def of(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        there = [name for tool in tools for name in _names(tool)]
        if unknown := sorted((self.allowed | self.disallowed) - set(there) - set(BUILT_IN)):
            raise ClientError(
                f"The agent has no tool named {', '.join(unknown)}.",
                help_text=f"It has: {', '.join(there) or 'none'}. Several are written with commas between.",
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
    """`bash,read` or `Bash Read`, once or several times."""
    words = [word for text in given for word in _WORD.findall(text)]
    if rules := [word for word in words if "(" in word]:
        tool = rules[0].partition("(")[0]
        raise NotEnforced(
            f"{rules[0]} is a rule about what a tool is given, and nothing enforces those yet. "
            f"Name the tool as a whole: {_CLAUDE_CODES.get(tool, tool)}."
        )
    return frozenset(_CLAUDE_CODES.get(word, word) for word in words)


def _names(tool: Mapping[str, Any]) -> Iterator[str]:
    """What of a toolset is switched on; a custom tool is itself."""
    if tool.get("type") == "custom":
        yield str(tool["name"])
        return
    usual = (tool.get("default_config") or {}).get("enabled", True)
    said = {each["name"]: each.get("enabled", usual) for each in tool.get("configs") or []}
    yield from (name for name in BUILT_IN if said.get(name, usual and name not in _ON_REQUEST))
