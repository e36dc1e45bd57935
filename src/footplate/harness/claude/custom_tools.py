"""Maps the names of an agent's custom tools to the names that the CLI shows to the model, and back.

The CLI sees the custom tools as the tools of one MCP server, whose name differs from the agent's own MCP servers.
"""

from typing import Final

from footplate.domain import mcp
from footplate.domain.agents import CustomTool, ResolvedConfig
from footplate.domain.events import Event
from footplate.domain.events import custom_tool_use as asked
from footplate.harness.claude.mapping import Call

_SERVER: Final = "custom"
_LONGEST: Final = 128
"""The maximum length of a tool name at the provider."""


class CustomTools:
    def __init__(self, config: ResolvedConfig) -> None:
        used_names = {mcp.plain(server.name) for server in config.mcp_servers}
        self.server = _SERVER
        while self.server in used_names:
            self.server += "_"
        self._prefix = mcp.model_name(self.server, "")
        self.listed = _listed(config.custom_tools, _LONGEST - len(self._prefix))
        """By the name that the CLI sees."""

    def own(self, name: str) -> str:
        """The agent's name of a tool, from the model's name. Names of other tools are returned unchanged."""
        listed = name.removeprefix(self._prefix)
        return self.listed[listed].name if listed in self.listed else listed

    def has(self, name: str) -> bool:
        return self.had(name) and name.removeprefix(self._prefix) in self.listed

    def had(self, name: str) -> bool:
        """Whether the name is a custom tool's, perhaps of an earlier version of the agent."""
        return name.startswith(self._prefix)

    def use(self, call: Call) -> Event:
        return asked(self.own(call.name), call.input, call_id=call.id)


def _listed(tools: tuple[CustomTool, ...], longest: int) -> dict[str, CustomTool]:
    """The tools by the name that the CLI sees. Names that are too long with the prefix are cut and numbered."""
    listed = {tool.name: tool for tool in tools if len(tool.name) <= longest}
    number = 0
    for tool in (tool for tool in tools if len(tool.name) > longest):
        while (name := f"{tool.name[: longest - 6]}_{number}") in listed:
            number += 1
        listed[name] = tool
    return listed
