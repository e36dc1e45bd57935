"""Evaluates the rules for one part of a command line: a simple command, a redirect, an assignment, or text that cannot
be parsed.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from footplate.domain.policy.permissions import Decision, PermissionOutcome
from footplate.gate.evaluation.command_files import STANDARD_DEVICES, CommandFiles
from footplate.gate.evaluation.restricting_command_rules import (
    RestrictedCommand,
    find_matching_rule,
    find_possible_rule,
    find_restricted_commands,
)
from footplate.gate.rules.layered_policy import RESTRICTING_OUTCOMES, LayeredRule, Policy
from footplate.gate.rules.text_pattern import TextPattern
from footplate.gate.shell.effect_types import Argv, FileWrite
from footplate.gate.shell.nested_commands import CommandEffects, find_assignment_concern
from footplate.gate.shell.script_model import Assignment, Redirect, SimpleCommand, Stdin
from footplate.gate.shell.word_expansion import UNKNOWN, Word

_INSPECTION_PROGRAMS: Final = frozenset(
    {"ls", "file", "stat", "which", "readlink", "realpath", "test", "[", "du", "cd", "type", "command", "find"}
)
_NEEDS_QUOTES: Final = re.compile(r"[ \t\n'\"\\\0]")
_ALREADY_ASKED: Final = Decision(PermissionOutcome.ASK, "An earlier part of the command requires approval.")
_FileAccess: TypeAlias = tuple[Word, bool]
"""A file, and whether it is written."""


@dataclass(frozen=True, slots=True)
class CommandPartEvaluator:
    """Evaluates the parts of one command line."""

    policy: Policy
    files: CommandFiles
    allow_all_rule: LayeredRule | None
    """The rule that allows every command, if there is one."""

    def decide_command(self, simple: SimpleCommand, effects: CommandEffects, *, only_denied: bool = False) -> Decision:
        """Decide a simple command. With `only_denied`, only deny and ask rules are evaluated."""
        accesses = [
            *((argument, False) for argument in effects.reads),
            *((write.path, True) for write in effects.writes),
        ]
        restricted = self._find_restricted_commands(effects.commands, self.files.directories or ())
        decision = self._find_restriction(effects, restricted, accesses)
        if decision is not None or only_denied:
            return decision or _ALREADY_ASKED
        possible_restriction = self._find_possible_restriction(effects, restricted, accesses)
        if self.allow_all_rule is not None:
            return self._allow_by_bare_rule(effects, possible_restriction)
        obstacle: Decision | None = None
        for matched, pattern in self._matching_allow_rules(simple):
            problem = possible_restriction or self._find_obstacle(matched, pattern, simple, effects)
            if problem is None:
                return matched.make_decision(f"{matched.rule.text} allows it.")
            obstacle = obstacle or problem
        if (
            effects.harmless
            and not effects.concerns
            and possible_restriction is None
            and all(map(self.files.is_readable, effects.reads))
            and not self._uses_program_file(effects)
        ):
            return Decision(PermissionOutcome.ALLOW, "It only reads inside the workspace.")
        return obstacle or possible_restriction or _ask(_no_rule_reason(effects, self.files))

    def _matching_allow_rules(self, simple: SimpleCommand) -> Sequence[tuple[LayeredRule, TextPattern]]:
        """Return the allow rules that match the command, either normalised or as it was written."""
        rules = list(self.policy.command_rules(PermissionOutcome.ALLOW, simple.words[0].text))
        if not rules:
            return ()
        text, source = quote_command(simple.words), simple.source
        self.files.context.budget.spend_on_comparison(len(rules), text + source)
        return [rule for rule in rules if rule[1].matches(text) or (source != "" and rule[1].matches(source))]

    def _find_restriction(
        self, effects: CommandEffects, restricted: Sequence[RestrictedCommand], accesses: Sequence[_FileAccess]
    ) -> Decision | None:
        forbidden_accesses = [(argument, writes) for argument, writes in accesses if self.files.is_forbidden(argument)]
        for outcome in RESTRICTING_OUTCOMES if restricted or forbidden_accesses else ():
            for command in restricted:
                if (matched := find_matching_rule(self.policy, outcome, command)) is not None:
                    wrapper_note = "" if command.argv is effects.commands[0] else f", which {effects.wrappers[0]} runs"
                    return matched.make_decision(
                        f"{matched.rule.text} applies to `{quote_command(command.argv)}`{wrapper_note}."
                    )
            for accessed_file, writes in forbidden_accesses:
                if (matched := self.files.find_restricting_rule(outcome, accessed_file, writes=writes)) is not None:
                    return matched.make_decision(
                        f"{matched.rule.text} applies to the file {_make_printable(accessed_file.text)}."
                    )
        return None

    def _find_restricted_commands(self, argvs: Sequence[Argv], directories: Sequence[str]) -> list[RestrictedCommand]:
        commands = [
            each
            for form in argvs
            for each in find_restricted_commands(self.policy, form, self.files.context, directories)
        ]
        for each in commands:
            self.files.context.budget.spend_on_comparison(self.policy.count_command_rules(each.name), each.text)
        return commands

    def _find_possible_restriction(
        self, effects: CommandEffects, restricted: Sequence[RestrictedCommand], accesses: Sequence[_FileAccess]
    ) -> Decision | None:
        """Return an ask decision if a deny or ask rule may apply, depending on values only known at run time."""
        for command in restricted:
            if (matched := find_possible_rule(self.policy, command)) is not None:
                return _ask(f"{matched.rule.text} may apply to it: some of its arguments are only known at run time.")
        for command in self._find_restricted_commands(effects.possible_commands, ()):
            for outcome in RESTRICTING_OUTCOMES:
                if (matched := find_matching_rule(self.policy, outcome, command)) is not None:
                    return _ask(f"{matched.rule.text} may apply to it.")
        for argument, writes in accesses:
            if (matched := self.files.find_possible_rule(argument, writes=writes)) is not None:
                return _ask(f"{_in_backticks(argument.text)} may be a file that {matched.rule.text} applies to.")
        return self._find_mentioned_file(effects)

    def _find_mentioned_file(self, effects: CommandEffects) -> Decision | None:
        """Return an ask decision if an argument of an unknown program may be a forbidden file, such as the value of an
        option.
        """
        if not self.policy.restricts_files:
            return None
        for argument in (*effects.mentions, *effects.reads):
            for each in _possible_file_names(argument):
                for outcome in RESTRICTING_OUTCOMES if self.files.is_forbidden(each) else ():
                    if (matched := self.files.find_restricting_rule(outcome, each, writes=True)) is not None:
                        shown = _in_backticks(argument.text)
                        return _ask(f"{matched.rule.text} applies to {shown}, which is an argument of the command.")
        return None

    def _allow_by_bare_rule(self, effects: CommandEffects, possible_restriction: Decision | None) -> Decision:
        assert self.allow_all_rule is not None
        if self.policy.restricts_commands:
            if possible_restriction is not None:
                return possible_restriction
            hidden = next((each for each in effects.concerns if not each.is_visible), None)
            if hidden is not None:
                return _ask(f"It may run a command that other rules forbid: {hidden.text}.")
            if self._uses_program_file(effects):
                return _ask(
                    "It reads or writes an executable file, so a forbidden program could be copied to another name."
                )
        return self.allow_all_rule.make_decision(f"{self.allow_all_rule.rule.text} allows every command.")

    def _find_obstacle(
        self, matched: LayeredRule, pattern: TextPattern, simple: SimpleCommand, effects: CommandEffects
    ) -> Decision | None:
        """Return why a matching allow rule does not apply, or None if it applies."""
        if pattern.is_exact and pattern.literal_prefix == simple.source and simple.stdin is Stdin.INHERITED:
            return None  # a rule allows exactly this text
        if _escapes_directory(pattern, simple.words):
            return _ask(f"{matched.rule.text} allows paths in a directory, but `..` in the command leads out of it.")
        for concern in effects.concerns:
            if concern.literal_words is None or not _contains_literally(pattern, simple.words[: concern.literal_words]):
                return _ask(f"{matched.rule.text} does not cover it: {concern.text}.")
        for write in effects.writes:
            if (why := self._why_not_writable(write)) is not None:
                return _ask(f"It writes {_in_backticks(write.path.text)}, {why}.")
        return _ask("It reads or writes an executable file.") if self._uses_program_file(effects) else None

    def _why_not_writable(self, write: FileWrite) -> str | None:
        path = write.path
        if path.text in STANDARD_DEVICES or self.files.find_write_rule(path) is not None:
            return None
        if write.needs_edit_rule:
            return "and no Edit rule allows that"
        if not self.files.is_in_workspace(path):
            return "which may be outside the workspace"
        part = self.files.find_protected_component(path)
        if part is None:
            return None
        return f"which is protected: programs may execute {part} or read it as configuration"

    def _uses_program_file(self, effects: CommandEffects) -> bool:
        if not effects.commands or effects.commands[0][0].text in _INSPECTION_PROGRAMS:
            return False
        return (
            self.files.find_program_file(effects.reads) is not None
            or self.files.find_program_file([write.path for write in effects.writes]) is not None
        )

    def decide_assignment(self, assignment: Assignment) -> Decision:
        why = find_assignment_concern(assignment)
        if why is None:
            return Decision(PermissionOutcome.ALLOW, "It only sets a variable.")
        if self.allow_all_rule is not None and not self.policy.restricts_commands:
            return self.allow_all_rule.make_decision(f"{self.allow_all_rule.rule.text} allows every command.")
        return _ask(f"{why[0].upper()}{why[1:]}.")

    def decide_redirect(self, redirect: Redirect, *, only_denied: bool = False) -> Decision:
        path, writes = redirect.target, redirect.writes
        if redirect.operator in {">&", "<&"} and (path.text.isdigit() or path.text == "-"):
            return Decision(PermissionOutcome.ALLOW, "It only duplicates a file descriptor.")
        if path.known and path.text in STANDARD_DEVICES:
            return Decision(PermissionOutcome.ALLOW, "It redirects to a standard device such as /dev/null.")
        for outcome in RESTRICTING_OUTCOMES if self.files.is_forbidden(path) else ():
            if (matched := self.files.find_restricting_rule(outcome, path, writes=writes)) is not None:
                return matched.make_decision(f"{matched.rule.text} applies to the file {_make_printable(path.text)}.")
        return _ALREADY_ASKED if only_denied else self._decide_redirect_target(redirect)

    def _decide_redirect_target(self, redirect: Redirect) -> Decision:
        path = redirect.target
        if (matched := self.files.find_possible_rule(path, writes=redirect.writes)) is not None:
            return _ask(f"{_in_backticks(path.text)} may be a file that {matched.rule.text} applies to.")
        if self.allow_all_rule is not None:
            return self.allow_all_rule.make_decision(f"{self.allow_all_rule.rule.text} allows every command.")
        if not (redirect.writes or redirect.operator == "<") or not path.known:
            return _ask(f"The redirect {_in_backticks(redirect.source)} cannot be analysed.")
        return self._decide_write(path) if redirect.writes else self._decide_read(path)

    def _decide_write(self, path: Word) -> Decision:
        if (matched := self.files.find_write_rule(path)) is not None:
            return matched.make_decision(f"{matched.rule.text} allows writing {path.text}.")
        return _ask(f"It writes {_in_backticks(path.text)}, and no Edit rule allows that.")

    def _decide_read(self, path: Word) -> Decision:
        if self.files.is_readable(path):
            return Decision(PermissionOutcome.ALLOW, "It only reads inside the workspace.")
        return _ask(f"It reads {_in_backticks(path.text)}, which is not in the workspace.")

    def decide_fault(self, fault: str) -> Decision:
        if self.allow_all_rule is not None and (not self.policy.restricts_commands or fault == "a substitution"):
            return self.allow_all_rule.make_decision(f"{self.allow_all_rule.rule.text} allows every command.")
        return _ask(f"The command cannot be analysed completely: {fault}.")


def _ask(reason: str) -> Decision:
    return Decision(PermissionOutcome.ASK, reason)


def _possible_file_names(argument: Word) -> list[Word]:
    """Return the parts of a word that may be a file name: the whole word, or a value after `=`, `-f`, `@` or `:`, as in
    `curl -d @FILE` and `git show HEAD:FILE`.
    """
    text = argument.text
    if text.isalnum():
        return [argument]
    names = [] if text.startswith("-") else [argument]
    if text.startswith("-") and not text.startswith("--"):
        names.append(Word(text[2:], argument.globs))
    for mark in ("=", "@", ":"):
        before, _, value = text.partition(mark)
        if value and before != text:
            names.append(Word(value.lstrip("@<"), argument.globs))
    return [each for each in names if each.text]


def _contains_literally(pattern: TextPattern, argv: Argv) -> bool:
    """Return whether a rule contains these words literally."""
    return f"{pattern.literal_prefix} ".startswith(f"{quote_command(argv)} ")


def _escapes_directory(pattern: TextPattern, argv: Argv) -> bool:
    """Return whether a rule ends in a directory, as `python scripts/*` does, and the path leaves it with `..`."""
    named = pattern.literal_prefix.rpartition(" ")[2]
    if "/" not in named:
        return False
    return any(argument.text.startswith(named) and ".." in argument.text[len(named) :].split("/") for argument in argv)


def quote_command(argv: Argv) -> str:
    """Return the command with each word quoted where necessary, so that word boundaries stay unambiguous."""
    return " ".join(_quote_argument(argument.text) for argument in argv)


def _quote_argument(text: str) -> str:
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return shlex.quote(text.replace("\0", "…"))


def _make_printable(text: str) -> str:
    """Replace the marker of unknown text, which cannot be stored in the log."""
    return text.replace(UNKNOWN, "…")[:200]


def _in_backticks(text: str) -> str:
    return f"`{_make_printable(text)}`"


def _no_rule_reason(effects: CommandEffects, files: CommandFiles) -> str:
    if effects.harmless:
        outside = next((argument.text for argument in effects.reads if not files.is_readable(argument)), "")
        return f"No rule allows it, and {_in_backticks(outside)} may be outside the workspace."
    return (
        f"No rule allows it. It requires approval because {effects.concerns[0].text}."
        if effects.concerns
        else "No rule allows it."
    )
