"""The tool options of `footplate run` only remove tools, and an unknown name is an error."""

from typing import Any

import pytest

from footplate.cli.actions.run import tool_selection
from footplate.cli.actions.run.tool_selection import ToolLimit
from footplate.client import ClientError

TOOLSET: dict[str, Any] = {"type": "agent_toolset_20260401"}
ASK = {"type": "custom", "name": "ask", "description": "Ask.", "input_schema": {"type": "object"}}


def _list_enabled(limit: ToolLimit, *tools: dict[str, Any]) -> list[str]:
    """Returns the names of the enabled tools."""
    names: list[str] = []
    for tool in limit.apply_to(tools):
        if tool["type"] == "custom":
            names.append(tool["name"])
        else:
            assert tool["default_config"] == {"enabled": False}
            names += [each["name"] for each in tool["configs"] if each["enabled"]]
    return names


@pytest.mark.requirement("C1")
def test_only_allowed_tools_remain() -> None:
    assert _list_enabled(ToolLimit(allowed=frozenset({"grep", "read"})), TOOLSET, ASK) == ["read", "grep"]
    assert _list_enabled(ToolLimit(allowed=frozenset({"ask"})), TOOLSET, ASK) == ["ask"]


def test_disallowed_tools_are_removed() -> None:
    remaining = _list_enabled(ToolLimit(disallowed=frozenset({"bash", "ask"})), TOOLSET, ASK)
    assert remaining == ["read", "write", "edit", "glob", "grep"]


def test_disallowing_overrides_allowing() -> None:
    assert _list_enabled(ToolLimit(frozenset({"bash", "read"}), frozenset({"bash"})), TOOLSET) == ["read"]


def test_tools_that_the_agent_disabled_stay_disabled() -> None:
    careful = {**TOOLSET, "configs": [{"name": "bash", "enabled": False}, {"name": "web_fetch", "enabled": True}]}
    assert _list_enabled(ToolLimit(disallowed=frozenset({"edit"})), careful) == [
        "read",
        "write",
        "glob",
        "grep",
        "web_fetch",
    ]
    assert _list_enabled(ToolLimit(allowed=frozenset({"bash"})), careful) == []


def test_an_unknown_tool_name_is_reported() -> None:
    with pytest.raises(ClientError, match="no tool named bahs") as caught:
        ToolLimit(disallowed=frozenset({"bahs"})).apply_to([TOOLSET])
    assert "bash, read" in caught.value.help


def test_names_are_separated_by_commas_spaces_or_options() -> None:
    assert tool_selection.parse_tool_names(["bash,read", "grep glob"]) == {"bash", "read", "grep", "glob"}
    assert not ToolLimit()


def test_claude_codes_names_are_accepted() -> None:
    assert tool_selection.parse_tool_names(["Bash,Read", "WebFetch web_search"]) == {
        "bash",
        "read",
        "web_fetch",
        "web_search",
    }


@pytest.mark.parametrize("given", ["Bash(git log *)", "Read,Bash(git log *)", "Bash(npm run test:*) Edit", "Bash(("])
def test_a_rule_about_inputs_is_refused(given: str) -> None:
    with pytest.raises(tool_selection.UnsupportedToolRule, match=r"^Bash\(.*do not support.*tool name alone: bash\."):
        tool_selection.parse_tool_names([given])


@pytest.mark.parametrize(
    ("limit", "enabled"),
    [
        (ToolLimit(disallowed=frozenset({"bash"})), True),
        (ToolLimit(disallowed=frozenset({"wait_sessions"})), False),
        (ToolLimit(allowed=frozenset({"read"})), False),
        (ToolLimit(allowed=frozenset({"read", "spawn_sessions"})), True),
    ],
)
def test_the_tools_for_child_sessions_are_limited_together(limit: ToolLimit, *, enabled: bool) -> None:
    (toolset,) = limit.apply_to([{"type": "agent_toolset_20260401", "spawn_sessions": True}])
    assert toolset.get("spawn_sessions", False) is enabled
    assert all("session" not in config["name"] for config in toolset["configs"])
