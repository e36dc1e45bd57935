"""Converts the tool names and inputs of Claude Code to Footplate's names and inputs.

Events therefore contain the same name and input for the same tool, regardless of the harness.
"""

from collections.abc import Iterable
from typing import Final

from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import TOOL_NAMES
from footplate.domain.sessions.questions import ASK_USER

QUESTION_TOOL: Final = TOOL_NAMES[ASK_USER]
_FOOTPLATE_NAMES: Final = {theirs: ours for ours, theirs in TOOL_NAMES.items()}


def cli_tool_names(tools: Iterable[str]) -> list[str]:
    """The CLI's names of the agent's tools. The CLI offers no others to the model."""
    return [TOOL_NAMES[name] for name in tools if name in TOOL_NAMES]


def footplate_name(name: str) -> str:
    """Footplate's name of a tool. A tool that Footplate does not have keeps the CLI's name."""
    return _FOOTPLATE_NAMES.get(name, name)


def footplate_input(name: str, tool_input: JsonObject) -> JsonObject:
    """The input with Footplate's field names and without the CLI's defaults. Other fields are unchanged."""
    if name == "Edit" and tool_input.get("replace_all") is False:
        return {key: value for key, value in tool_input.items() if key != "replace_all"}
    if name == QUESTION_TOOL:  # the model may fill in other fields, such as the answers
        questions = tool_input.get("questions")
        return {"questions": [_question(item) for item in questions or () if isinstance(item, dict)]}  # pyrefly: ignore[not-iterable]
    if name == "Bash" and "timeout" in tool_input:
        return {
            **{key: value for key, value in tool_input.items() if key != "timeout"},
            "timeout_ms": tool_input["timeout"],
        }
    if name == "Read" and ("offset" in tool_input or "limit" in tool_input):
        rest = {key: value for key, value in tool_input.items() if key not in {"offset", "limit"}}
        return {**rest, "view_range": _view_range(tool_input.get("offset"), tool_input.get("limit"))}
    return tool_input


def _question(item: JsonObject) -> JsonObject:
    named = {"multi_select" if key == "multiSelect" else key: value for key, value in item.items()}
    return {key: value for key, value in named.items() if value is not False}


def _view_range(offset: Json, limit: Json) -> list[Json]:
    first = offset if isinstance(offset, int) else 1
    return [first, first + limit - 1 if isinstance(limit, int) else 0]
