"""Interfaces of a session's terminal: the program that runs on it, and the streams between worker, API and people.

A session has one terminal. A turn opens it, and while the turn runs, people see its output and type. Output and keys
go through two streams that all API processes and workers can reach. The output of the last hours stays there, so a
person who returns sees it.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from footplate.domain.ports.harness import CommandResult

MAX_COLUMNS: Final = 500
MAX_ROWS: Final = 300


@dataclass(frozen=True, slots=True)
class TerminalSize:
    columns: int = 80
    rows: int = 24


class TerminalProcess(Protocol):
    """A shell or a command on a terminal of its own."""

    async def read(self) -> bytes:
        """Return the next piece of output; empty when no process can print any more."""

    async def write(self, data: bytes) -> None:
        """Type these keys. Has no effect after the end of the program."""

    def resize(self, size: TerminalSize) -> None: ...

    async def wait(self) -> int:
        """Return the exit code, as a shell reports it."""

    async def kill(self) -> None:
        """Kill the program and everything that it started."""

    def collect_result(self, exit_code: int | None, *, timed_out: bool = False) -> CommandResult:
        """Return the result with everything that was printed, as standard output."""

    def close(self) -> None:
        """Close the terminal. Safe to call again."""


@dataclass(frozen=True, slots=True)
class TerminalInput:
    """What a person sent to a terminal: keys, or the size of the window."""

    keys: bytes = b""
    size: TerminalSize | None = None


FrameKind = Literal["opened", "output", "resized", "closed"]


@dataclass(frozen=True, slots=True)
class TerminalFrame:
    """One entry of a terminal's output stream."""

    kind: FrameKind
    terminal_id: str
    data: bytes = b""
    """Output, or why the terminal was closed."""
    size: TerminalSize | None = None


class TerminalChannel(Protocol):
    """The worker's ends of the two streams, while a program runs on the terminal."""

    size: TerminalSize
    """The size that the last person's window had."""

    async def publish(self, data: bytes) -> None:
        """Show output to everyone who watches. Never raises: a program must not fail because its output is lost."""

    async def resize(self, size: TerminalSize) -> None:
        """Report the new size to everyone who watches."""

    async def receive(self) -> Sequence[TerminalInput]:
        """Wait for keys and sizes that were sent to this program, and to no earlier one."""

    async def close(self, reason: str) -> None:
        """Report that the program has ended. Keys that are sent later are dropped."""


class TerminalChannels(Protocol):
    async def open_channel(self, organisation: str, session_id: str, terminal_id: str) -> TerminalChannel: ...


class TerminalViews(Protocol):
    """The API's ends of the two streams."""

    def frames(self, organisation: str, session_id: str) -> AsyncIterator[TerminalFrame | None]:
        """Yield what the stream has, and then everything new. None: nothing new for a second."""

    async def send(self, organisation: str, session_id: str, terminal_id: str, sent: TerminalInput) -> None:
        """Send keys or a size to the program on the terminal. Raises `Unavailable`."""


@dataclass(frozen=True, slots=True)
class TerminalRecording:
    """What a shell on a session's terminal showed, in asciicast format."""

    id: str
    """The id of the shell's call in the log, and of the terminal in the messages to its viewers."""
    session_id: str
    size_bytes: int
    created_at: datetime


class TerminalRecordings(Protocol):
    """The recordings of sessions. They are stored when a shell has been closed."""

    async def list(self, organisation: str, session_id: str) -> Sequence[TerminalRecording]:
        """Return the recordings of a session, oldest first."""

    async def find(self, organisation: str, session_id: str, recording_id: str) -> TerminalRecording:
        """Return one of them. Raises `NotFound`."""

    def pieces(self, organisation: str, recording: TerminalRecording) -> AsyncIterator[bytes]: ...
