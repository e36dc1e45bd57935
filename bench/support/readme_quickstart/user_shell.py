"""Runs shell commands for a new user: in an empty folder with its own home, optionally on a terminal.

Exported variables and the working directory carry over from one command to the next, as in one shell.
"""

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench.prove.figure import NotHeld, require

_PATIENCE: Final = 900.0
_STARTS_WITHIN: Final = 180.0
_ENDS_WITHIN: Final = 60.0
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_ESCAPE: Final = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]|\r")


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    appeared_at: float
    """When the awaited text appeared, by the monotonic clock."""
    code: int
    text: str


class UserShell:
    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._state = folder / ".shell-state"
        self._environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "TERM": "xterm-256color",
            **{f"XDG_{kind}_HOME": str(folder / "xdg" / kind.lower()) for kind in ("DATA", "CONFIG", "STATE", "CACHE")},
            **environment,
        }

    async def run(self, code: str, extra: Mapping[str, str] = _NOTHING) -> float:
        """Runs a command to its end and returns the seconds that it took. Raises if it fails."""
        started = time.monotonic()
        save_state = f'\n{{ export -p; echo "cd \\"$PWD\\""; }} > "{self._state}"\n'
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"set -euo pipefail\n{self._restore_state()}{code}{save_state}"),
            env={**self._environment, **extra},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(_PATIENCE):
            out, _ = await process.communicate()
        require(holds=process.returncode == 0, otherwise=f"{code}\nfailed: {out.decode(errors='replace')[-3000:]}")
        return time.monotonic() - started

    async def start(self, code: str, ready: str, extra: Mapping[str, str] = _NOTHING) -> asyncio.subprocess.Process:
        """Starts a command and waits until it has printed `ready`. Its output goes to a file."""
        log = self.folder / "served.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", f"{self._restore_state()}exec {code}"),
                env={**self._environment, **extra},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
            )
        deadline = time.monotonic() + _STARTS_WITHIN
        while ready.encode() not in await asyncio.to_thread(log.read_bytes):
            if process.returncode is not None or time.monotonic() > deadline:
                await stop_dev_server(process)
                raise NotHeld(f"{code.strip()} did not print {ready!r}: {log.read_text()[-3000:]}")
            await asyncio.sleep(0.02)
        return process

    async def run_on_terminal(
        self, code: str, awaited: str, extra: Mapping[str, str] = _NOTHING, *, kill_when_seen: bool = False
    ) -> TerminalOutput:
        """Runs a command on a terminal to its end, or kills it as soon as the awaited text appears."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"set -euo pipefail\n{self._restore_state()}{code}"),
            env={**self._environment, **extra},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        reader = _TerminalReader(ours, awaited.encode())
        try:
            async with asyncio.timeout(_PATIENCE):
                if kill_when_seen:
                    await reader.appeared.wait()
                    os.killpg(process.pid, signal.SIGKILL)
                ended = await process.wait()
        finally:
            reader.close()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        require(holds=reader.appeared_at is not None, otherwise=f"{awaited!r} never appeared: {reader.text}")
        return TerminalOutput(reader.appeared_at or 0.0, ended, reader.text)

    def _restore_state(self) -> str:
        return f'cd "{self.folder}"\n[ ! -f "{self._state}" ] || . "{self._state}"\n'


class _TerminalReader:
    """Reads a terminal's output and records when the awaited text appeared."""

    def __init__(self, file: int, awaited: bytes) -> None:
        self._file = file
        self._awaited = awaited
        self._written = b""
        self.appeared_at: float | None = None
        self.appeared = asyncio.Event()
        asyncio.get_running_loop().add_reader(file, self._read)

    @property
    def text(self) -> str:
        return _ESCAPE.sub(b"", self._written).decode(errors="replace")

    def _read(self) -> None:
        try:
            self._written += os.read(self._file, 65536)
        except OSError:  # on Linux: the other end of the terminal was closed
            asyncio.get_running_loop().remove_reader(self._file)
            self.appeared.set()
            return
        if self.appeared_at is None and self._awaited in self._written:
            self.appeared_at = time.monotonic()
            self.appeared.set()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._file)
        os.close(self._file)


async def stop_dev_server(process: asyncio.subprocess.Process) -> None:
    """Stops `footplate dev` with Ctrl-C. Raises unless it exits with code 0 in time."""
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(_ENDS_WITHIN):
            await process.wait()
    except TimeoutError:
        process.kill()
        raise NotHeld("`footplate dev` does not exit on Ctrl-C") from None
    require(holds=process.returncode == 0, otherwise=f"`footplate dev` exited with {process.returncode}")
