"""Follows a simple command to all commands nested in it, through wrappers (`env`, `xargs`) and shell scripts (`sh -c`),
and collects their effects.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from footplate.gate.shell import script
from footplate.gate.shell.analysis import analyse
from footplate.gate.shell.deeds import Argv, Concern, Deeds, Write
from footplate.gate.shell.parts import Assignment, Simple, Stdin
from footplate.gate.shell.words import UNKNOWN, Word

_DEEPEST: Final = 6
_MOST: Final = 100
_MOST_WORDS: Final = 100
_SAFE: Final = frozenset({
    "NODE_ENV", "CI", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "COLUMNS", "LINES",
    "DEBUG", "VERBOSE",
    "RUST_LOG", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "GOOS", "GOARCH",
    "CGO_ENABLED",
    "GO111MODULE", "LOG_LEVEL", "ENVIRONMENT", "APP_ENV", "RAILS_ENV", "RACK_ENV", "DJANGO_DEBUG", "FLASK_ENV",
    "PORT", "HOST",
    "SEED", "QUICK",
})  # fmt: skip
_LOCAL: Final = re.compile(r"[a-z][a-z0-9_]*")
_SEEN: Final = ("a substitution", "a brace expansion produces several words")


@dataclass(slots=True)
class Reach:
    """The effects of a simple command, including those of all nested commands."""

    forms: list[Argv] = field(default_factory=list)
    """All commands that run. The first is the simple command itself."""
    maybe: list[Argv] = field(default_factory=list)
    """Commands that may run, if the arguments of a wrapper were parsed wrongly or an unknown program is a wrapper."""
    concerns: list[Concern] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    mentions: list[Word] = field(default_factory=list)
    via: list[str] = field(default_factory=list)
    """The names of the wrappers, for people."""
    harmless: bool = False
    moves: Word | None = None


def reach(simple: Simple) -> Reach:
    """Collect the effects of a simple command and of all commands nested in it."""
    found = Reach(concerns=[Concern(_said(fault), seen=fault in _SEEN) for fault in simple.faults])
    _follow(simple.words, simple.stdin, simple.repeated, found, offset=0, depth=0)
    found.harmless = found.harmless and not found.concerns
    return found


def sets(assignment: Assignment) -> str | None:
    """Return why an assignment may change the behaviour of programs, or None if it does not."""
    name = assignment.name
    if name in _SAFE or name.startswith("LC_"):
        return None
    if not assignment.exported and _LOCAL.fullmatch(name) and not name.endswith("proxy"):
        return None
    return f"it sets {name}, which may change the behaviour of programs"


def _said(fault: str) -> str:
    return f"it contains {fault}" if fault == "a substitution" else fault


def _follow(argv: Argv, stdin: Stdin, repeated: bool, found: Reach, *, offset: int, depth: int) -> None:  # noqa: FBT001
    if depth > _DEEPEST or len(found.forms) >= _MOST:
        found.concerns.append(Concern("it runs too many nested commands"))
        return
    found.forms.append(argv)
    deeds = analyse(argv, stdin, repeated=repeated)
    if deeds.concerns:
        found.concerns.extend(deeds.concerns if offset == 0 else _moved(deeds.concerns, offset))
    found.reads.extend(deeds.reads)
    found.writes.extend(deeds.writes)
    found.mentions.extend(deeds.mentions)
    if depth == 0:
        found.harmless, found.moves = deeds.harmless, deeds.moves
    elif deeds.moves is not None:
        found.concerns.append(Concern("a nested command changes the directory"))
    _take_note(argv, deeds, found)
    for at, inner in deeds.runs:
        if inner:
            _follow(inner, stdin, repeated, found, offset=offset + at if offset >= 0 else -1, depth=depth + 1)
    for text in deeds.scripts:
        _script(text, found, depth)


def _take_note(argv: Argv, deeds: Deeds, found: Reach) -> None:
    """Record the commands that may run if this program runs another one, or is unknown and may do so."""
    if deeds.runs or deeds.scripts:
        found.via.append(argv[0].text)
    elif not deeds.unknown:
        return
    found.maybe.extend([argv[at:] for at in range(1, min(len(argv), _MOST_WORDS))])
    if len(argv) > _MOST_WORDS:
        found.concerns.append(Concern(f"it has more than {_MOST_WORDS} arguments"))


def _moved(concerns: Sequence[Concern], offset: int) -> list[Concern]:
    """Shift the word counts of concerns by the words before the command. A negative offset means that the command is in
    another text, so no word count applies.
    """
    return [
        each._replace(upto=each.upto + offset if each.upto is not None and offset > 0 else None) for each in concerns
    ]


def _script(text: str, found: Reach, depth: int) -> None:
    if depth > _DEEPEST or UNKNOWN in text:
        found.concerns.append(Concern("it runs a script that is only known at run time"))
        return
    inner = script.read(text)
    found.concerns.extend(Concern(_said(fault), seen=fault in _SEEN) for fault in inner.faults)
    found.concerns.extend(Concern(why) for each in inner.assignments if (why := sets(each)) is not None)
    for redirect in inner.redirects:
        if redirect.writes:
            found.writes.append(Write(redirect.target, asked_for=True))
        else:
            found.reads.append(redirect.target)
    for simple in inner.commands:
        found.concerns.extend(Concern(_said(fault), seen=fault in _SEEN) for fault in simple.faults)
        _follow(simple.words, simple.stdin, simple.repeated, found, offset=-1, depth=depth + 1)
