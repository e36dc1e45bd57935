"""Splits arguments into options, their values and operands, as `getopt_long` does."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from footplate.gate.shell.word_expansion import UNKNOWN, Word


@dataclass(slots=True)
class Arguments:
    """The parsed arguments of one program."""

    options: list[tuple[str, Word | None]] = field(default_factory=list)
    """Options such as `-o` or `--output`, each with its value if it has one."""
    operands: list[Word] = field(default_factory=list)
    is_ambiguous: bool = False
    """Whether a word may turn out to be an option at run time."""
    late_values: list[Word] = field(default_factory=list)
    """Values of options that follow an operand. For programs whose options end at the first operand, these values are
    operands.
    """
    has_late_options: bool = False
    """Whether options follow an operand."""

    def values(self, *names: str) -> list[Word | None]:
        """Return the values of the options with these names, including abbreviated ones."""
        return [value for name, value in self.options if any(matches_option(name, full) for full in names)]

    def has(self, *names: str) -> bool:
        return any(matches_option(name, full) for name, _ in self.options for full in names)


def matches_option(given: str, full: str) -> bool:
    """Return whether an option as given is the option `full`. Long options may be abbreviated."""
    if given == full:
        return True
    return given.startswith("--") and len(given) > 2 and full.startswith(given)  # noqa: PLR2004


def parse_arguments(
    words: Sequence[Word], *, takes: str = "", takes_long: Sequence[str] = (), single: bool = False
) -> Arguments:
    """Split the arguments of a program. `takes` has the letters of short options with a value, `takes_long` the long
    options with one. With `single`, a word is one option, given by its first letter.
    """
    arguments = Arguments()
    remaining = list(reversed(words))
    while remaining:
        word = remaining.pop()
        text, after_operand, count = word.text, bool(arguments.operands), len(remaining)
        if text == "--" and word.known:
            arguments.operands.extend(reversed(remaining))
            break
        if text[:1] == UNKNOWN or word.may_split or (word.globs and _may_match_options(text)):
            arguments.is_ambiguous = True
            arguments.operands.append(word)
        elif text.startswith("--"):
            name, equals, value = text.partition("=")
            if UNKNOWN in name:
                arguments.is_ambiguous = True
            if equals:
                arguments.options.append((name, Word(value, word.globs, word.faults)))
            elif any(matches_option(name, full) for full in takes_long):
                arguments.options.append((name, _pop_value(arguments, remaining)))
            else:
                arguments.options.append((name, None))
        elif text.startswith("-") and len(text) > 1:
            _parse_short_options(word, takes, arguments, remaining, single=single)
        else:
            arguments.operands.append(word)
            continue
        if after_operand and arguments.options:
            _record_late_option(arguments, taken=len(remaining) < count)
    return arguments


def _pop_value(arguments: Arguments, remaining: list[Word]) -> Word | None:
    """Return the next word as the value of an option. At run time it may turn into several words."""
    value = remaining.pop() if remaining else None
    arguments.is_ambiguous = arguments.is_ambiguous or (value is not None and value.may_split)
    return value


def _record_late_option(arguments: Arguments, *, taken: bool) -> None:
    arguments.has_late_options = True
    value = arguments.options[-1][1]
    if taken and value is not None:
        arguments.late_values.append(value)


def _may_match_options(text: str) -> bool:
    """Return whether a glob may match files whose names look like options."""
    return text[:1] in "*?[" or (text[:1] == "-" and "=" not in text)


def _parse_short_options(word: Word, takes: str, arguments: Arguments, remaining: list[Word], *, single: bool) -> None:
    text = word.text
    for index, letter in enumerate(text[1:], start=1):
        if single and index > 1:
            return
        if letter == UNKNOWN:
            arguments.is_ambiguous = True
            return
        if letter in takes:
            rest = text[index + 1 :]
            value = Word(rest, word.globs) if rest else _pop_value(arguments, remaining)
            arguments.options.append((f"-{letter}", value))
            return
        arguments.options.append((f"-{letter}", None))
