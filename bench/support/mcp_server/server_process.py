"""Starts the MCP server's process for a claim or a test, and reads the lines that it noted."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

NAME: Final = "notes"
ALLOW: Final = {"type": "always_allow"}


class McpProcess:
    """The MCP server's process. It exits with the process that started it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "bench.support.mcp_server", str(self._file)]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().strip()
        if not self.url:
            raise RuntimeError(f"the MCP server ended with {self._process.wait()} before it was ready")

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.kill)

    def read_notes(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def delete_notes(self) -> None:
        self._file.unlink(missing_ok=True)

    @property
    def agent_fields(self) -> dict[str, Any]:
        """The agent fields that let an agent use this server."""
        return {
            "mcp_servers": [{"type": "url", "name": NAME, "url": self.url}],
            "tools": [
                {"type": "agent_toolset_20260401"},
                {"type": "mcp_toolset", "mcp_server_name": NAME, "default_config": {"permission_policy": ALLOW}},
            ],
        }
