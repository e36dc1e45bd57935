"""Wire models of an agent's tools: the built-in toolset, toolsets of its MCP servers, and custom tools."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from footplate.api.wire.agent.mcp_servers import ServerName
from footplate.api.wire.request_base import UNSUPPORTED, Body, Text, Unsupported
from footplate.domain.agents import mcp_servers
from footplate.domain.agents.agents_and_config import BUILT_IN_TOOLS, CUSTOM_TOOL_TYPE, TOOLSET, WEB_TOOLS
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions.groups import SESSION_TOOLS, SPAWN_SESSIONS
from footplate.domain.sessions.questions import ASK_USER

MAX_TOOLS: Final = 256

ToolName = Literal["bash", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search"]


class Policy(Body):
    type: Literal["always_allow", "always_ask", "auto"]


def _refuse_auto_policy(policy: Policy | None) -> Policy | None:
    if policy is not None and policy.type == "auto":
        raise PydanticCustomError(
            UNSUPPORTED, "`auto` is not supported by this server; use `always_ask` or `always_allow`"
        )
    return policy


PermissionPolicy = Annotated[Policy | None, AfterValidator(_refuse_auto_policy)]


class ToolConfig(Body):
    name: ToolName
    type: ToolName | None = None
    enabled: bool | None = None
    permission_policy: PermissionPolicy = None
    allowed_domains: Unsupported = None
    blocked_domains: Unsupported = None
    max_content_tokens: Unsupported = None
    url_sources: Unsupported = None
    user_location: Unsupported = None


class DefaultToolConfig(Body):
    enabled: bool | None = None
    permission_policy: PermissionPolicy = None


def _check_configs(configs: list[ToolConfig] | None) -> list[ToolConfig] | None:
    seen: set[str] = set()
    for config in configs or []:
        if config.type not in {None, config.name}:
            raise ValueError(f"`type` {config.type!r} does not match `name` {config.name!r}")
        if config.name in seen:
            raise ValueError(f"{config.name!r} is configured twice")
        seen.add(config.name)
    return configs


class Toolset(Body):
    """The built-in tools. Tools that access the web are disabled unless they are enabled by name."""

    type: Literal["agent_toolset_20260401"]
    configs: Annotated[list[ToolConfig] | None, AfterValidator(_check_configs)] = None
    default_config: DefaultToolConfig | None = None
    ask_user: Annotated[
        bool | None, Field(description="Whether the agent can ask the user questions with the tool `ask_user`.")
    ] = None
    spawn_sessions: Annotated[
        bool | None,
        Field(
            description="Whether the agent can start child sessions with the tool `spawn_sessions`. It also gets the "
            "tools `wait_sessions` and `message_session`."
        ),
    ] = None

    def normalise(self) -> JsonObject:
        default = True if self.default_config is None else self.default_config.enabled is not False
        by_name: dict[str, ToolConfig] = {config.name: config for config in self.configs or []}
        configs: list[Json] = []
        for name in BUILT_IN_TOOLS:
            config = by_name.get(name)
            if name in WEB_TOOLS:
                configs.append(_normalise_config(name, config, enabled=bool(config and config.enabled)))
            elif config is not None:
                configs.append(
                    _normalise_config(name, config, enabled=default if config.enabled is None else config.enabled)
                )
        return {
            "type": TOOLSET,
            "configs": configs,
            "default_config": {"enabled": default, **_normalise_policy(self.default_config)},
            **({ASK_USER: True} if self.ask_user else {}),
            **({SPAWN_SESSIONS: True} if self.spawn_sessions else {}),
        }


def _normalise_config(name: str, config: ToolConfig | None, *, enabled: bool) -> JsonObject:
    return {"type": name, "name": name, "enabled": enabled, **_normalise_policy(config)}


def _normalise_policy(config: "ToolConfig | DefaultToolConfig | McpToolConfig | None") -> JsonObject:
    """Omits a policy that was not set: a default must not act as a rule."""
    if config is None or config.permission_policy is None:
        return {}
    return {"permission_policy": {"type": config.permission_policy.type}}


class SchemaHead(Body):
    """The parts of a tool's input schema that are validated. The rest of the JSON Schema is stored unchanged."""

    type: Literal["object"]
    properties: dict[str, JsonValue] | None = None
    required: list[str] | None = None


_schema_head: Final = TypeAdapter(SchemaHead)


def _check_input_schema(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        _schema_head.validate_python(schema, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg']}") from error
    return schema


def _check_name_prefix(name: str) -> str:
    if name.startswith(mcp_servers.PREFIX):
        raise ValueError(f"must not begin with {mcp_servers.PREFIX!r}, which is reserved for tools of MCP servers")
    return name


class CustomTool(Body):
    """A tool that the client runs. The session waits for its `user.custom_tool_result`."""

    type: Literal["custom"]
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$"), AfterValidator(_check_name_prefix)]
    description: Annotated[str, StringConstraints(max_length=10_000)]
    input_schema: Annotated[dict[str, JsonValue], AfterValidator(_check_input_schema)]

    def normalise(self) -> JsonObject:
        return {
            "type": CUSTOM_TOOL_TYPE,
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }


class McpToolConfig(Body):
    name: Annotated[Text, StringConstraints(min_length=1, max_length=128)]
    enabled: bool | None = None
    permission_policy: PermissionPolicy = None


def check_unique_names(configs: list[McpToolConfig] | None) -> list[McpToolConfig] | None:
    names = [config.name for config in configs or []]
    duplicates = {name for name in names if names.count(name) > 1}
    if duplicates:
        raise ValueError(f"{min(duplicates)!r} is configured twice")
    return configs


class McpToolset(Body):
    """Tools of one of the agent's MCP servers. By default each call requires approval."""

    type: Literal["mcp_toolset"]
    mcp_server_name: ServerName
    configs: Annotated[list[McpToolConfig] | None, Field(max_length=MAX_TOOLS), AfterValidator(check_unique_names)] = (
        None
    )
    default_config: DefaultToolConfig | None = None

    def normalise(self) -> JsonObject:
        return {
            "type": mcp_servers.TOOLSET,
            "mcp_server_name": self.mcp_server_name,
            **normalise_configs(self.configs, self.default_config),
        }


def normalise_configs(configs: list[McpToolConfig] | None, default_config: DefaultToolConfig | None) -> JsonObject:
    default = default_config is None or default_config.enabled is not False
    listed: list[Json] = [
        {
            "name": config.name,
            "enabled": default if config.enabled is None else config.enabled,
            **_normalise_policy(config),
        }
        for config in configs or []
    ]
    return {"configs": listed, "default_config": {"enabled": default, **_normalise_policy(default_config)}}


AnyTool: TypeAlias = Toolset | McpToolset | CustomTool
Tool = Annotated[AnyTool, Field(discriminator="type")]


def _check_tools(tools: list[Tool]) -> list[Tool]:
    if sum(isinstance(tool, Toolset) for tool in tools) > 1:
        raise ValueError("the built-in toolset can be listed only once")
    names: list[str] = [tool.name for tool in tools if isinstance(tool, CustomTool)]
    for toolset in (tool for tool in tools if isinstance(tool, Toolset)):
        optional = {ASK_USER: toolset.ask_user, **dict.fromkeys(SESSION_TOOLS, toolset.spawn_sessions)}
        names.extend(name for name in BUILT_IN_TOOLS if optional.get(name, True))
    servers = [tool.mcp_server_name for tool in tools if isinstance(tool, McpToolset)]
    if len(servers) > len({*servers}):
        raise ValueError("two toolsets name the same MCP server")
    duplicates = {name for name in names if names.count(name) > 1}
    if duplicates:
        raise ValueError(f"two tools are named {min(duplicates)!r}")
    return tools


Tools = Annotated[list[Tool], Field(max_length=MAX_TOOLS), AfterValidator(_check_tools)]


def normalise_tools(tools: Sequence[AnyTool] | None) -> list[Json]:
    return [tool.normalise() for tool in tools or ()]


def check_search_available(tools: Sequence[AnyTool] | None, *, available: bool, where: str = "") -> None:
    """Raises `InvalidRequest` if `web_search` is enabled and the server has no search provider."""
    for index, tool in enumerate(tools or ()):
        for config_index, config in enumerate((tool.configs or ()) if isinstance(tool, Toolset) else ()):
            if config.name == "web_search" and config.enabled and not available:
                field = f"{where}tools.{index}.configs.{config_index}.enabled"
                raise InvalidRequest(
                    f"{field}: this server has no search provider",
                    field=field,
                    help_text="Disable web_search, or ask the operator to set FOOTPLATE_SEARCH_PROVIDER.",
                )
