"""The MCP servers and server-side toolsets of an agent, their enabled tools, and the tool names that a model sees.

A server-side toolset is a set of Python functions that an installed package offers. It is handled like an MCP server
whose tools the worker runs itself: names, rules, approvals and events are the same.

The name that a model sees joins the names of the server and the tool, and uses only characters that providers accept.
Events contain the two names in separate fields, as in the reference API (Anthropic's managed agents).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from footplate.domain.json import Json, JsonObject, as_object, as_objects

TOOLSET: Final = "mcp_toolset"
SERVER_TOOLSETS: Final = "server_toolsets"
"""The field of an agent definition that lists its server-side toolsets."""
PREFIX: Final = "mcp__"
_UNSUPPORTED_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_-]")

ToolRef: TypeAlias = tuple[str, str]
"""The original names of a server and a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    name: str
    url: str
    enabled: bool = True
    """Whether tools that `tools` does not list are enabled."""
    tools: Mapping[str, bool] = field(default_factory=dict)
    is_server_toolset: bool = False
    """Whether its tools are functions of an installed package, which the worker runs. There is no URL then."""
    settings: JsonObject = field(default_factory=dict)
    """The agent's settings for a server-side toolset. Its functions receive them."""

    def offers(self, tool: str) -> bool:
        return self.tools.get(tool, self.enabled)


def sanitize_name(name: str) -> str:
    return _UNSUPPORTED_CHARACTERS.sub("_", name)


def model_tool_name(server: str, tool: str) -> str:
    return f"{PREFIX}{sanitize_name(server)}__{sanitize_name(tool)}"


class ToolNames:
    """Maps a model's names to servers and tools. The name of an unlisted tool is split by the known servers."""

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self._servers = sorted((server.name for server in servers), key=lambda name: -len(sanitize_name(name)))
        self._known: dict[str, ToolRef] = {}

    def add(self, listed: Iterable[tuple[str, ToolRef]]) -> None:
        self._known.update(listed)

    def resolve(self, name: str) -> ToolRef | None:
        """Return the server and the tool of a model's name. None: it is not a tool of these servers."""
        if name in self._known:
            return self._known[name]
        for server in self._servers:
            start = model_tool_name(server, "")
            if name.startswith(start):
                return server, name.removeprefix(start)
        return None


def read_agent_servers(servers: Json, tools: Json, server_toolsets: Json = None) -> tuple[McpServer, ...]:
    """Read the servers and server-side toolsets of an agent definition. A server without a toolset offers no tools and
    is not contacted.
    """
    toolsets = {str(tool.get("mcp_server_name")): tool for tool in as_objects(tools) if tool.get("type") == TOOLSET}
    remote = [
        _build_server(server, toolsets[str(server.get("name"))])
        for server in as_objects(servers)
        if str(server.get("name")) in toolsets
    ]
    installed = [
        replace(_build_server(toolset, toolset), is_server_toolset=True, settings=as_object(toolset.get("settings")))
        for toolset in as_objects(server_toolsets)
    ]
    return (*remote, *installed)


def load_servers(stored: Json) -> tuple[McpServer, ...]:
    """Load the servers stored with a turn."""
    return tuple(
        McpServer(
            name=str(server.get("name")),
            url=str(server.get("url")),
            enabled=bool(server.get("enabled")),
            tools={name: bool(on) for name, on in as_object(server.get("tools")).items()},
            is_server_toolset=bool(server.get("is_server_toolset")),
            settings=as_object(server.get("settings")),
        )
        for server in as_objects(stored)
    )


def _build_server(server: JsonObject, toolset: JsonObject) -> McpServer:
    default = bool(as_object(toolset.get("default_config")).get("enabled", True))
    return McpServer(
        name=str(server.get("name")),
        url=str(server.get("url") or ""),
        enabled=default,
        tools={
            str(config.get("name")): bool(config.get("enabled", default))
            for config in as_objects(toolset.get("configs"))
        },
    )
