"""Finds the files to which the arguments of a shell command may refer, and matches them against the path rules."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from footplate.domain.policy.permissions import PermissionOutcome
from footplate.gate.rules.evaluation_budget import PER_SEARCH
from footplate.gate.rules.glob_overlap import names_may_overlap
from footplate.gate.rules.layered_policy import LayeredRule, Policy
from footplate.gate.rules.path_context import FileTarget, PathContext, normalise_path, resolve_target
from footplate.gate.rules.path_pattern import PROTECTED, find_protected_component
from footplate.gate.rules.rule_parser import EDIT, READ
from footplate.gate.shell.word_expansion import UNKNOWN, Word

STANDARD_DEVICES: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/zero"})
_PROGRAM_DIRECTORIES: Final = re.compile(r"/(?:(?:usr/)?(?:s?bin|lib)|usr/local/s?bin|lib64|opt)(?:/|\Z)")
"""Directories of program files."""
_GLOB: Final = re.compile(r"[*?\[]")
_DOT_GLOB: Final = re.compile(r"\.[*?\[]")


class _ResolvedArgument(NamedTuple):
    targets: list[FileTarget] | None
    forbidden: list[FileTarget]
    """The targets that a deny or ask rule matches."""


@dataclass(frozen=True, slots=True)
class CommandFiles:
    """Resolves the words of one command line to files, in all directories in which it may run."""

    policy: Policy
    context: PathContext
    directories: tuple[str, ...] | None
    """The directories in which the command may run. None if they are not known."""
    assigned_values: tuple[Word, ...] = ()
    """The values that the command line assigns to variables."""
    _cache: dict[Word, _ResolvedArgument] = field(default_factory=dict, init=False, compare=False)

    def targets(self, argument: Word) -> list[FileTarget] | None:
        """Return the files that a word may refer to, or None if they are not known. For a glob, return the directory
        that it searches.
        """
        return self._resolve(argument).targets

    def _resolve(self, argument: Word) -> _ResolvedArgument:
        if (cached := self._cache.get(argument)) is not None:
            return cached
        targets = self._resolve_targets(argument)
        forbidden: list[FileTarget] = []
        if targets and self.policy.restricts_files:
            forbidden_paths = self.policy.forbidden_paths
            forbidden = [each for each in targets if forbidden_paths.forbids(each, self.context)]
        self._cache[argument] = resolved = _ResolvedArgument(targets, forbidden)
        return resolved

    def _resolve_targets(self, argument: Word) -> list[FileTarget] | None:
        text = argument.text
        if UNKNOWN in text or argument.faults:
            return None
        if argument.globs:
            found = _GLOB.search(text)
            text = text[: found.start()] if found else text
            rest = argument.text[len(text) :]
            if ".." in rest.split("/") or any(
                _DOT_GLOB.match(part) and names_may_overlap(part, "..") for part in argument.text.split("/")
            ):
                return None  # shells disagree on whether `.?` matches the parent directory
            text = text.rpartition("/")[0] or ("/" if text.startswith("/") else ".")
        self.context.budget.spend(PER_SEARCH * len(self.directories or ("/",)))
        if self.directories is None:
            return [resolve_target(self.context, "/", text)] if text.startswith("/") else None
        return [resolve_target(self.context, directory, text) for directory in self.directories]

    def is_forbidden(self, argument: Word) -> bool:
        """Return whether a deny or ask rule matches the file. For most files there is none."""
        return self.policy.restricts_files and bool(self._forbidden_targets(argument))

    def find_restricting_rule(self, outcome: PermissionOutcome, argument: Word, *, writes: bool) -> LayeredRule | None:
        """Return a rule that certainly covers the file, or the whole directory that a glob searches."""
        for each in self._forbidden_targets(argument):
            for tool in (READ, EDIT) if writes else (READ,):
                if (matched := self.policy.find_path_rule(tool, outcome, each, self.context)) is not None:
                    return matched
        return None

    def _forbidden_targets(self, argument: Word) -> list[FileTarget]:
        """Return the forbidden files that a word may refer to. A variable may have any value that the same command line
        assigns.
        """
        found = self._resolve(argument).forbidden
        if argument.text != UNKNOWN:
            return found
        return [*found, *(each for value in self.assigned_values for each in self._resolve(value).forbidden)]

    def find_possible_rule(self, argument: Word, *, writes: bool) -> LayeredRule | None:
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
            glob = normalise_path(posixpath.join(directory, argument.text))
            for placed, pattern in rules:
                if pattern.may_cover(glob, self.context):
                    return placed
        return None

    def is_in_workspace(self, argument: Word) -> bool:
        """Return whether the file is certainly in the workspace."""
        targets = self.targets(argument)
        return targets is not None and all(
            each.real_path is not None and self.context.contains(each.path) and self.context.contains(each.real_path)
            for each in targets
        )

    def is_readable(self, argument: Word) -> bool:
        """Return whether the file may be read: it is in the workspace, or a rule allows reading it."""
        if self.is_in_workspace(argument) or argument.text in STANDARD_DEVICES:
            return True
        return self._find_allow_rule(READ, argument) is not None

    def find_write_rule(self, argument: Word) -> LayeredRule | None:
        """Return the rule that allows writing the file."""
        return self._find_allow_rule(EDIT, argument)

    def find_protected_component(self, argument: Word) -> str | None:
        """Return the protected component of a path, which a rule covers only by name. A glob may match such a path."""
        if argument.globs and (part := _find_protected_match(argument.text)) is not None:
            return part
        for each in self.targets(argument) or ():
            for path in (each.path, each.real_path or ""):
                if (part := find_protected_component(path.removeprefix(self.context.root))) is not None:
                    return part
        return None

    def find_program_file(self, arguments: Sequence[Word]) -> Word | None:
        """Return the first word that names a file in a directory of programs."""
        for argument in arguments:
            for each in self.targets(argument) or ():
                if _PROGRAM_DIRECTORIES.match(each.path) or _PROGRAM_DIRECTORIES.match(each.real_path or "/"):
                    return argument
        return None

    def _find_allow_rule(self, tool: str, argument: Word) -> LayeredRule | None:
        targets = self.targets(argument)
        if not targets or argument.globs:
            return None
        found: LayeredRule | None = None
        part = self.find_protected_component(argument) if tool == EDIT else None
        for each in targets:
            found = next(
                (
                    placed
                    for placed, pattern in self.policy.path_rules(tool, PermissionOutcome.ALLOW)
                    if pattern.permits(each, self.context) and (part is None or pattern.names_component(part))
                ),
                None,
            )
            if found is None:
                return None
        return found


def _find_protected_match(glob: str) -> str | None:
    """Return a protected name that a glob may match. Only components with literal text before the wildcard are checked:
    a `*` alone is treated like its directory.
    """
    for step in glob.split("/"):
        found = _GLOB.search(step)
        if found is None or not found.start():
            continue
        literal = step[: found.start()]
        for name in PROTECTED:
            if name.startswith(literal) and names_may_overlap(step, name):
                return name
    return None
