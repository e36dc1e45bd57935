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
class CommandEffects:
    """The effects of a command if it is run."""

    runs: list[list[str]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    has_unknown_parts: bool = False
    """Whether a part of the command is unknown before it runs: a rule with a star may then not allow it."""


@dataclass(frozen=True, slots=True)
class Rules:
    allow: tuple[str, ...]
    deny: tuple[str, ...]

    def permits(self, argv: list[str]) -> bool:
        """Evaluates the rules independently of the gate, by comparing argument lists."""
        return any(_matches(rule, argv) for rule in self.allow) and not any(_matches(rule, argv) for rule in self.deny)


def random_rules(rng: random.Random) -> Rules:
    def random_rule() -> str:
        program = rng.choice(RULE_PROGRAMS)
        arguments = [program, *(rng.choice(SUBCOMMANDS) for _ in range(rng.randint(0, 2)))]
        return f"Bash({' '.join(arguments)}{rng.choice(['', ' *', ':*', ' *'])})"

    allow = tuple(random_rule() for _ in range(rng.randint(1, 6)))
    return Rules(allow, tuple(random_rule() for _ in range(rng.randint(0, 2))))


def random_command(rng: random.Random, truth: CommandEffects, depth: int = 0) -> str:
    """Returns a random command line and adds its effects to `truth`."""
    if depth > 2 or rng.random() < 0.5:
        return _simple_command(rng, truth, depth)
    return rng.choice(_FORMS)(rng, truth, depth + 1)


def _matches(rule: str, argv: list[str]) -> bool:
    pattern = rule.removeprefix("Bash(").removesuffix(")")
    open_ended = pattern.endswith((" *", ":*"))
    arguments = pattern[:-2].split() if open_ended else pattern.split()
    return argv[: len(arguments)] == arguments and (open_ended or len(argv) == len(arguments))


def _simple_command(rng: random.Random, truth: CommandEffects, depth: int) -> str:
    argv = [rng.choice(PROGRAMS), *(rng.choice((*SUBCOMMANDS, "-v", "a b", "--x=y")) for _ in range(rng.randint(0, 3)))]
    truth.runs.append(argv)
    space = rng.choice(_SPACES)
    text = space.join(_respell(rng, argument) for argument in argv)
    if rng.random() < 0.2:
        target = rng.choice(FILES)
        truth.writes.append(target)
        text = f"{text} {rng.choice(['>', '>>', '2>', '&>', '>|'])}{rng.choice(['', ' '])}{target}"
        if rng.random() < 0.3:
            argv.append("x")
            text += " x"
    if rng.random() < 0.1 and depth < 3:
        truth.has_unknown_parts = True
        inner = random_command(rng, truth, depth + 1)
        argv.append("\0")
        text += rng.choice([f" $({inner}\n)", f' "$({inner}\n)"', f" <({inner}\n)"])
    return text


def _respell(rng: random.Random, argument: str) -> str:
    """Returns the argument in a random spelling that the shell reads as the same argument."""
    spelling = rng.randrange(8)
    if " " in argument or spelling == 0:
        return shlex.quote(argument) if spelling % 2 else '"' + argument + '"'
    if spelling == 1:
        return argument[:1] + '""' + argument[1:]
    if spelling == 2:
        return "\\" + argument if argument[0] not in "xv-" else argument
    if spelling == 3:
        return "$'" + "".join(f"\\x{ord(letter):02x}" for letter in argument) + "'"
    return argument


def _joined(rng: random.Random, truth: CommandEffects, depth: int) -> str:
    one, other = random_command(rng, truth, depth), random_command(rng, truth, depth)
    return one + rng.choice(["&&", " && ", " || ", ";", "; ", "\n", " | ", " & ", "|&"]) + other


def _grouped(rng: random.Random, truth: CommandEffects, depth: int) -> str:
    inner = random_command(rng, truth, depth)
    return rng.choice(_GROUPS).format(inner)


_GROUPS: Final = (
    "({}\n)", "{{ {}\n}}", "if {}\nthen :\nfi", "while {}\ndo break\ndone", "! {}", "for i in 1 2; do {}\ndone",
)  # fmt: skip
_WRAPPERS: Final = ("timeout 5", "env", "nice -n 3", "nohup", "env -u A", "command", "xargs", "stdbuf -oL")


def _wrapped(rng: random.Random, truth: CommandEffects, depth: int) -> str:
    """Returns a command in a wrapper. The inner command counts as run, but a rule for it does not cover the wrapper."""
    truth.has_unknown_parts = True
    inner = _simple_command(rng, truth, depth)
    return f"{rng.choice(_WRAPPERS)} {inner}"


def _command_text(rng: random.Random, truth: CommandEffects, depth: int) -> str:
    truth.has_unknown_parts = True
    inner = random_command(rng, truth, depth)
    return f"{rng.choice(['sh -c', 'bash -c', 'eval', 'bash -ec'])} {shlex.quote(inner)}"


def _here_document(rng: random.Random, truth: CommandEffects, depth: int) -> str:
    truth.has_unknown_parts = True
    inner = random_command(rng, truth, depth)
    return rng.choice([f"sh <<'E'\n{inner}\nE", f"bash <<< {shlex.quote(inner)}"])


_FORMS: Final[tuple[Callable[[random.Random, CommandEffects, int], str], ...]] = (
    _joined,
    _joined,
    _grouped,
    _wrapped,
    _command_text,
    _here_document,
)


def is_writable(path: str) -> bool:
    return path in _WRITABLE
