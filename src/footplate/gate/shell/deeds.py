"""What one simple command does, as far as its arguments tell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from footplate.gate.shell.words import Word

Argv = tuple[Word, ...]


class Concern(NamedTuple):
    """Why a rule with a `*` in it does not allow a command by itself."""

    text: str
    seen: bool = False
    """All that runs is visible nevertheless, so a rule that denies would have found it."""
    upto: int | None = None
    """A rule that says this many of the words literally means it and is obeyed; None: none does but the whole text."""


class Write(NamedTuple):
    path: Word
    asked_for: bool
    """By an option of a program whose job is another: a rule for the program does not cover it."""


@dataclass(slots=True)
class Deeds:
    concerns: list[Concern] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    mentions: list[Word] = field(default_factory=list)
    """Arguments of a program that nobody here knows: they may be files."""
    runs: list[tuple[int, Argv]] = field(default_factory=list)
    """Commands that it runs, and how many words stand before."""
    scripts: list[str] = field(default_factory=list)
    """Shell text that it runs."""
    unknown: bool = False
    """Nobody here knows the program: its arguments may be a command that it runs."""
    harmless: bool = False
    """Reads and prints, nothing else: allowed inside the workspace without a rule."""
    moves: Word | None = None
    """Where it changes the directory to."""

    def worry(self, text: str, *, seen: bool = False, upto: int | None = None) -> None:
        self.concerns.append(Concern(text, seen, upto))


def plain(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)
