"""Data types for the effects of a simple command, such as written files, as far as its arguments show them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from footplate.gate.shell.word_expansion import Word

Argv = tuple[Word, ...]


class Concern(NamedTuple):
    """A reason why an allow rule with a `*` is not enough to allow a command."""

    text: str
    is_visible: bool = False
    """Whether everything that runs is visible nevertheless, so that a deny rule would have matched it."""
    literal_words: int | None = None
    """The number of words that a rule must contain literally to allow the command in spite of this concern. None if
    only a rule with the exact text does.
    """


class FileWrite(NamedTuple):
    """A file that a command writes."""

    path: Word
    needs_edit_rule: bool
    """Whether the write needs an `Edit` rule of its own. It does if writing is not the program's purpose, for example
    if an option requests it: a rule for the program then does not cover it.
    """


@dataclass(slots=True)
class ProgramEffects:
    """The effects of one program with its arguments. The functions that analyse programs fill it in."""

    concerns: list[Concern] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    writes: list[FileWrite] = field(default_factory=list)
    mentions: list[Word] = field(default_factory=list)
    """Arguments that may be files, for example those of an unknown program."""
    runs: list[tuple[int, Argv]] = field(default_factory=list)
    """The commands that it runs, each with the number of words before it."""
    scripts: list[str] = field(default_factory=list)
    """Shell scripts that it runs."""
    is_unknown_program: bool = False
    """Whether the program is unknown. Its arguments may then be a command that it runs."""
    harmless: bool = False
    """Whether it only reads and prints. Such a command is allowed inside the workspace without a rule."""
    new_directory: Word | None = None
    """The directory that it changes to."""

    def add_concern(self, text: str, *, is_visible: bool = False, literal_words: int | None = None) -> None:
        self.concerns.append(Concern(text, is_visible, literal_words))


def join_words(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)
