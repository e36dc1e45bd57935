"""A connection to a terminal that remembers the messages, and the output if it is small."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from bench.prove.figure import require
from footplate.client import AsyncFootplate
from footplate.client.steps import TerminalConnection
from footplate.stack.orphan_processes import wait_until

PATIENCE: Final = 240.0
_STOPPED: Final = "The worker stopped."
_PROMPT: Final = b"$ "


@dataclass(frozen=True, slots=True)
class Move:
    """The terminal was closed with its worker, and opened again by another one."""

    terminal_id: str
    seconds: float
    """From the end of the old shell to the prompt of the new one."""


class Viewer:
    def __init__(self, connection: TerminalConnection, *, keeps_output: bool) -> None:
        self.connection = connection
        self.output = bytearray()
        self.size = 0
        self.reasons: list[str] = []
        self.moves: list[Move] = []
        self._keeps_output = keeps_output
        self._moving_from: float | None = None
        self._reopened = ""

    async def receive(self) -> None:
        async for message in self.connection:
            if not isinstance(message, bytes):
                self._handle_message(message["type"], message.get("reason", ""), message.get("terminal_id", ""))
                continue
            self.size += len(message)
            if self._keeps_output:
                self.output += message
            if self._moving_from is not None and self._reopened and _PROMPT in message:
                self.moves.append(Move(self._reopened, time.monotonic() - self._moving_from))
                self._moving_from, self._reopened = None, ""

    def _handle_message(self, kind: str, reason: str, terminal_id: str) -> None:
        if kind == "closed":
            self.reasons.append(reason)
            self._moving_from = time.monotonic() if reason.startswith(_STOPPED) else None
        elif kind == "opened":
            self._reopened = terminal_id

    async def has_prompt(self) -> None:
        """Waits until the terminal is open again, if its worker was stopped."""

        async def is_open() -> bool:
            return self._moving_from is None

        require(holds=await wait_until(is_open, PATIENCE), otherwise="a terminal was not opened again")

    async def shows(self, text: bytes, count: int = 1) -> None:
        async def is_shown() -> bool:
            return self.output.count(text) >= count

        require(holds=await wait_until(is_shown, PATIENCE), otherwise=f"{text!r} is not shown: {self.output[-500:]!r}")


@asynccontextmanager
async def view_terminal(
    client: AsyncFootplate, session_id: str, *, write: bool = False, keeps_output: bool = True
) -> AsyncIterator[Viewer]:
    async with client.terminals.attach(session_id, write=write) as connection:
        viewer = Viewer(connection, keeps_output=keeps_output)
        receiving = asyncio.create_task(viewer.receive())
        try:
            yield viewer
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
