"""Decides whether a shell command may run. Each part of the command line is evaluated separately, and the strictest
decision applies.

A command is allowed only if every part of it is allowed. A part that cannot be parsed is never allowed by default.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from footplate.domain.policy.permissions import Decision, PermissionOutcome, stricter
from footplate.gate.evaluation.command_files import CommandFiles
from footplate.gate.evaluation.command_part_evaluator import CommandPartEvaluator, quote_command
from footplate.gate.rules.evaluation_budget import BudgetExceeded
from footplate.gate.rules.layered_policy import Policy
from footplate.gate.rules.path_context import PathContext, resolve_target
from footplate.gate.rules.rule_parser import BASH
from footplate.gate.shell import command_extraction
from footplate.gate.shell.effect_types import Concern
from footplate.gate.shell.nested_commands import CommandEffects, collect_effects
from footplate.gate.shell.script_model import Script

_MAX_DIRECTORIES: Final = 8
_NO_COMMAND: Final = Decision(PermissionOutcome.ASK, "The text contains no command.")
_TOO_DEEP: Final = Decision(PermissionOutcome.ASK, "The command is nested too deeply.")
TOO_EXPENSIVE: Final = Decision(
    PermissionOutcome.DENY,
    "Evaluating the permission rules for this call would take too long, so it was denied. Split it into smaller calls.",
)
_GIT_IN_OTHER_DIRECTORY: Final = Concern(
    "git runs after a change of directory, and uses the git configuration of the new directory", is_visible=True
)


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One part of a command, and the decision on it."""

    kind: str
    """`command`, `redirect`, `assignment` or `unclear`."""
    text: str
    decision: Decision
    wrappers: tuple[str, ...] = ()
    """The wrapper programs through which it runs other commands, such as `env`."""
    nested_commands: tuple[str, ...] = ()
    """The commands that these programs run."""


@dataclass(frozen=True, slots=True)
class CommandExplanation:
    decision: Decision
    parts: tuple[CommandPart, ...]


def decide_command(policy: Policy, command: str, context: PathContext, *, directory: str | None = None) -> Decision:
    """Decide a command. `directory` is the shell's current directory; the default is the working tree."""
    try:
        decision = _strictest(_decisions(_parse_command(policy, command, context, directory or context.root)))
    except RecursionError:  # pragma: no cover - depth is limited everywhere; this is a safety net
        decision = _TOO_DEEP
    except BudgetExceeded:
        decision = TOO_EXPENSIVE
    return _apply_bare_rules(policy, decision)


def explain_command(
    policy: Policy, command: str, context: PathContext, *, directory: str | None = None
) -> CommandExplanation:
    """Decide a command like `decide`, and return the decision on each part as well."""
    try:
        parts = tuple(_parts(_parse_command(policy, command, context, directory or context.root)))
    except RecursionError:  # pragma: no cover - depth is limited everywhere; this is a safety net
        parts = (CommandPart("unclear", command[:200], _TOO_DEEP),)
    except BudgetExceeded:
        parts = (CommandPart("unclear", command[:200], TOO_EXPENSIVE),)
    if not parts:
        parts = (CommandPart("unclear", command[:200], _NO_COMMAND),)
    return CommandExplanation(_apply_bare_rules(policy, _strictest(part.decision for part in parts)), parts)


def _strictest(decisions: Iterable[Decision]) -> Decision:
    """Return the first of the strictest decisions."""
    strictest: Decision | None = None
    for decision in decisions:
        if strictest is None or stricter(strictest.outcome, decision.outcome) is not strictest.outcome:
            strictest = decision
    return strictest or _NO_COMMAND


def _apply_bare_rules(policy: Policy, decision: Decision) -> Decision:
    for outcome in (PermissionOutcome.ASK, PermissionOutcome.DENY):
        if (matched := policy.find_tool_rule(BASH, outcome)) is not None and stricter(
            decision.outcome, outcome
        ) is outcome:
            decision = matched.make_decision(f"{matched.rule.text} applies to every command.")
    return decision


class _ParsedCommand(NamedTuple):
    """A parsed command line, and the evaluator for its parts."""

    script: Script
    effects: list[CommandEffects]
    evaluator: CommandPartEvaluator


def _parse_command(policy: Policy, command: str, context: PathContext, directory: str) -> _ParsedCommand:
    parsed, context = command_extraction.parse_script(command), context.with_new_budget()
    effects = [collect_effects(simple) for simple in parsed.commands]
    values = tuple([each.value for each in parsed.assignments if each.value.known])
    files = CommandFiles(policy, context, _possible_directories(effects, context, directory), values)
    if files.directories is None or any(each != context.root for each in files.directories):
        for command_effects in effects:
            if any(form[0].text.rpartition("/")[2] == "git" for form in command_effects.commands):
                command_effects.concerns.append(_GIT_IN_OTHER_DIRECTORY)
    return _ParsedCommand(
        parsed,
        effects,
        CommandPartEvaluator(policy, files, allow_all_rule=policy.find_tool_rule(BASH, PermissionOutcome.ALLOW)),
    )


def _decisions(parsed_command: _ParsedCommand) -> Iterator[Decision]:
    """Decide each part. Once one part requires approval, only a denial can change the result, so the rest is checked
    for denials only.
    """
    parsed, effects, evaluator = parsed_command
    asked = False
    for simple, command_effects in zip(parsed.commands, effects, strict=True):
        yield (decision := evaluator.decide_command(simple, command_effects, only_denied=asked))
        asked = asked or decision.outcome is not PermissionOutcome.ALLOW
    for assignment in () if asked else parsed.assignments:
        yield (decision := evaluator.decide_assignment(assignment))
        asked = asked or decision.outcome is not PermissionOutcome.ALLOW
    for redirect in parsed.redirects:
        yield evaluator.decide_redirect(redirect, only_denied=asked)
    for fault in () if asked else parsed.faults:
        yield evaluator.decide_fault(fault)


def _parts(parsed_command: _ParsedCommand) -> Iterator[CommandPart]:
    parsed, effects, evaluator = parsed_command
    for simple, command_effects in zip(parsed.commands, effects, strict=True):
        text = simple.source or " ".join(argument.text for argument in simple.words)
        nested_commands = tuple(dict.fromkeys(quote_command(form) for form in command_effects.commands[1:]))
        yield CommandPart(
            "command",
            text,
            evaluator.decide_command(simple, command_effects),
            tuple(command_effects.wrappers),
            nested_commands,
        )
    for assignment in parsed.assignments:
        yield CommandPart("assignment", assignment.source, evaluator.decide_assignment(assignment))
    for redirect in parsed.redirects:
        yield CommandPart("redirect", redirect.source, evaluator.decide_redirect(redirect))
    for fault in parsed.faults:
        yield CommandPart("unclear", fault, evaluator.decide_fault(fault))


def _possible_directories(
    effects: Sequence[CommandEffects], context: PathContext, directory: str
) -> tuple[str, ...] | None:
    """Return the directories in which a part may run, or None if they cannot be determined. A `cd` may fail, so both
    directories are possible after it.
    """
    directories = [directory]
    for each in effects:
        if each.new_directory is None:
            continue
        if not each.new_directory.known or len(directories) > _MAX_DIRECTORIES:
            return None
        for start in list(directories):
            resolved = resolve_target(context, start, each.new_directory.text)
            if resolved.real_path is None:
                return None
            directories.extend(path for path in (resolved.path, resolved.real_path) if path not in directories)
    return tuple(directories)
