"""An agent's custom tools, by their own names and by those that the CLI tells its model. Pure.

The CLI knows them as the tools of one MCP server, which is none of the agent's.
"""

from typing import Final

from footplate.domain import mcp
from footplate.domain.agents import CustomTool, ResolvedConfig
from footplate.domain.events import Event
from footplate.domain.events import custom_tool_use as asked
from footplate.harness.claude.mapping import Call

_SERVER: Final = "custom"
_LONGEST: Final = 128
"""Letters of a name that a provider takes."""


class CustomTools:
    def __init__(self, config: ResolvedConfig) -> None:
        taken = {mcp.plain(server.name) for server in config.mcp_servers}
        self.server = _SERVER
        while self.server in taken:
            self.server += "_"
        self._prefix = mcp.model_name(self.server, "")
        self.listed = _listed(config.custom_tools, _LONGEST - len(self._prefix))
        """By the name that the CLI is told."""

    def own(self, name: str) -> str:
        """A model's name for a tool as the agent's; one that is no custom tool's is left as it is."""
        listed = name.removeprefix(self._prefix)
        return self.listed[listed].name if listed in self.listed else listed

    def has(self, name: str) -> bool:
        return self.had(name) and name.removeprefix(self._prefix) in self.listed

    def had(self, name: str) -> bool:
        """Perhaps before somebody changed the agent."""
        return name.startswith(self._prefix)

    def use(self, call: Call) -> Event:
        return asked(self.own(call.name), call.input, call_id=call.id)


def _listed(tools: tuple[CustomTool, ...], longest: int) -> dict[str, CustomTool]:
    """A name that is too long with the server's before it is cut, and told apart by a number."""
    listed = {tool.name: tool for tool in tools if len(tool.name) <= longest}
    number = 0
    for tool in (tool for tool in tools if len(tool.name) > longest):
        while (name := f"{tool.name[: longest - 6]}_{number}") in listed:
            number += 1
        listed[name] = tool
    return listed
