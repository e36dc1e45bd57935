"""Data types for agents, environments, and the configuration with which a turn runs.

The session's copy of an agent version and the turn's overrides are merged into one `ResolvedConfig`. The result is
stored with the turn, so the configuration of a past turn is known even after the agent has changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from footplate.domain.agents import environment_config
from footplate.domain.agents import mcp_servers as mcp
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.agents.mcp_servers import McpServer
from footplate.domain.json import Json, JsonObject, as_object, as_objects
from footplate.domain.policy.permissions import TOOL_NAMES
from footplate.domain.projects.project import SessionProject
from footplate.domain.sessions.groups import SESSION_TOOLS, SPAWN_SESSIONS
from footplate.domain.sessions.questions import ASK_USER

TOOLSET: Final = "agent_toolset_20260401"
CUSTOM_TOOL_TYPE: Final = "custom"
_SERVER_TYPES: Final = frozenset({mcp.TOOLSET, None})
"""The types of toolsets of MCP servers. A server-side toolset has no type."""
ALWAYS_ALLOW: Final = "always_allow"
ALWAYS_ASK: Final = "always_ask"
WEB_TOOLS: Final = ("web_fetch", "web_search")
"""Off unless an agent enables them by name, because they reach hosts that its environment may not."""
BUILT_IN_TOOLS: Final = ("bash", "read", "write", "edit", "glob", "grep", *WEB_TOOLS, ASK_USER, *SESSION_TOOLS)
DEFAULT_MAX_ITERATIONS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One version of an agent. `definition` is the body from the API without the fields listed here."""

    id: str
    organisation: str
    version: int
    name: str
    definition: JsonObject
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecord:
    id: str
    organisation: str
    name: str
    description: str | None
    config: JsonObject
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomTool:
    name: str
    description: str
    input_schema: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """An agent that another agent can delegate work to, in a thread of the same session."""

    name: str
    description: str
    model: str
    system: str
    tools: tuple[str, ...] = ()
    custom_tools: tuple[CustomTool, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    max_iterations: int = DEFAULT_MAX_ITERATIONS
    model_parameters: JsonObject = field(default_factory=dict)
    permissions: JsonObject = field(default_factory=dict)
    """The subagent's own rules. This field and `policies` have the same form as in `ResolvedConfig`."""
    policies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    """The configuration of one turn. Stored as JSON with the turn."""

    harness: str
    model: str
    system: str
    tools: tuple[str, ...] = ()
    custom_tools: tuple[CustomTool, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    max_iterations: int = DEFAULT_MAX_ITERATIONS
    model_parameters: JsonObject = field(default_factory=dict)
    agent_id: str = ""
    agent_version: int = 0
    environment: JsonObject = field(default_factory=dict)
    """The configuration of the session's environment at the time when the session was created."""
    shell_mode: str | None = None
    """`host` or `container`: where the turn's commands run. None: as the session's backend does."""
    mode: str = "interactive"
    max_retries: int | None = None
    """How often the turn is retried after a temporary failure. None: the server's default."""
    retry_delay_seconds: float | None = None
    """The wait before the first retry. Each further wait is twice as long. None: the server's default."""
    timeout_seconds: float | None = None
    """Wall-clock limit for the turn, including all attempts and waits. None: no limit."""
    projects: tuple[SessionProject, ...] = ()
    """The session's projects when the turn began. The first one is the working directory."""
    subagents: tuple[Subagent, ...] = ()
    permissions: JsonObject = field(default_factory=dict)
    """The agent's own rules: a list of rule texts for each of `deny`, `ask` and `allow`."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """The permission policies of the agent's toolsets: `always_allow` or `always_ask` for each tool, keyed by the
    rule that matches the tool."""

    @property
    def environment_config(self) -> EnvironmentConfig:
        """The configuration of the turn's environment."""
        config = environment_config.load_environment_config(self.environment)
        return replace(config, shell_mode=self.shell_mode or "")


def resolve_config(agent: Mapping[str, Json], overrides: Mapping[str, Json], *, default_harness: str) -> ResolvedConfig:
    """Merge the session's copy of the agent with a turn's overrides, which take precedence."""
    merged: dict[str, Json] = {**agent, **overrides}
    limits = as_object(merged.get("limits"))
    model = as_object(merged.get("model"))
    built_in, custom = _split_tools(merged.get("tools"))
    return ResolvedConfig(
        harness=str(merged.get("harness") or default_harness),
        model=str(model.get("id") or merged.get("model") or ""),
        system=render_system(merged),
        tools=built_in,
        custom_tools=custom,
        mcp_servers=mcp.read_agent_servers(
            merged.get("mcp_servers"), merged.get("tools"), merged.get(mcp.SERVER_TOOLSETS)
        ),
        max_iterations=_integer(limits.get("max_iterations"), DEFAULT_MAX_ITERATIONS),
        model_parameters=as_object(merged.get("model_parameters")),
        agent_id=str(agent.get("id") or ""),
        agent_version=_integer(agent.get("version"), 0),
        max_retries=_optional_integer(limits.get("max_retries")),
        retry_delay_seconds=_optional_number(limits.get("retry_delay_seconds")),
        timeout_seconds=_optional_number(limits.get("timeout_seconds")),
        subagents=tuple(
            _resolve_subagent(member) for member in as_objects(as_object(merged.get("multiagent")).get("agents"))
        ),
        permissions=as_object(merged.get("permissions")),
        policies=_collect_policies(merged.get("tools"), merged.get(mcp.SERVER_TOOLSETS)),
        shell_mode=_optional_text(merged.get("shell_mode")),
    )


def load_config(stored: Mapping[str, Json]) -> ResolvedConfig:
    """Load the configuration stored with a turn. Fields that an older version did not store get their defaults."""
    custom, tools, projects = (stored.get(name) for name in ("custom_tools", "tools", "projects"))
    return ResolvedConfig(
        harness=str(stored["harness"]),
        model=str(stored["model"]),
        system=str(stored["system"]),
        tools=tuple(str(name) for name in tools) if isinstance(tools, list) else (),
        custom_tools=tuple(_custom_tool(tool) for tool in custom if isinstance(tool, dict))
        if isinstance(custom, list)
        else (),
        mcp_servers=mcp.load_servers(stored.get("mcp_servers")),
        max_iterations=_integer(stored.get("max_iterations"), DEFAULT_MAX_ITERATIONS),
        model_parameters=as_object(stored.get("model_parameters")),
        agent_id=str(stored.get("agent_id") or ""),
        agent_version=_integer(stored.get("agent_version"), 0),
        environment=as_object(stored.get("environment")),
        shell_mode=_optional_text(stored.get("shell_mode")),
        mode=str(stored.get("mode") or "interactive"),
        max_retries=_optional_integer(stored.get("max_retries")),
        retry_delay_seconds=_optional_number(stored.get("retry_delay_seconds")),
        timeout_seconds=_optional_number(stored.get("timeout_seconds")),
        projects=tuple(SessionProject.load(project) for project in projects if isinstance(project, dict))
        if isinstance(projects, list)
        else (),
        subagents=tuple(_load_subagent(item) for item in as_objects(stored.get("subagents"))),
        permissions=as_object(stored.get("permissions")),
        policies=_texts(stored.get("policies")),
    )


def _resolve_subagent(agent: Mapping[str, Json]) -> Subagent:
    """Resolve the definition of a subagent that is stored with the session."""
    config = resolve_config(agent, {}, default_harness="")
    return Subagent(
        name=str(agent.get("name")),
        description=str(agent.get("description") or ""),
        model=config.model,
        system=config.system,
        tools=config.tools,
        custom_tools=config.custom_tools,
        mcp_servers=config.mcp_servers,
        max_iterations=config.max_iterations,
        model_parameters=config.model_parameters,
        permissions=config.permissions,
        policies=config.policies,
    )


def _load_subagent(stored: Mapping[str, Json]) -> Subagent:
    tools = stored.get("tools")
    return Subagent(
        name=str(stored["name"]),
        description=str(stored["description"]),
        model=str(stored["model"]),
        system=str(stored["system"]),
        tools=tuple(str(name) for name in tools) if isinstance(tools, list) else (),
        custom_tools=tuple(_custom_tool(tool) for tool in as_objects(stored.get("custom_tools"))),
        mcp_servers=mcp.load_servers(stored.get("mcp_servers")),
        max_iterations=_integer(stored.get("max_iterations"), DEFAULT_MAX_ITERATIONS),
        model_parameters=as_object(stored.get("model_parameters")),
        permissions=as_object(stored.get("permissions")),
        policies=_texts(stored.get("policies")),
    )


def fill_default_policies(definition: JsonObject) -> JsonObject:
    """Return the definition with the default permission policy filled in for every toolset.

    The clients of the reference API expect these fields. The filled-in values are not used as rules.
    """
    filled = {**definition}
    if isinstance(tools := filled.get("tools"), list):
        filled["tools"] = [_fill_toolset_policies(tool) if isinstance(tool, dict) else tool for tool in tools]
    if multiagent := as_object(filled.get("multiagent")):
        filled["multiagent"] = {
            **multiagent,
            "agents": [fill_default_policies(member) for member in as_objects(multiagent.get("agents"))],
        }
    return filled


def keep_stored_tools(tools: Json, old: Json) -> Json:
    """Return the old tools if `tools` differs from them only by the defaults that `fill_default_policies` fills in,
    else `tools`.

    A client that reads an agent and sends it back unchanged thereby makes no change.
    """
    is_unchanged = fill_default_policies({"tools": tools}) == fill_default_policies({"tools": old})
    return old if is_unchanged else tools


def _fill_toolset_policies(tool: JsonObject) -> JsonObject:
    if tool.get("type") not in {TOOLSET, mcp.TOOLSET}:
        return tool
    default_policy = _policy_type(tool.get("default_config")) or (
        ALWAYS_ALLOW if tool.get("type") == TOOLSET else ALWAYS_ASK
    )
    default_fields: JsonObject = {"permission_policy": {"type": default_policy}}
    configs = tool.get("configs")
    return {
        **tool,
        "configs": [{**default_fields, **config} for config in as_objects(configs)],
        "default_config": {**default_fields, **as_object(tool.get("default_config"))},
    }


def render_system(agent: Mapping[str, Json]) -> str:
    """Build the system prompt: role, goal and backstory first, then the agent's `system` text."""
    lines = []
    if role := agent.get("role"):
        lines.append(f"You are {role}.")
    if goal := agent.get("goal"):
        lines.append(f"Your goal: {goal}")
    if backstory := agent.get("backstory"):
        lines.append(str(backstory))
    if system := agent.get("system"):
        lines.append(str(system))
    return "\n\n".join(lines)


def _split_tools(tools: Json) -> tuple[tuple[str, ...], tuple[CustomTool, ...]]:
    built_in: list[str] = []
    custom: list[CustomTool] = []
    for tool in tools if isinstance(tools, list) else []:
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == TOOLSET:
            built_in.extend(name for name in BUILT_IN_TOOLS if _is_enabled(tool, name))
        elif tool.get("type") == CUSTOM_TOOL_TYPE:
            custom.append(_custom_tool(tool))
    return tuple(built_in), tuple(custom)


def _collect_policies(tools: Json, server_toolsets: Json) -> dict[str, str]:
    """Collect the policies that the toolsets set explicitly, keyed by the rule that matches the tool.

    `always_ask` for a whole MCP server or server-side toolset is omitted: it is the default, and as a rule it would
    override the policies of the individual tools. `always_allow` for a whole one is omitted if its rule would match
    the tools of another one too, such as `a__b` beside `a`: then its calls need approval too.
    """
    policies: dict[str, str] = {}
    listed = [*as_objects(tools), *as_objects(server_toolsets)]
    prefixes = {mcp.model_tool_name(_server_of(tool), "") for tool in listed if tool.get("type") in _SERVER_TYPES}
    for tool in listed:
        default_policy = _policy_type(tool.get("default_config"))
        tool_policies = {
            str(config.get("name")): policy
            for config in as_objects(tool.get("configs"))
            if (policy := _policy_type(config)) is not None
        }
        if tool.get("type") == TOOLSET:
            for name in BUILT_IN_TOOLS:
                if (policy := tool_policies.get(name, default_policy)) is not None:
                    policies[TOOL_NAMES.get(name, name)] = policy
        elif tool.get("type") in _SERVER_TYPES:
            server = _server_of(tool)
            policies |= {mcp.model_tool_name(server, name): policy for name, policy in tool_policies.items()}
            prefix = mcp.model_tool_name(server, "")
            if default_policy == ALWAYS_ALLOW and sum(other.startswith(prefix) for other in prefixes) == 1:
                policies[f"{prefix}*"] = default_policy
    return policies


def _server_of(toolset: JsonObject) -> str:
    return str(toolset.get("mcp_server_name") or toolset.get("name"))


def _policy_type(config: Json) -> str | None:
    policy = as_object(config).get("permission_policy")
    kind = as_object(policy).get("type")
    return kind if isinstance(kind, str) else None


def _custom_tool(tool: Mapping[str, Json]) -> CustomTool:
    return CustomTool(
        name=str(tool.get("name")),
        description=str(tool.get("description") or ""),
        input_schema=as_object(tool.get("input_schema")),
    )


def _is_enabled(toolset: Mapping[str, Json], name: str) -> bool:
    if name == ASK_USER:  # a field of its own: clients of the reference API know no such name of a tool
        return toolset.get(ASK_USER) is True
    if name in SESSION_TOOLS:
        return toolset.get(SPAWN_SESSIONS) is True
    default = name not in WEB_TOOLS and as_object(toolset.get("default_config")).get("enabled", True)
    for config in as_objects(toolset.get("configs")):
        if config.get("name") == name:
            return bool(config.get("enabled", default))
    return bool(default)


def _texts(value: Json) -> dict[str, str]:
    return {name: str(text) for name, text in as_object(value).items()}


def _optional_text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: Json, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _optional_integer(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _optional_number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
