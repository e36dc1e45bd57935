"""Matches shell commands against deny and ask rules. These rules match all spellings of a command, so they match more
broadly than allow rules.
"""

import posixpath
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from footplate.domain.policy.permissions import PermissionOutcome
from footplate.gate.rules.layered_policy import RESTRICTING_OUTCOMES, LayeredRule, Policy
from footplate.gate.rules.path_context import PathContext, resolve_target
from footplate.gate.rules.text_pattern import TextPattern
from footplate.gate.shell.effect_types import Argv, join_words
from footplate.gate.shell.word_expansion import UNKNOWN

_OPTION_SYNONYMS: Final = {"--recursive": "-r", "-R": "-r", "--force": "-f", "--all": "-a", "--delete": "-d"}
"""Equivalent spellings of common options."""


class RestrictedCommand(NamedTuple):
    """A command under one of its program's names, which a deny or ask rule may match."""

    argv: Argv
    name: str
    text: str


def find_restricted_commands(
    policy: Policy, argv: Argv, context: PathContext, directories: Sequence[str]
) -> list[RestrictedCommand]:
    """Return the command under each name for which there may be a deny or ask rule."""
    names = [name for name in _program_names(argv[0].text, context, directories) if policy.may_forbid_program(name)]
    if not names:
        return []
    rest = join_words(argv[1:])
    return [RestrictedCommand(argv, name, f"{name} {rest}" if len(argv) > 1 else name) for name in names]


def find_matching_rule(policy: Policy, outcome: PermissionOutcome, command: RestrictedCommand) -> LayeredRule | None:
    """Return a rule that certainly matches."""
    for matched, pattern in policy.command_rules(outcome, command.name):
        if pattern.matches(command.text) or _options_match(pattern, command.text):
            return matched
    return None


def find_possible_rule(policy: Policy, command: RestrictedCommand) -> LayeredRule | None:
    """Return a rule that may match, depending on arguments that are only known at run time."""
    argv = command.argv
    if all(argument.known for argument in argv):
        return None
    known_prefix = join_words(argv).split(UNKNOWN)[0]
    for outcome in RESTRICTING_OUTCOMES:
        for matched, pattern in policy.command_rules(outcome, command.name):
            if (
                not pattern.literal_prefix
                or pattern.literal_prefix.startswith(known_prefix)
                or known_prefix.startswith(pattern.literal_prefix.rstrip())
            ):
                return matched
    return None


def _program_names(text: str, context: PathContext, directories: Sequence[str]) -> Sequence[str]:
    """Return all names by which a rule may refer to the program."""
    if "/" not in text:
        return _spellings(text)
    real = [resolve_target(context, directory, text).real_path for directory in directories]
    names = [posixpath.basename(each) for each in real if each is not None]
    return [text, *_spellings(posixpath.basename(text)), *names]


@lru_cache(maxsize=4096)
def _spellings(name: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    return (name,) if folded == name else (name, folded)


def _options_match(pattern: TextPattern, text: str) -> bool:
    """Compare options regardless of their order: `rm -rf *` also matches `rm -r -f x` and `rm x -fr`."""
    if len(pattern.pieces) != 2 or pattern.pieces[1] or " -" not in pattern.literal_prefix:  # noqa: PLR2004
        return False
    wanted, given = _split_options(pattern.literal_prefix.strip()), _split_options(text)
    return given[0][: len(wanted[0])] == wanted[0] and wanted[1] <= given[1]


@lru_cache(maxsize=256)
def _split_options(text: str) -> tuple[list[str], set[str]]:
    """Split a command into its words that are not options, and its single options."""
    operands: list[str] = []
    options: set[str] = set()
    for argument in text.split(" "):
        argument = _OPTION_SYNONYMS.get(argument, argument)  # noqa: PLW2901
        if argument.startswith("--"):
            options.add(argument.partition("=")[0])
        elif argument.startswith("-") and len(argument) > 1:
            options.update(_OPTION_SYNONYMS.get(f"-{letter}", f"-{letter}") for letter in argument[1:])
        else:
            operands.append(argument)
    return operands, options
