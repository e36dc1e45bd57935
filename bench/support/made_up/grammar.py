"""Generates commands from known parts, written in many ways.

The generator knows what each command runs and writes, so it is an oracle that shares no code with the gate's parser.
"""

import random
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

PROGRAMS: Final = ("aa", "bb", "cc", "dd1", "ee")
SUBCOMMANDS: Final = ("run", "test", "build", "x")
RULE_PROGRAMS: Final = (*PROGRAMS, "timeout", "env", "sh", "bash", "xargs")
FILES: Final = ("src/a", "src/b", "c", "../d", "/etc/e", "src/../f", "/dev/null")
_WRITABLE: Final = ("src/a", "src/b", "/dev/null")
_SPACES: Final = (" ", "  ", "\t", " \\\n ")


@dataclass(slots=True)
class Truth:
    """The effects of a command if it is run."""

    runs: list[list[str]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    dark: bool = False
    """Whether a part of the command is unknown before it runs: a rule with a star may then not allow it."""


@dataclass(frozen=True, slots=True)
class Rules:
    allow: tuple[str, ...]
    deny: tuple[str, ...]

    def permits(self, argv: list[str]) -> bool:
        """Evaluates the rules independently of the gate, by comparing argument lists."""
        return any(_fits(rule, argv) for rule in self.allow) and not any(_fits(rule, argv) for rule in self.deny)


def rules(rng: random.Random) -> Rules:
    def one() -> str:
        program = rng.choice(RULE_PROGRAMS)
        words = [program, *(rng.choice(SUBCOMMANDS) for _ in range(rng.randint(0, 2)))]
        return f"Bash({' '.join(words)}{rng.choice(['', ' *', ':*', ' *'])})"

    allow = tuple(one() for _ in range(rng.randint(1, 6)))
    return Rules(allow, tuple(one() for _ in range(rng.randint(0, 2))))


def command(rng: random.Random, truth: Truth, depth: int = 0) -> str:
    """Returns a random command line and adds its effects to `truth`."""
    if depth > 2 or rng.random() < 0.5:
        return _simple(rng, truth, depth)
    return rng.choice(_FORMS)(rng, truth, depth + 1)


def _fits(rule: str, argv: list[str]) -> bool:
    said = rule.removeprefix("Bash(").removesuffix(")")
    open_ended = said.endswith((" *", ":*"))
    words = said[:-2].split() if open_ended else said.split()
    return argv[: len(words)] == words and (open_ended or len(argv) == len(words))


def _simple(rng: random.Random, truth: Truth, depth: int) -> str:
    argv = [rng.choice(PROGRAMS), *(rng.choice((*SUBCOMMANDS, "-v", "a b", "--x=y")) for _ in range(rng.randint(0, 3)))]
    truth.runs.append(argv)
    space = rng.choice(_SPACES)
    text = space.join(_spelled(rng, word) for word in argv)
    if rng.random() < 0.2:
        target = rng.choice(FILES)
        truth.writes.append(target)
        text = f"{text} {rng.choice(['>', '>>', '2>', '&>', '>|'])}{rng.choice(['', ' '])}{target}"
        if rng.random() < 0.3:
            argv.append("x")
            text += " x"
    if rng.random() < 0.1 and depth < 3:
        truth.dark = True
        inner = command(rng, truth, depth + 1)
        argv.append("\0")
        text += rng.choice([f" $({inner}\n)", f' "$({inner}\n)"', f" <({inner}\n)"])
    return text


def _spelled(rng: random.Random, word: str) -> str:
    """Returns the argument in a random spelling that the shell reads as the same argument."""
    way = rng.randrange(8)
    if " " in word or way == 0:
        return shlex.quote(word) if way % 2 else '"' + word + '"'
    if way == 1:
        return word[:1] + '""' + word[1:]
    if way == 2:
        return "\\" + word if word[0] not in "xv-" else word
    if way == 3:
        return "$'" + "".join(f"\\x{ord(letter):02x}" for letter in word) + "'"
    return word


def _joined(rng: random.Random, truth: Truth, depth: int) -> str:
    one, other = command(rng, truth, depth), command(rng, truth, depth)
    return one + rng.choice(["&&", " && ", " || ", ";", "; ", "\n", " | ", " & ", "|&"]) + other


def _grouped(rng: random.Random, truth: Truth, depth: int) -> str:
    inner = command(rng, truth, depth)
    return rng.choice(_GROUPS).format(inner)


_GROUPS: Final = (
    "({}\n)", "{{ {}\n}}", "if {}\nthen :\nfi", "while {}\ndo break\ndone", "! {}", "for i in 1 2; do {}\ndone",
)  # fmt: skip
_WRAPPERS: Final = ("timeout 5", "env", "nice -n 3", "nohup", "env -u A", "command", "xargs", "stdbuf -oL")


def _wrapped(rng: random.Random, truth: Truth, depth: int) -> str:
    """Returns a command in a wrapper. The inner command counts as run, but a rule for it does not cover the wrapper."""
    truth.dark = True
    inner = _simple(rng, truth, depth)
    return f"{rng.choice(_WRAPPERS)} {inner}"


def _texts(rng: random.Random, truth: Truth, depth: int) -> str:
    truth.dark = True
    inner = command(rng, truth, depth)
    return f"{rng.choice(['sh -c', 'bash -c', 'eval', 'bash -ec'])} {shlex.quote(inner)}"


def _here(rng: random.Random, truth: Truth, depth: int) -> str:
    truth.dark = True
    inner = command(rng, truth, depth)
    return rng.choice([f"sh <<'E'\n{inner}\nE", f"bash <<< {shlex.quote(inner)}"])


_FORMS: Final[tuple[Callable[[random.Random, Truth, int], str], ...]] = (
    _joined,
    _joined,
    _grouped,
    _wrapped,
    _texts,
    _here,
)


def writable(path: str) -> bool:
    return path in _WRITABLE
