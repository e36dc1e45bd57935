"""A terminal for tests of the command line."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios

from tests.acceptance.cli.cli_cell import Cell

ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal:
    """Runs a program on a terminal of the given width and records its output."""

    def __init__(self, width: int) -> None:
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        self.written = b""

    async def run(self, cell: Cell, *arguments: str, **extra: str) -> int:
        self.process = await cell.spawn_on_terminal(self._theirs, *arguments, **extra)
        os.close(self._theirs)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._ours, self._read)
        try:
            async with asyncio.timeout(120):
                code = await self.process.wait()
            await asyncio.sleep(0.1)
        finally:
            loop.remove_reader(self._ours)
            os.close(self._ours)
        return code

    def _read(self) -> None:
        try:
            self.written += os.read(self._ours, 65536)
        except OSError:  # how Linux reports that the other end is closed
            asyncio.get_running_loop().remove_reader(self._ours)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    async def shows(self, text: str, times: int = 1) -> bool:
        return self.text.count(text) >= times

    @property
    def text(self) -> str:
        return self.written.decode()

    @property
    def lines(self) -> list[str]:
        """The lines on the screen at the end: of an overwritten line, the last version."""
        whole = ESCAPE.sub(lambda match: "\x00" if match[0] == "\x1b[2K" else "", self.text)
        return [line.rpartition("\x00")[2].strip("\r") for line in whole.split("\n")]
