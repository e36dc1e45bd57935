"""Exposes the agent's custom tools to the CLI as an in-process SDK server, which asks the client to run them."""

from collections.abc import Callable
from typing import Any, Final

import claude_agent_sdk as sdk
from mcp import types

from footplate.harness.claude.bridge import REFUSED, served
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.recorder import Recorder

_ASKED: Final = "This call is waiting for the client's result."


def configs(tools: CustomTools, recorder: Callable[[], Recorder]) -> dict[str, sdk.McpSdkServerConfig]:
    """The server's SDK configuration. `recorder`: returns the recorder of the CLI's current turn."""
    listed = [
        types.Tool(name=name, description=tool.description, input_schema=tool.input_schema)
        for name, tool in tools.listed.items()
    ]

    async def ask(call_id: str, name: str, _arguments: dict[str, Any]) -> types.CallToolResult:
        serving = recorder()
        was_asked = await serving.asking.ask(call_id, name, serving)
        text = types.TextContent(text=_ASKED if was_asked else REFUSED)
        return types.CallToolResult(content=[text], is_error=not was_asked)

    return {tools.server: served(tools.server, listed, ask)}
