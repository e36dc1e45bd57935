"""Whether a rule that denies or asks speaks of a command, in whatever spelling: it reaches further than an allow."""

import posixpath
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from footplate.domain.permissions import Outcome
from footplate.gate.patterns import TextPattern
from footplate.gate.places import Place, target
from footplate.gate.policy import Placed, Policy
from footplate.gate.shell.deeds import Argv, plain
from footplate.gate.shell.words import UNKNOWN

_LONG: Final = {"--recursive": "-r", "-R": "-r", "--force": "-f", "--all": "-a", "--delete": "-d"}
"""Spellings of the same option."""


def forbids(policy: Policy, outcome: Outcome, argv: Argv, place: Place, directories: Sequence[str]) -> Placed | None:
    """A rule that is surely meant."""
    if not policy.speaks_of_commands(outcome):
        return None
    rest = plain(argv[1:])
    for name in _names(argv, place, directories):
        text = f"{name} {rest}" if len(argv) > 1 else name
        for placed, pattern in policy.commands(outcome, name):
            if pattern.matches(text) or _options_match(pattern, text):
                return placed
    return None


def may_forbid(policy: Policy, argv: Argv) -> Placed | None:
    """A rule that may be meant, depending on what is not known yet."""
    if all(word.known for word in argv):
        return None
    before = plain(argv).split(UNKNOWN)[0]
    name = posixpath.basename(argv[0].text)
    for outcome in (Outcome.DENY, Outcome.ASK):
        for placed, pattern in policy.commands(outcome, name):
            if not pattern.head or pattern.head.startswith(before) or before.startswith(pattern.head.rstrip()):
                return placed
    return None


def _names(argv: Argv, place: Place, directories: Sequence[str]) -> Iterator[str]:
    """The program, by each name that it may be meant by."""
    text = argv[0].text
    yield text
    base = posixpath.basename(text)
    if base != text:
        yield base
        for directory in directories:
            real = target(place, directory, text).real
            if real is not None:
                yield posixpath.basename(real)
    folded = unicodedata.normalize("NFKC", base).casefold().strip()
    if folded != base:
        yield folded


def _options_match(pattern: TextPattern, text: str) -> bool:
    """`rm -rf *` also means `rm -r -f x` and `rm x -fr`: options have no order."""
    if len(pattern.pieces) != 2 or pattern.pieces[1] or " -" not in pattern.head:  # noqa: PLR2004
        return False
    wanted, said = _taken(pattern.head.split()), _taken(text.split(" "))
    return said[0][: len(wanted[0])] == wanted[0] and wanted[1] <= said[1]


def _taken(words: Sequence[str]) -> tuple[list[str], set[str]]:
    """Words that are no options, and the options one by one."""
    plain_words, options = [], set()
    for word in words:
        word = _LONG.get(word, word)  # noqa: PLW2901
        if word.startswith("--"):
            options.add(word.partition("=")[0])
        elif word.startswith("-") and len(word) > 1:
            options.update(_LONG.get(f"-{letter}", f"-{letter}") for letter in word[1:])
        else:
            plain_words.append(word)
    return plain_words, options
