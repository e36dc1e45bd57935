"""Decides a shell command: it is allowed only if every part of it is allowed, and never if a part cannot be parsed.

Every text gets a decision. Parts are evaluated one by one, and the strictest decision wins.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from footplate.domain.permissions import Decision, Outcome, stricter
from footplate.gate.evaluation_budget import BudgetExceeded
from footplate.gate.judging import Judging, canonical
from footplate.gate.places import Place, target
from footplate.gate.policy import Policy
from footplate.gate.rules import BASH
from footplate.gate.shell import script
from footplate.gate.shell.deeds import Concern
from footplate.gate.shell.parts import Script
from footplate.gate.shell.reach import Reach, reach
from footplate.gate.touching import Files

_MOST_DIRECTORIES: Final = 8
_NOTHING: Final = Decision(Outcome.ASK, "The text contains no command.")
_TOO_DEEP: Final = Decision(Outcome.ASK, "The command is nested too deeply.")
TOO_MUCH_WORK: Final = Decision(
    Outcome.DENY,
    "Evaluating the permission rules for this call would take too long, so it was denied. Split it into smaller calls.",
)
_GIT_ELSEWHERE: Final = Concern(
    "git runs in a directory that the command changed to, and uses the configuration there", seen=True
)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a command, and the decision on it."""

    kind: str
    """`command`, `redirect`, `assignment` or `unclear`."""
    text: str
    decision: Decision
    via: tuple[str, ...] = ()
    """The wrapper programs through which it runs other commands, such as `env`."""
    runs: tuple[str, ...] = ()
    """The commands that these programs run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    parts: tuple[Part, ...]


def decide(policy: Policy, command: str, place: Place, *, directory: str | None = None) -> Decision:
    """Decide a command. `directory` is the shell's current directory; the default is the working tree."""
    try:
        decision = _strictest(_decisions(_read(policy, command, place, directory or place.root)))
    except RecursionError:  # pragma: no cover - depth is limited everywhere; this is a safety net
        decision = _TOO_DEEP
    except BudgetExceeded:
        decision = TOO_MUCH_WORK
    return _by_bare_rules(policy, decision)


def judge(policy: Policy, command: str, place: Place, *, directory: str | None = None) -> Verdict:
    """Decide a command like `decide`, and return the decision on each part as well."""
    try:
        parts = tuple(_parts(_read(policy, command, place, directory or place.root)))
    except RecursionError:  # pragma: no cover - depth is limited everywhere; this is a safety net
        parts = (Part("unclear", command[:200], _TOO_DEEP),)
    except BudgetExceeded:
        parts = (Part("unclear", command[:200], TOO_MUCH_WORK),)
    if not parts:
        parts = (Part("unclear", command[:200], _NOTHING),)
    return Verdict(_by_bare_rules(policy, _strictest(part.decision for part in parts)), parts)


def _strictest(decisions: Iterable[Decision]) -> Decision:
    """Return the first of the strictest decisions."""
    found: Decision | None = None
    for decision in decisions:
        if found is None or stricter(found.outcome, decision.outcome) is not found.outcome:
            found = decision
    return found or _NOTHING


def _by_bare_rules(policy: Policy, decision: Decision) -> Decision:
    for outcome in (Outcome.ASK, Outcome.DENY):
        if (placed := policy.whole(BASH, outcome)) is not None and stricter(decision.outcome, outcome) is outcome:
            decision = placed.says(f"{placed.rule.text} applies to every command.")
    return decision


class _Reading(NamedTuple):
    """A parsed command line, and the evaluator for its parts."""

    script: Script
    reaches: list[Reach]
    judging: Judging


def _read(policy: Policy, command: str, place: Place, directory: str) -> _Reading:
    read, place = script.read(command), place.with_new_budget()
    reaches = [reach(simple) for simple in read.commands]
    values = tuple([each.value for each in read.assignments if each.value.known])
    files = Files(policy, place, _directories(reaches, place, directory), values)
    if files.directories is None or any(each != place.root for each in files.directories):
        for found in reaches:
            if any(form[0].text.rpartition("/")[2] == "git" for form in found.forms):
                found.concerns.append(_GIT_ELSEWHERE)
    return _Reading(read, reaches, Judging(policy, files, whole=policy.whole(BASH, Outcome.ALLOW)))


def _decisions(reading: _Reading) -> Iterator[Decision]:
    """Decide each part. Once one part requires approval, only a denial can change the result, so the rest is checked
    for denials only.
    """
    read, reaches, judging = reading
    asked = False
    for simple, found in zip(read.commands, reaches, strict=True):
        yield (decision := judging.command(simple, found, only_denied=asked))
        asked = asked or decision.outcome is not Outcome.ALLOW
    for assignment in () if asked else read.assignments:
        yield (decision := judging.assignment(assignment))
        asked = asked or decision.outcome is not Outcome.ALLOW
    for redirect in read.redirects:
        yield judging.redirect(redirect, only_denied=asked)
    for fault in () if asked else read.faults:
        yield judging.fault(fault)


def _parts(reading: _Reading) -> Iterator[Part]:
    read, reaches, judging = reading
    for simple, found in zip(read.commands, reaches, strict=True):
        said = simple.source or " ".join(word.text for word in simple.words)
        runs = tuple(dict.fromkeys(canonical(form) for form in found.forms[1:]))
        yield Part("command", said, judging.command(simple, found), tuple(found.via), runs)
    for assignment in read.assignments:
        yield Part("assignment", assignment.source, judging.assignment(assignment))
    for redirect in read.redirects:
        yield Part("redirect", redirect.source, judging.redirect(redirect))
    for fault in read.faults:
        yield Part("unclear", fault, judging.fault(fault))


def _directories(reaches: Sequence[Reach], place: Place, directory: str) -> tuple[str, ...] | None:
    """Return the directories in which a part may run, or None if they cannot be determined. A `cd` may fail, so both
    directories are possible after it.
    """
    found = [directory]
    for each in reaches:
        if each.moves is None:
            continue
        if not each.moves.known or len(found) > _MOST_DIRECTORIES:
            return None
        for start in list(found):
            where = target(place, start, each.moves.text)
            if where.real is None:
                return None
            found.extend(path for path in (where.path, where.real) if path not in found)
    return tuple(found)
