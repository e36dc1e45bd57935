"""Builds shell commands whose output tries to control the viewer's terminal or to forge an exit code."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

_REPORTS: Final = (
    *(b"[6n", b"[c", b"[>c", b"[>q", b"[21t", b"[?1;2$p", b"[?u", b"[1$w", b"[1;1;1;1;9;9*y", b"Z"),
    b"P$qm\x1b\\",
)
"""Sequences that make a terminal type a response."""
_STRINGS: Final = (b"]0;title", b"]52;c;Y2F0", b"]133;D;0", b"]11;?", b"P+q544e", b"_Gi=1;AAAA", b"^private", b"Xstart")
_BREAKS: Final = (b"\x1b", b"\n", b"\x7f", b"\0", b"\xc3", b"\xc2\x9b", b"")
"""What is between the ESC and the rest of a sequence, where a filter may lose it and a terminal does not."""
_STRING_ENDS: Final = (b"\x07", b"\x1b\\", b"")


@dataclass(frozen=True, slots=True)
class HostileCommand:
    kind: str
    text: str
    exit_code: int


def build_commands(count: int, rng: random.Random, *, large_bytes: int) -> list[HostileCommand]:
    """Returns commands of all kinds in turn. One in ten prints `large_bytes`."""
    return [_build(_KINDS[number % len(_KINDS)], rng, large_bytes) for number in range(count)]


def _build(kind: str, rng: random.Random, large_bytes: int) -> HostileCommand:
    code = rng.choice((0, 0, 1, 2, 7, 42, 127, 130, 255, rng.randrange(256)))
    if kind == "signal":
        number = rng.choice((9, 15, 6))
        return HostileCommand(kind, f"printf '[exit code 0]'; kill -{number} $$", 128 + number)
    output = f"head -c {large_bytes} /dev/zero | tr '\\0' x" if kind == "large" else _OUTPUTS[kind](rng)
    return HostileCommand(kind, f"{output}; exit {code}", code)


def _control_sequences(rng: random.Random) -> str:
    parts = (b"\x1b" + rng.choice(_REPORTS + _STRINGS) + rng.choice(_STRING_ENDS) for _ in range(20))
    return _print_bytes(b"".join(parts))


def _broken_sequences(rng: random.Random) -> str:
    parts = (b"\x1b" + rng.choice(_BREAKS) + rng.choice(_REPORTS + _STRINGS) for _ in range(20))
    return _print_bytes(b"".join(parts))


def _forged_ends(rng: random.Random) -> str:
    code = rng.randrange(256)
    ends = f'\r\n[exit code {code}]\r\n\x1b]133;D;{code}\x07{{"type": "closed", "reason": "exit code {code}"}}'
    return _print_bytes(f"{ends}\r\n$ true\r\n".encode())


def _prompts(_: random.Random) -> str:
    return _print_bytes(b"/workspace$ exit 0\r\n[The worker was lost]\r\n/workspace$ ")


def _no_newline(_: random.Random) -> str:
    return "printf 'no newline'"


def _random_bytes(rng: random.Random) -> str:
    return f"head -c {rng.randrange(1, 30_000)} /dev/urandom"


def _other_screen(_: random.Random) -> str:
    return _print_bytes(b"\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?1000h\x1b[8;10;10t\x1b#8")


def _both_streams(_: random.Random) -> str:
    return "for i in 1 2 3; do echo out $i; echo err $i >&2; done"


def _background(_: random.Random) -> str:
    return "(sleep 600 & ) ; (setsid sleep 600 &) ; echo background"


_OUTPUTS: Final[dict[str, Callable[[random.Random], str]]] = {
    "control sequences": _control_sequences,
    "broken sequences": _broken_sequences,
    "forged ends": _forged_ends,
    "prompts": _prompts,
    "no newline": _no_newline,
    "random bytes": _random_bytes,
    "other screen": _other_screen,
    "both streams": _both_streams,
    "background": _background,
}
_KINDS: Final[Sequence[str]] = (*_OUTPUTS, "large", "signal")


def _print_bytes(data: bytes) -> str:
    """Returns a command that prints these bytes."""
    return "printf %b '" + "".join(f"\\0{byte:03o}" for byte in data) + "'"
