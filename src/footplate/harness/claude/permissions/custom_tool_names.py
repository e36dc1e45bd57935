"""Maps the names of an agent's custom tools to the names that the Claude Code CLI shows to the model, and back.

The CLI sees the custom tools, and the tools for child sessions, as tools of an MCP server. The name of this server
differs from the names of the agent's own MCP servers.
"""

from typing import Final

from footplate.domain.agents import mcp_servers
from footplate.domain.agents.agents_and_config import CustomTool, ResolvedConfig
from footplate.domain.json import JsonObject
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.events import custom_tool_use as asked
from footplate.harness.claude.transcripts.sdk_message_parser import Call
from footplate.harness.tool_calls import session_tools

_SERVER: Final = "custom"
_MAX_NAME_LENGTH: Final = 128
"""The maximum length of a tool name at the provider."""


class CustomTools:
    def __init__(self, config: ResolvedConfig) -> None:
        used_names = {mcp_servers.sanitize_name(server.name) for server in config.mcp_servers}
        self.server = _SERVER
        while self.server in used_names:
            self.server += "_"
        self._prefix = mcp_servers.model_tool_name(self.server, "")
        self._session_tools = session_tools.custom_tools(config.tools)
        self.by_cli_name = _by_cli_name(
            (*config.custom_tools, *self._session_tools), _MAX_NAME_LENGTH - len(self._prefix)
        )
        """By the name that the CLI sees."""

    def own_name(self, name: str) -> str:
        """The agent's name of a tool, from the model's name. Names of other tools are returned unchanged."""
        listed = name.removeprefix(self._prefix)
        return self.by_cli_name[listed].name if listed in self.by_cli_name else listed

    def is_custom(self, name: str) -> bool:
        return self.may_be_custom(name) and name.removeprefix(self._prefix) in self.by_cli_name

    def session_tool(self, name: str) -> str | None:
        """The own name of a tool for child sessions, from the model's name. None for other tools."""
        own_name = self.own_name(name) if self.may_be_custom(name) else None
        return own_name if any(tool.name == own_name for tool in self._session_tools) else None

    def may_be_custom(self, name: str) -> bool:
        """Whether the name is a custom tool's, perhaps of an earlier version of the agent."""
        return name.startswith(self._prefix)

    def use_event(self, call: Call, context: JsonObject) -> Event:
        return asked(self.own_name(call.name), call.input, call_id=call.id, context=context)


def _by_cli_name(tools: tuple[CustomTool, ...], max_length: int) -> dict[str, CustomTool]:
    """The tools by the name that the CLI sees. Names that are too long with the prefix are cut and numbered."""
    listed = {tool.name: tool for tool in tools if len(tool.name) <= max_length}
    number = 0
    for tool in (tool for tool in tools if len(tool.name) > max_length):
        while (name := f"{tool.name[: max_length - 6]}_{number}") in listed:
            number += 1
        listed[name] = tool
    return listed
