"""Finds all commands that are nested in a simple command, and collects their effects. Commands can be nested in
wrappers (`env`, `xargs`) and in shell scripts (`sh -c`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from footplate.gate.shell import command_extraction
from footplate.gate.shell.effect_analysis import analyse_program
from footplate.gate.shell.effect_types import Argv, Concern, FileWrite, ProgramEffects
from footplate.gate.shell.script_model import Assignment, SimpleCommand, Stdin
from footplate.gate.shell.word_expansion import UNKNOWN, Word

_MAX_DEPTH: Final = 6
_MAX_COMMANDS: Final = 100
_MAX_WORDS: Final = 100
_SAFE_VARIABLES: Final = frozenset({
    "NODE_ENV", "CI", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "COLUMNS", "LINES",
    "DEBUG", "VERBOSE",
    "RUST_LOG", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "GOOS", "GOARCH",
    "CGO_ENABLED",
    "GO111MODULE", "LOG_LEVEL", "ENVIRONMENT", "APP_ENV", "RAILS_ENV", "RACK_ENV", "DJANGO_DEBUG", "FLASK_ENV",
    "PORT", "HOST",
    "SEED", "QUICK",
})  # fmt: skip
_LOCAL_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_VISIBLE_FAULTS: Final = ("a substitution", "a brace expansion produces several words")


@dataclass(slots=True)
class CommandEffects:
    """The effects of a simple command, including those of all nested commands."""

    commands: list[Argv] = field(default_factory=list)
    """All commands that run. The first is the simple command itself."""
    possible_commands: list[Argv] = field(default_factory=list)
    """Commands that may run, if the arguments of a wrapper were parsed wrongly or an unknown program is a wrapper."""
    concerns: list[Concern] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    writes: list[FileWrite] = field(default_factory=list)
    mentions: list[Word] = field(default_factory=list)
    wrappers: list[str] = field(default_factory=list)
    """The names of the wrappers, for people."""
    harmless: bool = False
    new_directory: Word | None = None


def collect_effects(simple: SimpleCommand) -> CommandEffects:
    """Collect the effects of a simple command and of all commands nested in it."""
    effects = CommandEffects(
        concerns=[Concern(_describe_fault(fault), is_visible=fault in _VISIBLE_FAULTS) for fault in simple.faults]
    )
    _follow_command(simple.words, simple.stdin, simple.repeated, effects, offset=0, depth=0)
    effects.harmless = effects.harmless and not effects.concerns
    return effects


def find_assignment_concern(assignment: Assignment) -> str | None:
    """Return why an assignment may change the behaviour of programs, or None if it does not."""
    name = assignment.name
    if name in _SAFE_VARIABLES or name.startswith("LC_"):
        return None
    if not assignment.exported and _LOCAL_NAME.fullmatch(name) and not name.endswith("proxy"):
        return None
    return f"it sets {name}, which may change the behaviour of programs"


def _describe_fault(fault: str) -> str:
    return f"it contains {fault}" if fault == "a substitution" else fault


def _follow_command(
    argv: Argv,
    stdin: Stdin,
    repeated: bool,  # noqa: FBT001 - passed on by position
    effects: CommandEffects,
    *,
    offset: int,
    depth: int,
) -> None:
    if depth > _MAX_DEPTH or len(effects.commands) >= _MAX_COMMANDS:
        effects.concerns.append(Concern("it runs too many nested commands"))
        return
    effects.commands.append(argv)
    program_effects = analyse_program(argv, stdin, repeated=repeated)
    if program_effects.concerns:
        effects.concerns.extend(
            program_effects.concerns if offset == 0 else _shift_concerns(program_effects.concerns, offset)
        )
    effects.reads.extend(program_effects.reads)
    effects.writes.extend(program_effects.writes)
    effects.mentions.extend(program_effects.mentions)
    if depth == 0:
        effects.harmless, effects.new_directory = program_effects.harmless, program_effects.new_directory
    elif program_effects.new_directory is not None:
        effects.concerns.append(Concern("a nested command changes the directory"))
    _record_possible_commands(argv, program_effects, effects)
    for at, inner in program_effects.runs:
        if inner:
            _follow_command(inner, stdin, repeated, effects, offset=offset + at if offset >= 0 else -1, depth=depth + 1)
    for text in program_effects.scripts:
        _follow_script(text, effects, depth)


def _record_possible_commands(argv: Argv, program_effects: ProgramEffects, effects: CommandEffects) -> None:
    """Record the commands that may run if this program runs another one, or is unknown and may do so."""
    if program_effects.runs or program_effects.scripts:
        effects.wrappers.append(argv[0].text)
    elif not program_effects.is_unknown_program:
        return
    effects.possible_commands.extend([argv[at:] for at in range(1, min(len(argv), _MAX_WORDS))])
    if len(argv) > _MAX_WORDS:
        effects.concerns.append(Concern(f"it has more than {_MAX_WORDS} arguments"))


def _shift_concerns(concerns: Sequence[Concern], offset: int) -> list[Concern]:
    """Shift the word counts of concerns by the words before the command. A negative offset means that the command is in
    another text, so no word count applies.
    """
    return [
        each._replace(
            literal_words=each.literal_words + offset if each.literal_words is not None and offset > 0 else None
        )
        for each in concerns
    ]


def _follow_script(text: str, effects: CommandEffects, depth: int) -> None:
    if depth > _MAX_DEPTH or UNKNOWN in text:
        effects.concerns.append(Concern("it runs a script that is only known at run time"))
        return
    inner = command_extraction.parse_script(text)
    effects.concerns.extend(
        Concern(_describe_fault(fault), is_visible=fault in _VISIBLE_FAULTS) for fault in inner.faults
    )
    effects.concerns.extend(
        Concern(why) for each in inner.assignments if (why := find_assignment_concern(each)) is not None
    )
    for redirect in inner.redirects:
        if redirect.writes:
            effects.writes.append(FileWrite(redirect.target, needs_edit_rule=True))
        else:
            effects.reads.append(redirect.target)
    for simple in inner.commands:
        effects.concerns.extend(
            Concern(_describe_fault(fault), is_visible=fault in _VISIBLE_FAULTS) for fault in simple.faults
        )
        _follow_command(simple.words, simple.stdin, simple.repeated, effects, offset=-1, depth=depth + 1)
