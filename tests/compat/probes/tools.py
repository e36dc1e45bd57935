"""The tools of an agent: the toolset, MCP servers, custom tools and web tools."""

from typing import Any

import anthropic
from bench.support.sdk.sdk_client import MODEL, TOOLSET, SdkClient
from tests.compat.checks import require_equal
from tests.compat.registry import different, refused, supported

_BUILT_IN = ("bash", "edit", "glob", "grep", "read", "write")
_ALLOW = {"type": "always_allow"}
_ASK = {"type": "always_ask"}
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "minProperties": 1}
_WEATHER = {"type": "custom", "name": "get_weather", "description": "The weather.", "input_schema": _SCHEMA}


async def _refuse(door: SdkClient, tools: Any, field: str) -> None:
    await door.expect_error(anthropic.BadRequestError, "agents.create", name="A", model=MODEL, tools=tools, field=field)


@supported("AgentToolset20260401Params", "configs", "default_config")
@supported("AgentToolsetDefaultConfigParams", "enabled", note="The web tools stay off until they are enabled by name.")
@supported("AgentToolsetDefaultConfigParams", "permission_policy")
@supported("BashToolConfigParams", "name", "enabled", "permission_policy")
@supported("EditToolConfigParams", "name", "enabled", "permission_policy")
@supported("GlobToolConfigParams", "name", "enabled", "permission_policy")
@supported("GrepToolConfigParams", "name", "enabled", "permission_policy")
@supported("ReadToolConfigParams", "name", "enabled", "permission_policy")
@supported("WriteToolConfigParams", "name", "enabled", "permission_policy")
@supported("AlwaysAllowPolicyParam")
async def the_toolset_tool_by_tool(door: SdkClient) -> None:
    for name in _BUILT_IN:
        config = {"name": name, "type": name, "enabled": True, "permission_policy": _ALLOW}
        default = {"enabled": False, "permission_policy": _ALLOW}
        agent = await door.agent(tools=[{**TOOLSET, "configs": [config], "default_config": default}])
        (toolset,) = agent.tools
        require_equal(
            (toolset.default_config.enabled, toolset.default_config.permission_policy.type), (False, "always_allow")
        )
        (shown,) = [one for one in toolset.configs if one.name == name]
        require_equal((shown.enabled, shown.permission_policy.type), (True, "always_allow"))
    await _refuse(door, [{**TOOLSET, "configs": [{"name": "bash"}, {"name": "bash"}]}], "tools.0.configs")
    await _refuse(door, [{**TOOLSET, "configs": [{"name": "dance"}]}], "tools.0.configs.0.name")
    await _refuse(door, [TOOLSET, TOOLSET], "tools")


@supported("AlwaysAskPolicyParam")
@refused("AutoPolicyParam", note="No model can be configured to decide.")
async def tools_that_always_need_approval(door: SdkClient) -> None:
    agent = await door.agent(tools=[{**TOOLSET, "configs": [{"name": "bash", "permission_policy": _ASK}]}])
    require_equal({one.name: one.permission_policy.type for one in agent.tools[0].configs}["bash"], "always_ask")
    asking = {"permission_policy": {"type": "auto"}}
    await _refuse(door, [{**TOOLSET, "configs": [{"name": "bash", **asking}]}], "tools.0.configs.0.permission_policy")
    await _refuse(door, [{**TOOLSET, "default_config": asking}], "tools.0.default_config.permission_policy")


@supported("URLMCPServerParams", "name", note="Names that a model could confuse are refused.")
@supported("URLMCPServerParams", "url", note="Internal addresses only if the operator allows them.")
@supported("MCPToolsetParams", "mcp_server_name", "configs", "default_config")
@supported("MCPToolConfigParams", "name", "enabled", "permission_policy")
@supported("MCPToolsetDefaultConfigParams", "enabled", "permission_policy")
async def tools_of_an_mcp_server(door: SdkClient) -> None:
    server = {"type": "url", "name": "m", "url": "https://mcp.example.com/mcp"}
    toolset: Any = {"type": "mcp_toolset", "mcp_server_name": "m", "default_config": {"permission_policy": _ALLOW}}
    configs = [{"name": "a", "enabled": False}, {"name": "b", "enabled": True, "permission_policy": _ALLOW}]
    agent = await door.agent(mcp_servers=[server], tools=[{**toolset, "configs": configs}])
    (shown,) = agent.tools
    require_equal((shown.type, shown.mcp_server_name, shown.default_config.enabled), ("mcp_toolset", "m", True))
    require_equal([(one.name, one.enabled) for one in shown.configs], [("a", False), ("b", True)])
    require_equal([(one.name, one.url) for one in agent.mcp_servers], [("m", server["url"])])
    await _refuse(door, [toolset], "tools.0.mcp_server_name")
    plain: Any = {"type": "mcp_toolset", "mcp_server_name": "m"}
    agent = await door.agent(mcp_servers=[server], tools=[{**plain, "configs": [{"name": "a"}]}])
    (shown,) = agent.tools
    require_equal(
        (shown.default_config.permission_policy.type, shown.configs[0].permission_policy.type),
        ("always_ask", "always_ask"),
    )
    for fields in ({"url": "ftp://x"}, {"url": "https://me:secret@example.com"}):
        refusal, more = anthropic.BadRequestError, {"mcp_servers": [{**server, **fields}]}
        await door.expect_error(refusal, "agents.create", name="A", model=MODEL, field="mcp_servers.0.url", **more)


@supported("CustomToolParams", "name", "description", "input_schema")
@supported("CustomToolInputSchemaParam", "properties", "required")
async def custom_tools_that_the_client_runs(door: SdkClient) -> None:
    agent = await door.agent(tools=[_WEATHER])
    (tool,) = agent.tools
    require_equal((tool.name, tool.description), ("get_weather", "The weather."))
    require_equal(tool.input_schema.to_dict(), _SCHEMA)
    for fields, field in (
        ({"name": "no spaces"}, "tools.0.name"),
        ({"name": ""}, "tools.0.name"),
        ({"input_schema": {"type": "array"}}, "tools.0.input_schema"),
        ({"input_schema": {"type": "object", "required": "city"}}, "tools.0.input_schema"),
    ):
        await _refuse(door, [{**_WEATHER, **fields}], field)
    await _refuse(door, [_WEATHER, _WEATHER], "tools")
    await _refuse(door, [TOOLSET, {**_WEATHER, "name": "bash"}], "tools")


_LIMITS = ("allowed_domains", "blocked_domains")


@supported("WebFetchToolConfigParams", "name", "permission_policy")
@different("WebFetchToolConfigParams", "enabled", note="Off unless enabled by name, whatever `default_config` has.")
@refused("WebFetchToolConfigParams", "allowed_domains", "blocked_domains", "max_content_tokens", "url_sources")
@supported("WebSearchToolConfigParams", "name", "permission_policy")
@different(
    "WebSearchToolConfigParams", "enabled", note="Off unless enabled by name; refused without a search provider."
)
@refused("WebSearchToolConfigParams", "allowed_domains", "blocked_domains", "user_location")
async def web_tools_are_off_unless_enabled_by_name(door: SdkClient) -> None:
    bare = await door.agent()
    require_equal(
        {config.name: config.enabled for config in bare.tools[0].configs}, {"web_fetch": False, "web_search": False}
    )
    config: Any = {"name": "web_fetch", "enabled": True, "permission_policy": _ALLOW}
    agent = await door.agent(tools=[{**TOOLSET, "configs": [config]}])
    require_equal({one.name: one.enabled for one in agent.tools[0].configs}["web_fetch"], True)
    where = "tools.0.configs.0"
    for name, limits in (
        ("web_fetch", {"max_content_tokens": 9, "url_sources": {"user_input": {"type": "all"}}}),
        ("web_search", {"user_location": {"type": "approximate", "city": "Oslo"}}),
    ):
        for field, value in {**{key: ["example.com"] for key in _LIMITS}, **limits}.items():
            await _refuse(door, [{**TOOLSET, "configs": [{"name": name, field: value}]}], f"{where}.{field}")
    await _refuse(door, [{**TOOLSET, "configs": [{"name": "web_search", "enabled": True}]}], f"{where}.enabled")
