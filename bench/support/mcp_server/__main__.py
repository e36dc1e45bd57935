"""Serves an MCP server over streamable HTTP on loopback: `python -m bench.support.mcp_server FILE`.

It prints its URL and exits when its stdin closes. The tool `note` appends a line to FILE, so its effects can be
counted.
"""

import asyncio
import base64
import json
import socket
import sys
import threading
from pathlib import Path
from typing import Final

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

_PIXEL: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def create_server(file: Path) -> MCPServer:
    made = MCPServer("notes", log_level="ERROR")

    @made.tool()
    async def note(line: str, seconds: float = 0.0) -> str:
        """Write a line down, and take some time for it."""
        with file.open("a") as lines:
            lines.write(f"{line}\n")
        await asyncio.sleep(seconds)
        return f"Noted: {line}"

    @made.tool()
    def picture() -> Image:
        """Show a picture."""
        return Image(data=_PIXEL, format="png")

    @made.tool()
    def fail() -> str:
        """Do not work."""
        raise ToolError("it never works")

    @made.tool(name="odd.name")
    def odd() -> str:
        """Has a name that no provider takes."""
        return "odd"

    @made.tool()
    def large(characters: int) -> str:
        """Say very much."""
        return "x" * characters

    @made.tool()
    def read_meta(context: Context) -> str:
        """Return the fields of `_meta` that are Footplate's."""
        meta = context.request_context.meta or {}
        return json.dumps({key: value for key, value in meta.items() if key.startswith("footplate/")})

    return made


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_server(Path(sys.argv[1])).streamable_http_app()
    serving = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))

    def until_stdin_ends() -> None:
        sys.stdin.read()
        serving.should_exit = True

    threading.Thread(target=until_stdin_ends, daemon=True).start()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    serving.run(sockets=[listener])


main()
