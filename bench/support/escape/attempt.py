"""One attempt: what it tries, how, and how somebody outside sees that it worked. Pure."""

import string
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bench.support.escape.scene import Scene

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
"""With no more of Python than the first process of a container brings along."""


class Template(string.Template):
    """`@{name}`: neither a shell nor Python gives that a meaning."""

    delimiter = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    name: str
    category: str
    tries: str
    """In words that go on a sentence: `It …`."""
    shell: str = ""
    """For bash."""
    python: str = ""
    """Behind `PRELUDE`."""
    tool: "Callable[[Scene], Awaitable[bytes]] | None" = None
    """Through the worker's own file tools; what they answered."""
    succeeded: "Callable[[Scene], bool]"
    """Judged on the host, by what is there and by what only the host knew."""
    before: "Callable[[Scene], None]" = field(default=lambda _: None)
    after: "Callable[[Scene], None]" = field(default=lambda _: None)
    """Puts the machine in order again, whatever happened."""
    watch: "Callable[[Scene], int] | None" = None
    """Looked at while it runs; the highest is kept as `Scene.peak`."""
    seconds: float = 15.0
    uncontrolled: str = ""
    """Why it is not tried without a boundary. Empty: there it must succeed, or it proves nothing."""
    possible: Callable[[], bool] = field(default=lambda: True)
    """Whether the host itself could do it here."""
    pointless_as_owner: bool = False
    """In a tree that its owner named, what is the owner's is the agent's, and there is no limit on the disk."""
    root_only: bool = False
    """Without a boundary it succeeds only for root."""


def leaks(*names: str) -> "Callable[[Scene], bool]":
    """It printed one of the words that only these places on the host hold."""
    return lambda scene: any(scene.ground.token(name).encode() in scene.said for name in names)


def reaches(*names: str) -> "Callable[[Scene], bool]":
    """A listener on the host heard from it."""
    return lambda scene: any(scene.heard(name) for name in names)


def exceeds(bound: "Callable[[Scene], int]") -> "Callable[[Scene], bool]":
    return lambda scene: scene.peak > bound(scene)


def names(attempts: Sequence[Attempt]) -> list[str]:
    return [attempt.name for attempt in attempts]
