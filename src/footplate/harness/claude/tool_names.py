"""Converts tool names and inputs from the CLI's to Footplate's.

Events have the same name and input for the same tool, whichever harness ran it.
"""

from collections.abc import Iterable
from typing import Final

from footplate.domain.json import Json, JsonObject
from footplate.domain.permissions import TOOL_NAMES

_OUR_NAMES: Final = {theirs: ours for ours, theirs in TOOL_NAMES.items()}


def offered(tools: Iterable[str]) -> list[str]:
    """The CLI's names of the agent's tools. The CLI offers no others to the model."""
    return [TOOL_NAMES[name] for name in tools if name in TOOL_NAMES]


def ours(name: str) -> str:
    """Footplate's name of a tool. A tool that Footplate does not have keeps the CLI's name."""
    return _OUR_NAMES.get(name, name)


def our_input(name: str, given: JsonObject) -> JsonObject:
    """The input with Footplate's field names and without the CLI's defaults. Other fields are unchanged."""
    if name == "Edit" and given.get("replace_all") is False:
        return {key: value for key, value in given.items() if key != "replace_all"}
    if name == "Bash" and "timeout" in given:
        return {**{key: value for key, value in given.items() if key != "timeout"}, "timeout_ms": given["timeout"]}
    if name == "Read" and ("offset" in given or "limit" in given):
        rest = {key: value for key, value in given.items() if key not in {"offset", "limit"}}
        return {**rest, "view_range": _view_range(given.get("offset"), given.get("limit"))}
    return given


def _view_range(offset: Json, limit: Json) -> list[Json]:
    first = offset if isinstance(offset, int) else 1
    return [first, first + limit - 1 if isinstance(limit, int) else 0]
