"""Matches the files that a command names against the path rules."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from footplate.domain.permissions import Outcome
from footplate.gate.evaluation_budget import PER_SEARCH
from footplate.gate.globs import names_may_meet
from footplate.gate.paths import PROTECTED, protected
from footplate.gate.places import Place, Target, normal, target
from footplate.gate.policy import Placed, Policy
from footplate.gate.rules import EDIT, READ
from footplate.gate.shell.words import UNKNOWN, Word

NOWHERE: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/zero"})
_PROGRAMS: Final = re.compile(r"/(?:(?:usr/)?(?:s?bin|lib)|usr/local/s?bin|lib64|opt)(?:/|\Z)")
"""Directories of program files."""
_GLOB: Final = re.compile(r"[*?\[]")
_DOTS: Final = re.compile(r"\.[*?\[]")


class _Meaning(NamedTuple):
    targets: list[Target] | None
    forbidden: list[Target]
    """The targets that a deny or ask rule matches."""


@dataclass(frozen=True, slots=True)
class Files:
    """Resolves the words of one command line to files, in all directories in which it may run."""

    policy: Policy
    place: Place
    directories: tuple[str, ...] | None
    """The directories in which the command may run. None if they are not known."""
    values: tuple[Word, ...] = ()
    """The values that the command line assigns to variables."""
    _known: dict[Word, _Meaning] = field(default_factory=dict, init=False, compare=False)

    def targets(self, argument: Word) -> list[Target] | None:
        """Return the files that a word may refer to, or None if they are not known. For a glob, return the directory
        that it searches.
        """
        return self._meaning(argument).targets

    def _meaning(self, argument: Word) -> _Meaning:
        if (cached := self._known.get(argument)) is not None:
            return cached
        targets = self._targets(argument)
        forbidden: list[Target] = []
        if targets and self.policy.restricts_files:
            forbidden_paths = self.policy.forbidden_paths
            forbidden = [each for each in targets if forbidden_paths.forbids(each, self.place)]
        self._known[argument] = resolved = _Meaning(targets, forbidden)
        return resolved

    def _targets(self, argument: Word) -> list[Target] | None:
        text = argument.text
        if UNKNOWN in text or argument.faults:
            return None
        if argument.globs:
            found = _GLOB.search(text)
            text = text[: found.start()] if found else text
            rest = argument.text[len(text) :]
            if ".." in rest.split("/") or any(
                _DOTS.match(part) and names_may_meet(part, "..") for part in argument.text.split("/")
            ):
                return None  # shells disagree on whether `.?` matches the parent directory
            text = text.rpartition("/")[0] or ("/" if text.startswith("/") else ".")
        self.place.budget.spend(PER_SEARCH * len(self.directories or ("/",)))
        if self.directories is None:
            return [target(self.place, "/", text)] if text.startswith("/") else None
        return [target(self.place, directory, text) for directory in self.directories]

    def suspicious(self, argument: Word) -> bool:
        """Return whether a deny or ask rule matches the file. For most files there is none."""
        return self.policy.restricts_files and bool(self._meant(argument))

    def forbidden(self, outcome: Outcome, argument: Word, *, writes: bool) -> Placed | None:
        """Return a rule that certainly covers the file, or the whole directory that a glob searches."""
        for each in self._meant(argument):
            for tool in (READ, EDIT) if writes else (READ,):
                if (matched := self.policy.find_path_rule(tool, outcome, each, self.place)) is not None:
                    return matched
        return None

    def _meant(self, argument: Word) -> list[Target]:
        """Return the forbidden files that a word may refer to. A variable may have any value that the same command line
        assigns.
        """
        found = self._meaning(argument).forbidden
        if argument.text != UNKNOWN:
            return found
        return [*found, *(each for value in self.values for each in self._meaning(value).forbidden)]

    def doubtful(self, argument: Word, *, writes: bool) -> Placed | None:
        """Return a deny or ask rule that may cover the file, if the file is not known or a glob may match several."""
        rules = self.policy.restricting_path_rules(writes=writes)
        if not rules:
            return None
        targets = self.targets(argument)
        if targets is None or any(each.real_path is None for each in targets):
            return rules[0][0]
        if not argument.globs:
            return None
        for directory in self.directories or ("/",):
            glob = normal(posixpath.join(directory, argument.text))
            for placed, pattern in rules:
                if pattern.may_cover(glob, self.place):
                    return placed
        return None

    def inside(self, argument: Word) -> bool:
        """Return whether the file is certainly in the workspace."""
        targets = self.targets(argument)
        return targets is not None and all(
            each.real_path is not None and self.place.contains(each.path) and self.place.contains(each.real_path) for each in targets
        )

    def readable(self, argument: Word) -> bool:
        """Return whether the file may be read: it is in the workspace, or a rule allows reading it."""
        if self.inside(argument) or argument.text in NOWHERE:
            return True
        return self._permitted(READ, argument) is not None

    def writable(self, argument: Word) -> Placed | None:
        """Return the rule that allows writing the file."""
        return self._permitted(EDIT, argument)

    def guarded(self, argument: Word) -> str | None:
        """Return the protected component of a path, which a rule covers only by name. A glob may match such a path."""
        if argument.globs and (part := _may_be_protected(argument.text)) is not None:
            return part
        for each in self.targets(argument) or ():
            for path in (each.path, each.real_path or ""):
                if (part := protected(path.removeprefix(self.place.root))) is not None:
                    return part
        return None

    def programs(self, arguments: Sequence[Word]) -> Word | None:
        """Return the first word that names a file in a directory of programs."""
        for argument in arguments:
            for each in self.targets(argument) or ():
                if _PROGRAMS.match(each.path) or _PROGRAMS.match(each.real_path or "/"):
                    return argument
        return None

    def _permitted(self, tool: str, argument: Word) -> Placed | None:
        targets = self.targets(argument)
        if not targets or argument.globs:
            return None
        found: Placed | None = None
        part = self.guarded(argument) if tool == EDIT else None
        for each in targets:
            found = next(
                (
                    placed
                    for placed, pattern in self.policy.path_rules(tool, Outcome.ALLOW)
                    if pattern.permits(each, self.place) and (part is None or pattern.names_component(part))
                ),
                None,
            )
            if found is None:
                return None
        return found


def _may_be_protected(glob: str) -> str | None:
    """Return a protected name that a glob may match. Only components with literal text before the wildcard are checked:
    a `*` alone is treated like its directory.
    """
    for step in glob.split("/"):
        found = _GLOB.search(step)
        if found is None or not found.start():
            continue
        spelt = step[: found.start()]
        for name in PROTECTED:
            if name.startswith(spelt) and names_may_meet(step, name):
                return name
    return None
