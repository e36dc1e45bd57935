"""Analyses programs with simple command lines. The table in `programs.toml` describes their options and operands."""

import importlib.resources
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from footplate.gate.shell.argument_parser import Arguments, matches_option, parse_arguments
from footplate.gate.shell.effect_types import FileWrite, ProgramEffects
from footplate.gate.shell.word_expansion import Word


class Operands(StrEnum):
    """How a program uses its operands."""

    NONE = "none"
    """They are texts, not files."""
    READ = "read"
    WRITE = "write"
    """They are written, created or removed."""
    COPY = "copy"
    """The last is written, the others are read."""
    MOVE = "move"
    """All are read and written."""
    CHANGE = "change"
    """The first is a mode or an owner, the others are written."""
    AFTER_FIRST = "after-first"
    """The first is a pattern or a program, the others are read."""
    SECOND = "second"
    """The first is read, the second is written."""
    MENTIONED = "mentioned"
    """They may be files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One entry of `programs.toml`."""

    operands: Operands = Operands.MENTIONED
    harmless: bool = False
    """Whether it only reads and prints, unless one of the options below is used."""
    runs: tuple[str, ...] = ()
    """Options that run a command, or read instructions from a file or another source."""
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    takes: str = ""
    takes_long: tuple[str, ...] = ()
    any_argument: bool = False
    """Whether no option is dangerous, so that an unknown argument is not dangerous either."""
    letters: bool = False
    """Whether options start with a letter: `-1` is then an operand, and may be the first one."""
    single: bool = False
    """Whether a word is one option, given by its first letter: `xxd -rc` is `xxd -r`."""
    odd: str = ""
    """A regular expression for operands with which it does more than `operands` says."""
    links: bool = False
    """Whether it creates links, after which paths refer to other files."""
    fine: tuple[str, ...] = ()
    """Harmless options that look like abbreviations of dangerous ones."""
    files_of_arguments: bool = False
    """Whether it replaces `@FILE` by the arguments in this file."""
    reports: bool = False
    """Whether it accepts `html:DIRECTORY` as a report to write."""
    freely: bool = False
    """Whether options may have one or two dashes, and are case-insensitive. The table has them in lower case, without
    dashes inside.
    """
    removes: tuple[str, ...] = ()
    """Options with which the operands are written, such as `sed -i`."""


def _load_programs() -> dict[str, Program]:
    text = importlib.resources.files(__package__ or "").joinpath("programs.toml").read_text(encoding="utf-8")
    programs: dict[str, Program] = {}
    for entry in tomllib.loads(text)["program"]:
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        names = fields.pop("names")
        fields["operands"] = Operands(fields.get("operands", Operands.MENTIONED))
        programs.update(dict.fromkeys(names, Program(**fields)))
    return programs


_REPORT_ARGUMENT: Final = re.compile(
    r"(?:--cov-report=)?(?:html|xml|json|lcov|annotate|markdown[a-z-]*):(.+)", re.DOTALL
)
PROGRAMS: Final = _load_programs()


def analyse_listed_program(name: str, words: Sequence[Word], effects: ProgramEffects) -> bool:
    """Add the effects of a program in the table. Returns False if it is not there."""
    program = PROGRAMS.get(name)
    if program is None:
        return False
    rest = [_normalise_option(word) for word in words[1:]] if program.freely else words[1:]
    arguments = parse_arguments(rest, takes=program.takes, takes_long=program.takes_long, single=program.single)
    for option, value in arguments.options:
        _add_option_effects(name, program, option, value, effects)
    if program.files_of_arguments and any(word.text.startswith("@") for word in arguments.operands):
        effects.add_concern(f"{name} reads its arguments from a file")
    if program.reports:
        found = [_REPORT_ARGUMENT.fullmatch(word.text) for word in words]
        effects.writes.extend(FileWrite(Word(each[1]), needs_edit_rule=True) for each in found if each is not None)
    if program.links:
        effects.add_concern("it creates a link, through which paths can refer to other files")
    risky = program.runs or program.writes or program.removes
    if arguments.is_ambiguous and not program.any_argument and (risky or not program.harmless):
        effects.add_concern("an argument is only known at run time", is_visible=not program.runs)
    if any(arguments.has(option) for option in program.removes):
        effects.writes.extend(FileWrite(word, needs_edit_rule=True) for word in arguments.operands)
    _add_operand_effects(program, arguments, effects)
    if program.harmless:
        _add_parsing_differences(name, program, words[1:], arguments, effects)
    effects.harmless = program.harmless and not effects.concerns and not effects.writes
    return True


def _normalise_option(word: Word) -> Word:
    option, equals, value = word.text.partition("=")
    name = option.lstrip("-")
    if not option.startswith("-") or len(name) == 0 or (len(name) == 1 and option[:2] != "--"):
        return word
    spelt = f"-{name}" if len(name) == 1 else f"--{name.lower().replace('-', '')}"
    return word._replace(text=f"{spelt}{equals}{value}")


def _add_parsing_differences(
    name: str, program: Program, words: Sequence[Word], arguments: Arguments, effects: ProgramEffects
) -> None:
    """Add the effects of programs that parse their arguments differently from `getopt_long`."""
    if any(word.text in program.runs for word in words):
        effects.add_concern(f"{name} may interpret an argument as an option that runs a program")
    if program.odd and any(re.fullmatch(program.odd, word.text, re.DOTALL) for word in arguments.operands):
        effects.add_concern(f"an argument changes what {name} does")
    if program.operands is Operands.SECOND:
        if arguments.has_late_options or any(word.globs for word in arguments.operands):
            effects.add_concern(f"{name} may write to its second file argument")
    else:
        effects.reads.extend(arguments.late_values)


def _add_option_effects(name: str, program: Program, option: str, value: Word | None, effects: ProgramEffects) -> None:
    def is_among(names: tuple[str, ...]) -> bool:
        if option.startswith("--"):
            return option not in program.fine and any(
                matches_option(option, full) or option.startswith(f"{full}.") for full in names
            )
        return option in names

    if is_among(program.runs):
        effects.add_concern(f"{name} {option} may run a program or read instructions from a file")
    if is_among(program.writes):
        effects.writes.append(FileWrite(value or Word("\0"), needs_edit_rule=True))
    if is_among(program.reads):
        effects.reads.append(value or Word("\0"))
    elif value is not None:
        effects.mentions.append(value)


def _add_operand_effects(program: Program, arguments: Arguments, effects: ProgramEffects) -> None:
    kind, operands = program.operands, arguments.operands
    if kind is Operands.READ:
        effects.reads.extend(word for word in operands if word.text != "-")
    elif kind is Operands.WRITE:
        effects.writes.extend(FileWrite(word, needs_edit_rule=False) for word in operands)
    elif kind is Operands.MOVE:
        effects.reads.extend(operands)
        effects.writes.extend(FileWrite(word, needs_edit_rule=False) for word in operands)
    elif kind is Operands.CHANGE:
        effects.writes.extend(FileWrite(word, needs_edit_rule=False) for word in operands[1:])
    elif kind is Operands.COPY:
        last = 0 if any(write.needs_edit_rule for write in effects.writes) else 1
        effects.reads.extend(operands[: len(operands) - last])
        effects.writes.extend(FileWrite(word, needs_edit_rule=False) for word in operands[len(operands) - last :])
    elif kind is Operands.AFTER_FIRST:
        pattern_given = arguments.has("-e", "-f", "--regexp", "--file", "--files") or (
            program.letters and any(not name[1:2].isalpha() for name, _ in arguments.options if name[:2] != "--")
        )
        effects.reads.extend(operands if pattern_given else operands[1:])
    elif kind is Operands.SECOND:
        effects.reads.extend(operands[:1])
        effects.writes.extend(FileWrite(word, needs_edit_rule=True) for word in operands[1:])
    elif kind is Operands.MENTIONED:
        effects.mentions.extend(operands)
