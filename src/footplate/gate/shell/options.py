"""Splits arguments into options, their values and operands, as `getopt_long` does."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from footplate.gate.shell.words import UNKNOWN, Word


@dataclass(slots=True)
class Arguments:
    """The parsed arguments of one program."""

    options: list[tuple[str, Word | None]] = field(default_factory=list)
    """Options such as `-o` or `--output`, each with its value if it has one."""
    operands: list[Word] = field(default_factory=list)
    unclear: bool = False
    """Whether a word may turn out to be an option at run time."""
    late: list[Word] = field(default_factory=list)
    """Values of options that follow an operand. For programs whose options end at the first operand, these values are
    operands.
    """
    mixed: bool = False
    """Whether options follow an operand."""

    def values(self, *names: str) -> list[Word | None]:
        """Return the values of the options with these names, including abbreviated ones."""
        return [value for name, value in self.options if any(meant(name, full) for full in names)]

    def has(self, *names: str) -> bool:
        return any(meant(name, full) for name, _ in self.options for full in names)


def meant(given: str, full: str) -> bool:
    """Return whether an option as given is the option `full`. Long options may be abbreviated."""
    if given == full:
        return True
    return given.startswith("--") and len(given) > 2 and full.startswith(given)  # noqa: PLR2004


def split(words: Sequence[Word], *, takes: str = "", takes_long: Sequence[str] = (), single: bool = False) -> Arguments:
    """Split the arguments of a program. `takes` has the letters of short options with a value, `takes_long` the long
    options with one. With `single`, a word is one option, given by its first letter.
    """
    found = Arguments()
    left = list(reversed(words))
    while left:
        word = left.pop()
        text, behind, count = word.text, bool(found.operands), len(left)
        if text == "--" and word.known:
            found.operands.extend(reversed(left))
            break
        if text[:1] == UNKNOWN or word.splits or (word.globs and _glob_first(text)):
            found.unclear = True
            found.operands.append(word)
        elif text.startswith("--"):
            name, equals, value = text.partition("=")
            if UNKNOWN in name:
                found.unclear = True
            if equals:
                found.options.append((name, Word(value, word.globs, word.faults)))
            elif any(meant(name, full) for full in takes_long):
                found.options.append((name, _value(found, left)))
            else:
                found.options.append((name, None))
        elif text.startswith("-") and len(text) > 1:
            _cluster(word, takes, found, left, single=single)
        else:
            found.operands.append(word)
            continue
        if behind and found.options:
            _note_late(found, taken=len(left) < count)
    return found


def _value(found: Arguments, left: list[Word]) -> Word | None:
    """Return the next word as the value of an option. At run time it may turn into several words."""
    value = left.pop() if left else None
    found.unclear = found.unclear or (value is not None and value.splits)
    return value


def _note_late(found: Arguments, *, taken: bool) -> None:
    found.mixed = True
    value = found.options[-1][1]
    if taken and value is not None:
        found.late.append(value)


def _glob_first(text: str) -> bool:
    """Return whether a glob may match files whose names look like options."""
    return text[:1] in "*?[" or (text[:1] == "-" and "=" not in text)


def _cluster(word: Word, takes: str, found: Arguments, left: list[Word], *, single: bool) -> None:
    text = word.text
    for index, letter in enumerate(text[1:], start=1):
        if single and index > 1:
            return
        if letter == UNKNOWN:
            found.unclear = True
            return
        if letter in takes:
            rest = text[index + 1 :]
            value = Word(rest, word.globs) if rest else _value(found, left)
            found.options.append((f"-{letter}", value))
            return
        found.options.append((f"-{letter}", None))
