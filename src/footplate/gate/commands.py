"""The gate's word on a command: allowed only if every part of it is, and never if a part is not understood.

Total: whatever the text is, there is an answer. Parts are judged one by one; the strictest of them decides.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from footplate.domain.permissions import Decision, Outcome, stricter
from footplate.gate.forbidding import Suspect, forbids, may_forbid, suspects
from footplate.gate.patterns import TextPattern
from footplate.gate.places import Place, target
from footplate.gate.policy import FORBIDDING, Placed, Policy
from footplate.gate.rules import BASH
from footplate.gate.shell import script
from footplate.gate.shell.deeds import Argv, Concern, Write
from footplate.gate.shell.parts import Assignment, Redirect, Script, Simple, Stdin
from footplate.gate.shell.reach import Reach, reach, sets
from footplate.gate.shell.words import UNKNOWN, Word
from footplate.gate.touching import NOWHERE, Files

_MOST_DIRECTORIES: Final = 8
_LOOK_ONLY: Final = frozenset(
    {"ls", "file", "stat", "which", "readlink", "realpath", "test", "[", "du", "cd", "type", "command", "find"}
)
_QUOTED: Final = re.compile(r"[ \t\n'\"\\\0]")
NOTHING: Final = "There is no command in it."
_NOTHING: Final = Decision(Outcome.ASK, NOTHING)
_TOO_DEEP: Final = Decision(Outcome.ASK, "It is nested too deeply.")
_ALREADY: Final = Decision(Outcome.ASK, "Something before it is asked about.")
_GIT_ELSEWHERE: Final = Concern("git runs in a directory that it changed to, and obeys its configuration", seen=True)
_Touched: TypeAlias = tuple[Word, bool]
"""A file, and whether it is written."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a command does, and what is said of it."""

    kind: str
    """`command`, `redirect`, `assignment` or `unclear`."""
    text: str
    decision: Decision
    via: tuple[str, ...] = ()
    """The programs that run it for another."""
    runs: tuple[str, ...] = ()
    """What they run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    parts: tuple[Part, ...]


def decide(policy: Policy, command: str, place: Place, *, directory: str | None = None) -> Decision:
    """`directory`: where the shell is; the working tree if it is left out."""
    try:
        decision = _strictest(_decisions(_read(policy, command, place, directory or place.root)))
    except RecursionError:  # pragma: no cover - depth is bounded everywhere; this is the last net
        decision = _TOO_DEEP
    return _by_bare_rules(policy, decision)


def judge(policy: Policy, command: str, place: Place, *, directory: str | None = None) -> Verdict:
    """The same, with a word on each part."""
    try:
        parts = tuple(_parts(_read(policy, command, place, directory or place.root)))
    except RecursionError:  # pragma: no cover - depth is bounded everywhere; this is the last net
        parts = (Part("unclear", command[:200], _TOO_DEEP),)
    if not parts:
        parts = (Part("unclear", command[:200], _NOTHING),)
    return Verdict(_by_bare_rules(policy, _strictest(part.decision for part in parts)), parts)


def _strictest(decisions: Iterable[Decision]) -> Decision:
    """The first of the strictest."""
    found: Decision | None = None
    for decision in decisions:
        if found is None or stricter(found.outcome, decision.outcome) is not found.outcome:
            found = decision
    return found or _NOTHING


def _by_bare_rules(policy: Policy, decision: Decision) -> Decision:
    for outcome in (Outcome.ASK, Outcome.DENY):
        if (placed := policy.whole(BASH, outcome)) is not None and stricter(decision.outcome, outcome) is outcome:
            decision = placed.says(f"{placed.rule.text} is for every command.")
    return decision


class _Reading(NamedTuple):
    """A command line that was taken apart, and whoever judges the parts."""

    script: Script
    reaches: list[Reach]
    judging: "_Judging"


def _read(policy: Policy, command: str, place: Place, directory: str) -> _Reading:
    read = script.read(command)
    reaches = [reach(simple) for simple in read.commands]
    values = tuple([each.value for each in read.assignments if each.value.known])
    files = Files(policy, place, _directories(reaches, place, directory), values)
    if files.directories is None or any(each != place.root for each in files.directories):
        for found in reaches:
            if any(form[0].text.rpartition("/")[2] == "git" for form in found.forms):
                found.concerns.append(_GIT_ELSEWHERE)
    return _Reading(read, reaches, _Judging(policy, files, whole=policy.whole(BASH, Outcome.ALLOW)))


def _decisions(reading: _Reading) -> Iterator[Decision]:
    """Once there is something to ask, only what is denied can change the answer."""
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
        runs = tuple(dict.fromkeys(_canonical(form) for form in found.forms[1:]))
        yield Part("command", said, judging.command(simple, found), tuple(found.via), runs)
    for assignment in read.assignments:
        yield Part("assignment", assignment.source, judging.assignment(assignment))
    for redirect in read.redirects:
        yield Part("redirect", redirect.source, judging.redirect(redirect))
    for fault in read.faults:
        yield Part("unclear", fault, judging.fault(fault))


def _directories(reaches: Sequence[Reach], place: Place, directory: str) -> tuple[str, ...] | None:
    """Where a part may run. A `cd` may fail, so both directories are possible from there on."""
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


@dataclass(frozen=True, slots=True)
class _Judging:
    policy: Policy
    files: Files
    whole: Placed | None
    """The rule that allows every command, if there is one."""

    def command(self, simple: Simple, found: Reach, *, only_denied: bool = False) -> Decision:
        touched = [*((word, False) for word in found.reads), *((write.path, True) for write in found.writes)]
        suspected = self._suspects(found.forms, self.files.directories or ())
        decision = self._forbidden(found, suspected, touched)
        if decision is not None or only_denied:
            return decision or _ALREADY
        doubt = self._doubt(found, suspected, touched)
        if self.whole is not None:
            return self._by_whole(found, doubt)
        obstacle: Decision | None = None
        for placed, pattern in self._matching(simple):
            hindered = doubt or self._hindered(placed, pattern, simple, found)
            if hindered is None:
                return placed.says(f"{placed.rule.text} allows it.")
            obstacle = obstacle or hindered
        if (
            found.harmless
            and not found.concerns
            and doubt is None
            and all(map(self.files.readable, found.reads))
            and not self._copies(found)
        ):
            return Decision(Outcome.ALLOW, "It only reads, inside the workspace.")
        return obstacle or doubt or _ask(_no_rule(found, self.files))

    def _matching(self, simple: Simple) -> Sequence[tuple[Placed, TextPattern]]:
        """Rules that say it, by its words or as it was written."""
        rules = list(self.policy.commands(Outcome.ALLOW, simple.words[0].text))
        if not rules:
            return ()
        words, source = _canonical(simple.words), simple.source
        return [rule for rule in rules if rule[1].matches(words) or (source != "" and rule[1].matches(source))]

    def _forbidden(self, found: Reach, suspected: Sequence[Suspect], touched: Sequence[_Touched]) -> Decision | None:
        named = [(word, writes) for word, writes in touched if self.files.suspicious(word)]
        for outcome in FORBIDDING if suspected or named else ():
            for suspect in suspected:
                if (placed := forbids(self.policy, outcome, suspect)) is not None:
                    hidden = "" if suspect.argv is found.forms[0] else f", which {found.via[0]} runs"
                    return placed.says(f"{placed.rule.text} is for `{_canonical(suspect.argv)}`{hidden}.")
            for word, writes in named:
                if (placed := self.files.forbidden(outcome, word, writes=writes)) is not None:
                    return placed.says(f"{placed.rule.text} is for the file {_plain(word.text)}.")
        return None

    def _suspects(self, forms: Sequence[Argv], directories: Sequence[str]) -> list[Suspect]:
        return [each for form in forms for each in suspects(self.policy, form, self.files.place, directories)]

    def _doubt(self, found: Reach, suspected: Sequence[Suspect], touched: Sequence[_Touched]) -> Decision | None:
        """A rule that forbids may be meant."""
        for suspect in suspected:
            if (placed := may_forbid(self.policy, suspect)) is not None:
                return _ask(f"It may be what {placed.rule.text} is for: not all is known before it runs.")
        for suspect in self._suspects(found.maybe, ()):
            for outcome in FORBIDDING:
                if (placed := forbids(self.policy, outcome, suspect)) is not None:
                    return _ask(f"It may be what {placed.rule.text} is for.")
        for word, writes in touched:
            if (placed := self.files.doubtful(word, writes=writes)) is not None:
                return _ask(f"{_shown(word.text)} may be a file that {placed.rule.text} is for.")
        return self._mentioned(found)

    def _mentioned(self, found: Reach) -> Decision | None:
        """A program that nobody here knows is given a file, perhaps as the value of an option."""
        if not self.policy.restricts_files:
            return None
        for word in (*found.mentions, *found.reads):
            for each in _files_in(word):
                for outcome in FORBIDDING if self.files.suspicious(each) else ():
                    if (placed := self.files.forbidden(outcome, each, writes=True)) is not None:
                        return _ask(f"It names {_shown(word.text)}, which {placed.rule.text} is for.")
        return None

    def _by_whole(self, found: Reach, doubt: Decision | None) -> Decision:
        assert self.whole is not None
        if self.policy.restricts_commands:
            if doubt is not None:
                return doubt
            unseen = next((each for each in found.concerns if not each.seen), None)
            if unseen is not None:
                return _ask(f"Other rules forbid something, and here it may hide: {unseen.text}.")
            if self._copies(found):
                return _ask("Other rules forbid something, and here a program gets another name.")
        return self.whole.says(f"{self.whole.rule.text} allows every command.")

    def _hindered(self, placed: Placed, pattern: TextPattern, simple: Simple, found: Reach) -> Decision | None:
        """Why a rule that matches does not allow it nevertheless."""
        if pattern.exact and pattern.head == simple.source and simple.stdin is Stdin.OURS:
            return None  # somebody wrote down just this
        for concern in found.concerns:
            if concern.upto is None or not _covers(pattern, simple.words[: concern.upto]):
                return _ask(f"{placed.rule.text} does not cover it: {concern.text}.")
        for write in found.writes:
            if (why := self._unwritable(write)) is not None:
                return _ask(f"It writes {_shown(write.path.text)}, {why}.")
        return _ask("It reads a program's own file.") if self._copies(found) else None

    def _unwritable(self, write: Write) -> str | None:
        word = write.path
        if word.text in NOWHERE or self.files.writable(word) is not None:
            return None
        if write.asked_for:
            return "and no Edit rule allows that"
        if not self.files.inside(word):
            return "which is not surely in the workspace"
        part = self.files.guarded(word)
        return f"and programs obey {part}" if part is not None else None

    def _copies(self, found: Reach) -> bool:
        if not found.forms or found.forms[0][0].text in _LOOK_ONLY:
            return False
        return (
            self.files.programs(found.reads) is not None
            or self.files.programs([write.path for write in found.writes]) is not None
        )

    def assignment(self, assignment: Assignment) -> Decision:
        why = sets(assignment)
        if why is None:
            return Decision(Outcome.ALLOW, "It sets a variable.")
        if self.whole is not None and not self.policy.restricts_commands:
            return self.whole.says(f"{self.whole.rule.text} allows every command.")
        return _ask(f"{why[0].upper()}{why[1:]}.")

    def redirect(self, redirect: Redirect, *, only_denied: bool = False) -> Decision:
        word, writes = redirect.target, redirect.writes
        if redirect.operator in {">&", "<&"} and (word.text.isdigit() or word.text == "-"):
            return Decision(Outcome.ALLOW, "It joins two streams.")
        if word.known and word.text in NOWHERE:
            return Decision(Outcome.ALLOW, "It leads nowhere.")
        for outcome in FORBIDDING if self.files.suspicious(word) else ():
            if (placed := self.files.forbidden(outcome, word, writes=writes)) is not None:
                return placed.says(f"{placed.rule.text} is for the file {_plain(word.text)}.")
        return _ALREADY if only_denied else self._by_file(redirect)

    def _by_file(self, redirect: Redirect) -> Decision:
        word = redirect.target
        if (placed := self.files.doubtful(word, writes=redirect.writes)) is not None:
            return _ask(f"{_shown(word.text)} may be a file that {placed.rule.text} is for.")
        if self.whole is not None:
            return self.whole.says(f"{self.whole.rule.text} allows every command.")
        if not (redirect.writes or redirect.operator == "<") or not word.known:
            return _ask(f"The redirect {_shown(redirect.source)} is not understood.")
        return self._written(word) if redirect.writes else self._read(word)

    def _written(self, word: Word) -> Decision:
        if (placed := self.files.writable(word)) is not None:
            return placed.says(f"{placed.rule.text} allows to write {word.text}.")
        return _ask(f"It writes {_shown(word.text)}, and no Edit rule allows that.")

    def _read(self, word: Word) -> Decision:
        if self.files.readable(word):
            return Decision(Outcome.ALLOW, "It only reads, inside the workspace.")
        return _ask(f"It reads {_shown(word.text)}, which is not in the workspace.")

    def fault(self, fault: str) -> Decision:
        if self.whole is not None and (not self.policy.restricts_commands or fault == "a substitution"):
            return self.whole.says(f"{self.whole.rule.text} allows every command.")
        return _ask(f"Not all of it is understood: {fault}.")


def _ask(reason: str) -> Decision:
    return Decision(Outcome.ASK, reason)


def _files_in(word: Word) -> list[Word]:
    """What of a word may be a file's name: all of it, a value behind `=`, `-f`, `@` or `:`, as in `curl -d @FILE` and
    `git show HEAD:FILE`.
    """
    text = word.text
    if text.isalnum():
        return [word]
    found = [] if text.startswith("-") else [word]
    if text.startswith("-") and not text.startswith("--"):
        found.append(Word(text[2:], word.globs))
    for mark in ("=", "@", ":"):
        before, _, value = text.partition(mark)
        if value and before != text:
            found.append(Word(value.lstrip("@<"), word.globs))
    return [each for each in found if each.text]


def _covers(pattern: TextPattern, words: Argv) -> bool:
    """Whether a rule says these words literally."""
    return f"{pattern.head} ".startswith(f"{_canonical(words)} ")


def _canonical(words: Argv) -> str:
    """The command with each word quoted where it must be, so that what is one word stays one."""
    return " ".join(_quoted(word.text) for word in words)


def _quoted(text: str) -> str:
    if text and not _QUOTED.search(text):
        return text
    return shlex.quote(text.replace("\0", "…"))


def _plain(text: str) -> str:
    """What is not known has a mark that no log can hold."""
    return text.replace(UNKNOWN, "…")[:200]


def _shown(text: str) -> str:
    return f"`{_plain(text)}`"


def _no_rule(found: Reach, files: Files) -> str:
    if found.harmless:
        outside = next((word.text for word in found.reads if not files.readable(word)), "")
        return f"No rule allows it, and {_shown(outside)} is not surely in the workspace."
    return f"No rule allows it, and {found.concerns[0].text}." if found.concerns else "No rule allows it."
