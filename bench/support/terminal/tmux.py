"""Runs commands on real terminals of any width, in a separate tmux, and reads their screens.

A pane stays open after its command has exited, so that its final screen can be read. This machine's environment and a
user's own tmux have no effect on it.
"""

import asyncio
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from bench.prove.figure import NotHeld
from footplate.stack.orphan_processes import wait_until

TERM: Final = "tmux-256color"
_ROWS: Final = 3000
"""Enough rows that nothing scrolls away."""
_PATIENCE: Final = 120.0
_EXIT_CODE_SCRIPT: Final = 'trap : INT; "$@"; echo $? > "$0.new"; mv "$0.new" "$0"'
"""A shell script that writes the command's exit code to a file: tmux may notice the exit only when its next child
exits.
"""
_SETTINGS: Final = """
set -g default-terminal tmux-256color
set -g remain-on-exit on
set -g remain-on-exit-format ''
set -g status off
set -g escape-time 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    width: int
    code: int
    lines: Sequence[str]
    """The visible lines, without empty ones at the end."""
    wrapped: int
    """The number of lines that the terminal had to wrap."""
    raw: str
    """The screen with its escape sequences for colours and weights."""
    column: int
    """The column of the cursor."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def collapsed_text(self) -> str:
        """The text with all white space collapsed, independent of line breaks."""
        return " ".join(self.text.split())


class Tmux:
    def __init__(self, directory: Path) -> None:
        self._program = shutil.which("tmux") or ""
        self._socket = directory / "tmux"
        self._settings = directory / "tmux.conf"
        self._directory = directory

    async def __aenter__(self) -> Self:
        if not self._program:
            raise NotHeld("tmux is not installed: the claim needs it for real terminals")
        self._settings.write_text(_SETTINGS)
        # A waiting pane keeps the tmux server and its settings alive between two commands.
        await self._start("keeper", ["cat"], 80)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tmux("kill-server")

    async def run_to_end(self, argv: Sequence[str], environment: Mapping[str, str], *, width: int) -> Screen:
        """Runs a command to its end on a terminal of this width and returns the final screen."""
        pane = await self.open_pane(argv, environment, width=width)
        try:
            return await pane.wait_for_exit()
        finally:
            await pane.close()

    async def open_pane(self, argv: Sequence[str], environment: Mapping[str, str], *, width: int) -> "Pane":
        name = f"look-{secrets.token_hex(4)}"
        variables = [f"{key}={value}" for key, value in {**environment, "TERM": TERM}.items()]
        exit_code_file = self._directory / f"{name}.code"
        await self._start(
            name, ["sh", "-c", _EXIT_CODE_SCRIPT, str(exit_code_file), "env", "-i", *variables, *argv], width
        )
        return Pane(self, name, width, exit_code_file)

    async def _start(self, name: str, argv: Sequence[str], width: int) -> None:
        size = ("-x", str(width), "-y", str(_ROWS))
        await self._tmux("new-session", "-d", "-s", name, "-c", str(self._directory), *size, "--", *argv)

    async def _tmux(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(self._program, "-S", str(self._socket), "-f", str(self._settings), "-u", *arguments),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self._directory)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode:
            raise NotHeld(f"tmux {arguments[0]} failed: {err.decode().strip()}")
        return out.decode()


class Pane:
    def __init__(self, tmux: Tmux, name: str, width: int, exit_code_file: Path) -> None:
        self._tmux = tmux
        self._exit_code_file = exit_code_file
        self._name = name
        self._width = width

    async def press_keys(self, *keys: str) -> None:
        """Types keys by their tmux names (`Tab`, `Enter`, `C-c`); anything else is typed literally."""
        await self._tmux._tmux("send-keys", "-t", self._name, *keys)

    async def wait_for_text(self, pattern: str, *, within: float = _PATIENCE) -> Screen:
        """Waits until the screen matches the pattern and returns it."""

        async def matches() -> bool:
            return re.search(pattern, (await self.capture()).text) is not None

        if not await wait_until(matches, within):
            raise NotHeld(f"{pattern!r} is not on the screen:\n{(await self.capture()).text}")
        return await self.capture()

    async def wait_for_exit(self) -> Screen:
        """Waits until all output is on the screen and the exit code is known, and returns the screen."""

        async def over() -> bool:
            return self._exit_code_file.is_file() and await self._state("pane_dead") == "1"

        if not await wait_until(over, _PATIENCE):
            raise NotHeld(
                f"a command on a terminal did not exit within {_PATIENCE:.0f} s:\n{(await self.capture()).text}"
            )
        return await self.capture()

    async def capture(self) -> Screen:
        lines = _trimmed(await self._capture())
        return Screen(
            width=self._width,
            code=int(self._exit_code_file.read_text()) if self._exit_code_file.is_file() else 0,
            lines=lines,
            wrapped=len(lines) - len(_trimmed(await self._capture("-J"))),
            raw=await self._capture("-e"),
            column=int(await self._state("cursor_x")),
        )

    async def close(self) -> None:
        await self._tmux._tmux("kill-session", "-t", self._name)

    async def _capture(self, *options: str) -> str:
        return await self._tmux._tmux("capture-pane", "-p", "-t", self._name, *options)

    async def _state(self, name: str) -> str:
        return (await self._tmux._tmux("display-message", "-p", "-t", self._name, f"#{{{name}}}")).strip()


def _trimmed(captured: str) -> list[str]:
    return [line.rstrip() for line in captured.rstrip().split("\n")]
