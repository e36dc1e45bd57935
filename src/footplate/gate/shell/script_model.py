"""Data types for a parsed command line: simple commands, redirects and assignments."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from footplate.gate.shell.word_expansion import Word

_OUTPUTS: Final = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})


class Stdin(StrEnum):
    """The source of a command's standard input."""

    INHERITED = "inherited"
    PIPE = "pipe"
    TEXT = "here-document"
    FILE = "file"


class Redirect(NamedTuple):
    operator: str
    target: Word
    source: str

    @property
    def writes(self) -> bool:
        return self.operator in _OUTPUTS


class Assignment(NamedTuple):
    name: str
    value: Word
    exported: bool
    """Whether programs get it as an environment variable: the program that follows, or all later ones."""
    source: str


class SimpleCommand(NamedTuple):
    """One program and its arguments."""

    words: tuple[Word, ...]
    source: str
    stdin: Stdin = Stdin.INHERITED
    repeated: bool = False
    """Whether it may run several times, in a loop or a function."""
    faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Script:
    """A parsed command line."""

    commands: list[SimpleCommand] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Reasons why the command line cannot be analysed completely."""
