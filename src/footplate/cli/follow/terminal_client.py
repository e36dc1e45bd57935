"""Connects the user's own terminal to that of a session: shows its output, and sends what the user types.

The user's terminal is in raw mode meanwhile, so that the session's programs receive every key except the one that
detaches. If the connection breaks, the client connects again and shows the output so far.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from websockets.exceptions import ConnectionClosed

from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate, Unreachable
from footplate.client.steps import Step, TerminalConnection
from footplate.domain.ports.terminals import MAX_COLUMNS, MAX_ROWS

DETACH_KEY: Final = b"\x1d"
DETACH_KEY_NAME: Final = "Ctrl-]"
_INTERRUPT_KEY: Final = b"\x03"
_CLEAR_SCREEN: Final = b"\x1b[H\x1b[2J\x1b[3J"
_RESET_MODES: Final = (
    b"\x1b[?1;5;1000;1002;1003;1004;1005;1006;2004l\x1b[?7;25h\x1b[4l\x1b7\x1b[r\x1b8\x1b[m\x1b(B\x0f\x1b>"
)
"""Ends what a program may have set on the user's terminal, for example that the mouse sends keys."""
_OTHER_SCREEN: Final = b"\x1b[?1049"
_SEND_SECONDS: Final = 0.03
"""Pause between two messages: the server limits how many a client may send."""
_MAX_KEYS: Final = 16_000
_RECONNECT_SECONDS: Final = 1.0
_CHECK_SECONDS: Final = 0.25
_ENDING_CHECKS: Final = 40
_REVOKED: Final = 1008


def can_type() -> bool:
    """Whether the user can type into a session. Not on Windows, where asyncio cannot wait for terminal input."""
    return sys.platform != "win32" and sys.stdin.isatty() and sys.stdout.isatty()


async def follow_terminal(client: AsyncFootplate, session_id: str, step: Step | None, *, write: bool) -> int:
    """Shows the terminal until the user detaches, or until `step` has ended, if it is given."""
    async with _Keyboard.reading(enabled=can_type(), keeps_keys=write) as keyboard:
        return await _TerminalClient(client, session_id, step, keyboard, write=write).run()


class _Keyboard:
    """The keys of the user, and changes of the window's size."""

    def __init__(self, *, keeps_keys: bool) -> None:
        """`keeps_keys`: for a user who types. Of one who only watches, all keys but those that leave are dropped."""
        self._keeps_keys = keeps_keys
        self.is_detached = asyncio.Event()
        self.resized = asyncio.Event()
        self._typed = bytearray()
        self._has_keys = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def reading(cls, *, enabled: bool, keeps_keys: bool) -> "AsyncIterator[_Keyboard]":
        keyboard, loop = cls(keeps_keys=keeps_keys), asyncio.get_running_loop()
        if not enabled:
            yield keyboard
            return
        with _raw_mode():
            loop.add_reader(sys.stdin.fileno(), keyboard._receive)
            loop.add_signal_handler(signal.SIGWINCH, keyboard.resized.set)
            try:
                yield keyboard
            finally:
                loop.remove_reader(sys.stdin.fileno())
                loop.remove_signal_handler(signal.SIGWINCH)

    async def read(self) -> bytes:
        while not self._typed:
            self._has_keys.clear()
            await self._has_keys.wait()
        keys = bytes(self._typed[:_MAX_KEYS])
        del self._typed[:_MAX_KEYS]
        return keys

    def _receive(self) -> None:
        keys, detach, _ = os.read(sys.stdin.fileno(), _MAX_KEYS).partition(DETACH_KEY)
        if detach or not keys or (_INTERRUPT_KEY in keys and not self._keeps_keys):
            self.is_detached.set()
        if self._keeps_keys:
            self._typed += keys
            self._has_keys.set()


class _TerminalClient:
    def __init__(
        self, client: AsyncFootplate, session_id: str, step: Step | None, keyboard: _Keyboard, *, write: bool
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._step = step
        self._keyboard = keyboard
        self._write = write
        self._on_other_screen = False
        """Whether a full-screen program has switched to a screen of its own."""

    async def run(self) -> int:
        following = asyncio.create_task(self._follow())
        detached = asyncio.create_task(self._keyboard.is_detached.wait())
        try:
            await asyncio.wait({following, detached}, return_when=asyncio.FIRST_COMPLETED)
            return following.result() if following.done() else Exit.DETACHED
        finally:
            for task in (following, detached):
                task.cancel()
            await asyncio.gather(following, detached, return_exceptions=True)
            if sys.stdout.isatty():
                _show((_OTHER_SCREEN + b"l" if self._on_other_screen else b"") + _RESET_MODES)

    async def _follow(self) -> int:
        was_connected = False
        while True:
            try:
                async with self._client.terminals.attach(self._session_id, write=self._write) as connection:
                    if was_connected:
                        _show(_CLEAR_SCREEN)
                    was_connected = True
                    if await self._serve(connection):
                        return Exit.DONE
                    if connection.close_code == _REVOKED:
                        return Exit.FAILED
            except Unreachable:
                if not was_connected:
                    raise
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _serve(self, connection: TerminalConnection) -> bool:
        """Returns whether the step has ended. If not, the connection broke."""
        tasks = [asyncio.create_task(self._send_keys(connection)), asyncio.create_task(self._send_sizes(connection))]
        try:
            with contextlib.suppress(ConnectionClosed):
                async for message in connection:
                    if isinstance(message, bytes):
                        _, switched, rest = message.rpartition(_OTHER_SCREEN)
                        self._on_other_screen = rest.startswith(b"h") if switched else self._on_other_screen
                        _show(message)
                    elif await self._handle_message(connection, message):
                        return True
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return False

    async def _handle_message(self, connection: TerminalConnection, message: dict[str, Any]) -> bool:
        """Returns whether the step has ended."""
        if message["type"] == "opened" and self._write:
            await connection.resize(*_window_size())
        elif message["type"] == "error":
            terminal_io.print_error(message["error"]["message"], message["error"].get("help", ""))
        return message["type"] == "closed" and await self._has_ended()

    async def _has_ended(self) -> bool:
        """Whether the step has ended, or ends now: its turn still stores the files."""
        if self._step is None:
            return False
        for _ in range(_ENDING_CHECKS):
            step = await self._client.steps.retrieve(self._session_id, self._step.id)
            if step.state != "running":
                break
            await asyncio.sleep(_CHECK_SECONDS)
        return step.state not in {"pending", "running"}

    async def _send_keys(self, connection: TerminalConnection) -> None:
        while self._write:
            await connection.type_keys(await self._keyboard.read())
            await asyncio.sleep(_SEND_SECONDS)

    async def _send_sizes(self, connection: TerminalConnection) -> None:
        while self._write:
            await self._keyboard.resized.wait()
            self._keyboard.resized.clear()
            await connection.resize(*_window_size())
            await asyncio.sleep(_SEND_SECONDS)


def _window_size() -> tuple[int, int]:
    """Returns the columns and rows of the user's window, as far as the server accepts them."""
    size = shutil.get_terminal_size()
    return min(size.columns, MAX_COLUMNS), min(size.lines, MAX_ROWS)


def _show(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextmanager
def _raw_mode() -> Iterator[None]:
    import termios  # not available on Windows
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setraw(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
