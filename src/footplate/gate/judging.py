"""Evaluates the rules for one part of a command line: a simple command, a redirect, an assignment, or a text that
cannot be parsed.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from footplate.domain.permissions import Decision, Outcome
from footplate.gate.forbidding import Suspect, forbids, may_forbid, suspects
from footplate.gate.patterns import TextPattern
from footplate.gate.policy import FORBIDDING, Placed, Policy
from footplate.gate.shell.deeds import Argv, Write
from footplate.gate.shell.parts import Assignment, Redirect, Simple, Stdin
from footplate.gate.shell.reach import Reach, sets
from footplate.gate.shell.words import UNKNOWN, Word
from footplate.gate.touching import NOWHERE, Files

_LOOK_ONLY: Final = frozenset(
    {"ls", "file", "stat", "which", "readlink", "realpath", "test", "[", "du", "cd", "type", "command", "find"}
)
_QUOTED: Final = re.compile(r"[ \t\n'\"\\\0]")
_ALREADY: Final = Decision(Outcome.ASK, "An earlier part of the command requires approval.")
_Touched: TypeAlias = tuple[Word, bool]
"""A file, and whether it is written."""


@dataclass(frozen=True, slots=True)
class Judging:
    """Evaluates the parts of one command line."""

    policy: Policy
    files: Files
    whole: Placed | None
    """The rule that allows every command, if there is one."""

    def command(self, simple: Simple, found: Reach, *, only_denied: bool = False) -> Decision:
        """Decide a simple command. With `only_denied`, only deny and ask rules are evaluated."""
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
            return Decision(Outcome.ALLOW, "It only reads inside the workspace.")
        return obstacle or doubt or _ask(_no_rule(found, self.files))

    def _matching(self, simple: Simple) -> Sequence[tuple[Placed, TextPattern]]:
        """Return the allow rules that match the command, either normalised or as it was written."""
        rules = list(self.policy.commands(Outcome.ALLOW, simple.words[0].text))
        if not rules:
            return ()
        words, source = canonical(simple.words), simple.source
        self.files.place.budget.compare(len(rules), words + source)
        return [rule for rule in rules if rule[1].matches(words) or (source != "" and rule[1].matches(source))]

    def _forbidden(self, found: Reach, suspected: Sequence[Suspect], touched: Sequence[_Touched]) -> Decision | None:
        named = [(word, writes) for word, writes in touched if self.files.suspicious(word)]
        for outcome in FORBIDDING if suspected or named else ():
            for suspect in suspected:
                if (placed := forbids(self.policy, outcome, suspect)) is not None:
                    hidden = "" if suspect.argv is found.forms[0] else f", which {found.via[0]} runs"
                    return placed.says(f"{placed.rule.text} applies to `{canonical(suspect.argv)}`{hidden}.")
            for word, writes in named:
                if (placed := self.files.forbidden(outcome, word, writes=writes)) is not None:
                    return placed.says(f"{placed.rule.text} applies to the file {_plain(word.text)}.")
        return None

    def _suspects(self, forms: Sequence[Argv], directories: Sequence[str]) -> list[Suspect]:
        found = [each for form in forms for each in suspects(self.policy, form, self.files.place, directories)]
        for each in found:
            self.files.place.budget.compare(self.policy.count_commands(each.name), each.text)
        return found

    def _doubt(self, found: Reach, suspected: Sequence[Suspect], touched: Sequence[_Touched]) -> Decision | None:
        """Return an ask decision if a deny or ask rule may apply, depending on values only known at run time."""
        for suspect in suspected:
            if (placed := may_forbid(self.policy, suspect)) is not None:
                return _ask(f"{placed.rule.text} may apply to it: some of its arguments are only known at run time.")
        for suspect in self._suspects(found.maybe, ()):
            for outcome in FORBIDDING:
                if (placed := forbids(self.policy, outcome, suspect)) is not None:
                    return _ask(f"{placed.rule.text} may apply to it.")
        for word, writes in touched:
            if (placed := self.files.doubtful(word, writes=writes)) is not None:
                return _ask(f"{_shown(word.text)} may be a file that {placed.rule.text} applies to.")
        return self._mentioned(found)

    def _mentioned(self, found: Reach) -> Decision | None:
        """Return an ask decision if an argument of an unknown program may be a forbidden file, such as the value of an
        option.
        """
        if not self.policy.restricts_files:
            return None
        for word in (*found.mentions, *found.reads):
            for each in _files_in(word):
                for outcome in FORBIDDING if self.files.suspicious(each) else ():
                    if (placed := self.files.forbidden(outcome, each, writes=True)) is not None:
                        return _ask(f"It names {_shown(word.text)}, which {placed.rule.text} applies to.")
        return None

    def _by_whole(self, found: Reach, doubt: Decision | None) -> Decision:
        assert self.whole is not None
        if self.policy.restricts_commands:
            if doubt is not None:
                return doubt
            unseen = next((each for each in found.concerns if not each.seen), None)
            if unseen is not None:
                return _ask(f"A command that other rules forbid may be hidden in it: {unseen.text}.")
            if self._copies(found):
                return _ask(
                    "It reads or writes the file of a program, which may give a forbidden program another name."
                )
        return self.whole.says(f"{self.whole.rule.text} allows every command.")

    def _hindered(self, placed: Placed, pattern: TextPattern, simple: Simple, found: Reach) -> Decision | None:
        """Return why a matching allow rule does not apply, or None if it applies."""
        if pattern.exact and pattern.head == simple.source and simple.stdin is Stdin.OURS:
            return None  # a rule allows exactly this text
        if _leaves(pattern, simple.words):
            return _ask(f"{placed.rule.text} names a directory, and the path leaves this directory.")
        for concern in found.concerns:
            if concern.upto is None or not _covers(pattern, simple.words[: concern.upto]):
                return _ask(f"{placed.rule.text} does not cover it: {concern.text}.")
        for write in found.writes:
            if (why := self._unwritable(write)) is not None:
                return _ask(f"It writes {_shown(write.path.text)}, {why}.")
        return _ask("It reads or writes the file of a program.") if self._copies(found) else None

    def _unwritable(self, write: Write) -> str | None:
        word = write.path
        if word.text in NOWHERE or self.files.writable(word) is not None:
            return None
        if write.asked_for:
            return "and no Edit rule allows that"
        if not self.files.inside(word):
            return "which may be outside of the workspace"
        part = self.files.guarded(word)
        return f"and programs execute {part} or read it as configuration" if part is not None else None

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
            return Decision(Outcome.ALLOW, "It only sets a variable.")
        if self.whole is not None and not self.policy.restricts_commands:
            return self.whole.says(f"{self.whole.rule.text} allows every command.")
        return _ask(f"{why[0].upper()}{why[1:]}.")

    def redirect(self, redirect: Redirect, *, only_denied: bool = False) -> Decision:
        word, writes = redirect.target, redirect.writes
        if redirect.operator in {">&", "<&"} and (word.text.isdigit() or word.text == "-"):
            return Decision(Outcome.ALLOW, "It only duplicates a file descriptor.")
        if word.known and word.text in NOWHERE:
            return Decision(Outcome.ALLOW, "It redirects to a standard device such as /dev/null.")
        for outcome in FORBIDDING if self.files.suspicious(word) else ():
            if (placed := self.files.forbidden(outcome, word, writes=writes)) is not None:
                return placed.says(f"{placed.rule.text} applies to the file {_plain(word.text)}.")
        return _ALREADY if only_denied else self._by_file(redirect)

    def _by_file(self, redirect: Redirect) -> Decision:
        word = redirect.target
        if (placed := self.files.doubtful(word, writes=redirect.writes)) is not None:
            return _ask(f"{_shown(word.text)} may be a file that {placed.rule.text} applies to.")
        if self.whole is not None:
            return self.whole.says(f"{self.whole.rule.text} allows every command.")
        if not (redirect.writes or redirect.operator == "<") or not word.known:
            return _ask(f"The redirect {_shown(redirect.source)} cannot be analysed.")
        return self._written(word) if redirect.writes else self._read(word)

    def _written(self, word: Word) -> Decision:
        if (placed := self.files.writable(word)) is not None:
            return placed.says(f"{placed.rule.text} allows writing {word.text}.")
        return _ask(f"It writes {_shown(word.text)}, and no Edit rule allows that.")

    def _read(self, word: Word) -> Decision:
        if self.files.readable(word):
            return Decision(Outcome.ALLOW, "It only reads inside the workspace.")
        return _ask(f"It reads {_shown(word.text)}, which is not in the workspace.")

    def fault(self, fault: str) -> Decision:
        if self.whole is not None and (not self.policy.restricts_commands or fault == "a substitution"):
            return self.whole.says(f"{self.whole.rule.text} allows every command.")
        return _ask(f"The command cannot be analysed completely: {fault}.")


def _ask(reason: str) -> Decision:
    return Decision(Outcome.ASK, reason)


def _files_in(word: Word) -> list[Word]:
    """Return the parts of a word that may be a file name: the whole word, or a value after `=`, `-f`, `@` or `:`, as in
    `curl -d @FILE` and `git show HEAD:FILE`.
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
    """Return whether a rule contains these words literally."""
    return f"{pattern.head} ".startswith(f"{canonical(words)} ")


def _leaves(pattern: TextPattern, words: Argv) -> bool:
    """Return whether a rule ends in a directory, as `python scripts/*` does, and the path leaves it with `..`."""
    named = pattern.head.rpartition(" ")[2]
    if "/" not in named:
        return False
    return any(word.text.startswith(named) and ".." in word.text[len(named) :].split("/") for word in words)


def canonical(words: Argv) -> str:
    """Return the command with each word quoted where necessary, so that word boundaries stay unambiguous."""
    return " ".join(_quoted(word.text) for word in words)


def _quoted(text: str) -> str:
    if text and not _QUOTED.search(text):
        return text
    return shlex.quote(text.replace("\0", "…"))


def _plain(text: str) -> str:
    """Replace the marker of unknown text, which cannot be stored in the log."""
    return text.replace(UNKNOWN, "…")[:200]


def _shown(text: str) -> str:
    return f"`{_plain(text)}`"


def _no_rule(found: Reach, files: Files) -> str:
    if found.harmless:
        outside = next((word.text for word in found.reads if not files.readable(word)), "")
        return f"No rule allows it, and {_shown(outside)} may be outside of the workspace."
    return f"No rule allows it, and {found.concerns[0].text}." if found.concerns else "No rule allows it."
