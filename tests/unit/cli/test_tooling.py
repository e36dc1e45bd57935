"""The tool options of `footplate run` only remove tools, and an unknown name is an error."""

from typing import Any

import pytest

from footplate.cli import tooling
from footplate.cli.tooling import ToolLimit
from footplate.client import ClientError

TOOLSET: dict[str, Any] = {"type": "agent_toolset_20260401"}
ASK = {"type": "custom", "name": "ask", "description": "Ask.", "input_schema": {"type": "object"}}


def _left(limit: ToolLimit, *tools: dict[str, Any]) -> list[str]:
    """Returns the names of the enabled tools."""
    names = []
    for tool in limit.apply_to(tools):
        if tool["type"] == "custom":
            names.append(tool["name"])
        else:
            assert tool["default_config"] == {"enabled": False}
            names += [each["name"] for each in tool["configs"] if each["enabled"]]
    return names


@pytest.mark.requirement("C1")
def test_only_the_allowed_ones_are_left() -> None:
    assert _left(ToolLimit(allowed=frozenset({"grep", "read"})), TOOLSET, ASK) == ["read", "grep"]
    assert _left(ToolLimit(allowed=frozenset({"ask"})), TOOLSET, ASK) == ["ask"]


def test_the_disallowed_ones_are_gone() -> None:
    left = _left(ToolLimit(disallowed=frozenset({"bash", "ask"})), TOOLSET, ASK)
    assert left == ["read", "write", "edit", "glob", "grep"]


def test_disallowed_wins() -> None:
    assert _left(ToolLimit(frozenset({"bash", "read"}), frozenset({"bash"})), TOOLSET) == ["read"]


def test_what_the_agent_has_switched_off_stays_off() -> None:
    careful = {**TOOLSET, "configs": [{"name": "bash", "enabled": False}, {"name": "web_fetch", "enabled": True}]}
    assert _left(ToolLimit(disallowed=frozenset({"edit"})), careful) == ["read", "write", "glob", "grep", "web_fetch"]
    assert _left(ToolLimit(allowed=frozenset({"bash"})), careful) == []


def test_a_name_that_nobody_has_is_told() -> None:
    with pytest.raises(ClientError, match="no tool named bahs") as caught:
        ToolLimit(disallowed=frozenset({"bahs"})).apply_to([TOOLSET])
    assert "bash, read" in caught.value.help


def test_names_with_commas_or_again() -> None:
    assert tooling.parse_tool_names(["bash,read", "grep glob"]) == {"bash", "read", "grep", "glob"}
    assert not ToolLimit()


def test_claude_codes_names() -> None:
    assert tooling.parse_tool_names(["Bash,Read", "WebFetch web_search"]) == {"bash", "read", "web_fetch", "web_search"}


@pytest.mark.parametrize("given", ["Bash(git log *)", "Read,Bash(git log *)", "Bash(npm run test:*) Edit", "Bash(("])
def test_a_rule_about_inputs_is_refused(given: str) -> None:
    with pytest.raises(tooling.UnsupportedToolRule, match=r"^Bash\(.*do not support.*tool name alone: bash\."):
        tooling.parse_tool_names([given])
