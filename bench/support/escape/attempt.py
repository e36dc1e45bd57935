"""One attempt: what it tries, how, and how an observer on the host sees that it succeeded."""

import string
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bench.support.escape.attempt_context import AttemptContext

CATEGORIES: Final = (
    "host files", "other sessions' trees", "environment", "/proc of others", "docker socket", "metadata addresses",
    "host loopback services", "abstract sockets", "device nodes", "mount", "ptrace", "keyrings", "setuid",
    "core patterns", "link races", "..", "fork bombs", "memory fill", "disk fill", "fd exhaustion",
    "signals to the worker",
)  # fmt: skip

PRELUDE: Final = """
import ctypes, errno, fcntl, os, sys, time
import _socket as socket
libc = ctypes.CDLL(None, use_errno=True)
def connect(family, address, kind=1, data=b"hello"):
    try:
        line = socket.socket(family, kind)
        line.settimeout(1)
        line.connect(address)
        line.send(data)
        time.sleep(0.1)
    except OSError as error:
        print(address, error)
"""
"""Uses only the parts of Python that a container's init process has."""


class Template(string.Template):
    """Substitutes `@{name}`, which has no meaning in a shell or in Python."""

    delimiter = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    name: str
    category: str
    tries: str
    """Completes the sentence `It …`."""
    shell: str = ""
    """A command for bash."""
    python: str = ""
    """A Python program that follows `PRELUDE`."""
    tool: "Callable[[AttemptContext], Awaitable[bytes]] | None" = None
    """Uses the worker's own file tools, and returns their output."""
    succeeded: "Callable[[AttemptContext], bool]"
    """Checked on the host, by its state and by secrets that only the host knew."""
    before: "Callable[[AttemptContext], None]" = field(default=lambda _: None)
    after: "Callable[[AttemptContext], None]" = field(default=lambda _: None)
    """Restores the machine, whatever happened."""
    watch: "Callable[[AttemptContext], int] | None" = None
    """Measured while it runs. `Scene.peak` has the highest value."""
    seconds: float = 15.0
    uncontrolled: str = ""
    """Why it is not tried without a boundary. If empty, it must succeed there, or it proves nothing."""
    possible: Callable[[], bool] = field(default=lambda: True)
    """Whether the host itself could do it on this machine."""
    pointless_as_owner: bool = False
    """Whether it means nothing in a directory that its owner named: the owner's files are the agent's, and the disk has
    no limit.
    """
    root_only: bool = False
    """Whether it succeeds only for root without a boundary."""


def leaks(*names: str) -> "Callable[[AttemptContext], bool]":
    """Succeeds if the output has one of the tokens that only these places on the host have."""
    return lambda scene: any(scene.host.token(name).encode() in scene.output for name in names)


def reaches(*names: str) -> "Callable[[AttemptContext], bool]":
    """Succeeds if a listener on the host received something from it."""
    return lambda scene: any(scene.has_received(name) for name in names)


def exceeds(bound: "Callable[[AttemptContext], int]") -> "Callable[[AttemptContext], bool]":
    return lambda scene: scene.peak > bound(scene)


def attempt_names(attempts: Sequence[Attempt]) -> list[str]:
    return [attempt.name for attempt in attempts]
