"""The configuration of a turn is the agent with overrides, and every version's stored configuration can be loaded."""

from dataclasses import asdict

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.agents.agents_and_config import (
    BUILT_IN_TOOLS,
    DEFAULT_MAX_ITERATIONS,
    WEB_TOOLS,
    CustomTool,
    ResolvedConfig,
    load_config,
    render_system,
    resolve_config,
)
from footplate.domain.agents.mcp_servers import McpServer, model_tool_name
from footplate.domain.json import JsonObject
from footplate.domain.sessions.groups import SESSION_TOOLS

LOCAL = tuple(name for name in BUILT_IN_TOOLS if name not in {*WEB_TOOLS, "ask_user", *SESSION_TOOLS})
AGENT: JsonObject = {
    "id": "agent_1",
    "version": 3,
    "model": {"id": "claude-sonnet-5", "speed": "standard"},
    "system": "Be brief.",
    "tools": [{"type": "agent_toolset_20260401", "configs": [], "default_config": {"enabled": True}}],
}
_texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
_custom_tools = st.builds(
    CustomTool, name=_texts, description=_texts, input_schema=st.dictionaries(_texts, _texts, max_size=2)
)
_configs = st.builds(
    ResolvedConfig,
    harness=_texts,
    model=_texts,
    system=_texts,
    tools=st.lists(st.sampled_from(BUILT_IN_TOOLS)).map(tuple),
    custom_tools=st.lists(_custom_tools, max_size=2).map(tuple),
    max_iterations=st.integers(1, 1000),
    model_parameters=st.dictionaries(_texts, st.integers(0, 10), max_size=2),
    agent_id=_texts,
    agent_version=st.integers(0, 1000),
)


def test_an_agent_without_overrides() -> None:
    assert resolve_config(AGENT, {}, default_harness="native") == ResolvedConfig(
        harness="native",
        model="claude-sonnet-5",
        system="Be brief.",
        tools=LOCAL,
        agent_id="agent_1",
        agent_version=3,
    )


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("overrides", "field", "value"),
    [
        ({"model": {"id": "openai:gpt-5"}}, "model", "openai:gpt-5"),
        ({"model": "openai:gpt-5"}, "model", "openai:gpt-5"),
        ({"system": "Be long."}, "system", "Be long."),
        ({"system": None}, "system", ""),
        ({"harness": "echo"}, "harness", "echo"),
        ({"harness": None}, "harness", "native"),
        ({"limits": {"max_iterations": 7}}, "max_iterations", 7),
        ({"limits": {"retry_delay_seconds": 5}}, "retry_delay_seconds", 5.0),
        ({"limits": None}, "max_iterations", DEFAULT_MAX_ITERATIONS),
        ({"limits": {"max_iterations": True}}, "max_iterations", DEFAULT_MAX_ITERATIONS),
        ({"model_parameters": {"temperature": 0}}, "model_parameters", {"temperature": 0}),
        ({"tools": []}, "tools", ()),
        ({"id": "agent_2", "version": 9}, "agent_id", "agent_1"),
        ({"id": "agent_2", "version": 9}, "agent_version", 3),
    ],
)
def test_a_turn_overrides_the_agent(overrides: JsonObject, field: str, value: object) -> None:
    assert getattr(resolve_config(AGENT, overrides, default_harness="native"), field) == value


@pytest.mark.parametrize(
    ("toolset", "enabled"),
    [
        ({}, LOCAL),
        ({"configs": [{"name": "web_fetch", "enabled": True}]}, (*LOCAL, "web_fetch")),
        ({"ask_user": True, "default_config": {"enabled": False}}, ("ask_user",)),
        ({"spawn_sessions": True, "default_config": {"enabled": False}}, SESSION_TOOLS),
        ({"spawn_sessions": True}, (*LOCAL, *SESSION_TOOLS)),
        ({"default_config": {"enabled": False}}, ()),
        ({"default_config": {"enabled": False}, "configs": [{"name": "bash", "enabled": True}]}, ("bash",)),
        ({"configs": [{"name": "bash", "enabled": False}, {"name": "web_search"}]}, LOCAL[1:]),
        ({"default_config": {"enabled": False}, "configs": [{"name": "read"}]}, ()),
    ],
)
def test_tools_are_enabled_one_by_one(toolset: JsonObject, enabled: tuple[str, ...]) -> None:
    agent: JsonObject = {**AGENT, "tools": [{"type": "agent_toolset_20260401", **toolset}]}
    assert resolve_config(agent, {}, default_harness="native").tools == enabled


def test_custom_tools_are_separate_from_the_toolset() -> None:
    custom: JsonObject = {"type": "custom", "name": "ask", "description": "Ask.", "input_schema": {"type": "object"}}
    agent: JsonObject = {**AGENT, "tools": [custom, {"type": "mcp_toolset", "name": "other"}]}
    resolved = resolve_config(agent, {}, default_harness="native")
    assert resolved.tools == ()
    assert resolved.custom_tools == (CustomTool(name="ask", description="Ask.", input_schema={"type": "object"}),)


@pytest.mark.requirement("R1")
def test_a_server_side_toolset_is_a_server_whose_tools_ask_by_default() -> None:
    allow: JsonObject = {"permission_policy": {"type": "always_allow"}}
    toolset: JsonObject = {
        "name": "shop",
        "settings": {"region": "eu"},
        "configs": [{"name": "erase", "enabled": False}, {"name": "find", "enabled": True, **allow}],
        "default_config": {"enabled": True},
    }
    config = resolve_config({**AGENT, "server_toolsets": [toolset]}, {}, default_harness="native")
    tools = {"erase": False, "find": True}
    assert config.mcp_servers == (
        McpServer(name="shop", url="", tools=tools, is_server_toolset=True, settings={"region": "eu"}),
    )
    assert config.policies == {"mcp__shop__find": "always_allow"}
    assert load_config(orjson.loads(orjson.dumps(asdict(config)))) == config
    all_allowed: JsonObject = {**toolset, "default_config": {"enabled": True, **allow}}
    config = resolve_config({**AGENT, "server_toolsets": [all_allowed]}, {}, default_harness="native")
    assert config.policies["mcp__shop__*"] == "always_allow"


@pytest.mark.parametrize("name", ["shop__admin", "shop_"])
def test_calls_are_not_allowed_by_the_policy_of_a_server_with_a_shorter_name(name: str) -> None:
    allow: JsonObject = {"enabled": True, "permission_policy": {"type": "always_allow"}}
    own: JsonObject = {"name": "shop", "default_config": allow}
    other: JsonObject = {"type": "mcp_toolset", "mcp_server_name": name, "default_config": {"enabled": True}}
    agent: JsonObject = {**AGENT, "tools": [other], "server_toolsets": [own]}
    assert resolve_config(agent, {}, default_harness="native").policies == {}
    other["default_config"] = allow
    prefix = model_tool_name(name, "")
    assert resolve_config(agent, {}, default_harness="native").policies == {f"{prefix}*": "always_allow"}


@pytest.mark.requirement("F1")
@pytest.mark.parametrize(
    ("agent", "system"),
    [
        ({}, ""),
        ({"system": "Be brief."}, "Be brief."),
        ({"role": "a baker"}, "You are a baker."),
        (
            {"system": "S", "backstory": "B", "goal": "G", "role": "a baker"},
            "You are a baker.\n\nYour goal: G\n\nB\n\nS",
        ),
        ({"role": None, "goal": "", "system": "S"}, "S"),
    ],
)
def test_role_goal_and_backstory_come_first(agent: JsonObject, system: str) -> None:
    assert render_system(agent) == system


@pytest.mark.requirement("K1")
@given(_configs)
def test_a_stored_config_is_read_back(config: ResolvedConfig) -> None:
    assert load_config(orjson.loads(orjson.dumps(asdict(config)))) == config


def test_fields_that_an_older_version_did_not_store_take_their_default() -> None:
    loaded = load_config({"harness": "native", "model": "m", "system": "s", "added_later": 1})
    assert loaded == ResolvedConfig(harness="native", model="m", system="s")
