"""Matches paths against path rules: gitignore patterns in one of four forms, as in Claude Code.

- `//x` is relative to the root of the file system.
- `~/x` is relative to the home directory.
- `/x` is relative to the root of the working tree.
- `x`, without an anchor, follows gitignore below the working tree: a name without a slash matches at any depth.

In two cases, a pattern without an anchor matches more in a deny or ask rule than in an allow rule:

- `./x` means `/x` in an allow rule, and `x` in a deny or ask rule.
- `src/**` matches only at the root of the working tree in an allow rule, and at any depth in a deny or ask rule.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.text.linear_regex import LinearRegex, UnsupportedPattern
from footplate.gate.rules.evaluation_budget import PER_SEARCH
from footplate.gate.rules.glob_overlap import globs_may_overlap
from footplate.gate.rules.path_context import FileTarget, PathContext, is_under

MAX_WILDCARDS: Final = 40
"""Wildcards in one pattern."""
_WILDCARDS: Final = "*?["
_ONE_DIRECTORY: Final = re.compile(r"[^/*?\[]+/\*\*")
PROTECTED: Final = (
    ".git", ".claude", ".vscode", ".idea", ".husky", ".devcontainer", ".ssh", ".mcp.json", ".claude.json", ".gitconfig",
    ".gitmodules", ".gitattributes", ".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".inputrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", "pip.conf",
    ".netrc", ".curlrc", ".wgetrc", ".vimrc", ".exrc", ".ripgreprc", ".pre-commit-config.yaml", "CLAUDE.md",
    "CLAUDE.local.md", ".cargo", "sitecustomize.py", "usercustomize.py",
)  # fmt: skip
"""Files and directories that tools and shells execute or read as configuration. Writing one is a way to run a command
later, so an allow rule covers it only if the rule names it.
"""
_PROTECTED: Final = frozenset(PROTECTED)
_NAMED_GROUP: Final = "(?P<ps_d>"
"""pathspec puts a named group into each pattern. A name may occur only once, so it is removed before patterns are
joined.
"""
_MIN_BYTES: Final = 32 * 1024
_BYTES_PER_CHARACTER: Final = 128
"""Memory limit of RE2 for one pattern: a minimum, and an amount for each character."""
_JOINED_BYTES: Final = 2 * 1024 * 1024
_JOINED_CHARACTERS: Final = 4000
"""Characters of patterns that are joined into one expression. A longer expression would be slow to compile."""


@dataclass(frozen=True)
class PathPattern:
    """The path pattern of one rule."""

    text: str
    outcome: PermissionOutcome

    @cached_property
    def anchor(self) -> str:
        for prefix in ("//", "~/", "/"):
            if self.text.startswith(prefix):
                return prefix
        return ""

    @cached_property
    def wildcards(self) -> int:
        """The number of wildcards. The cost of a search grows with it."""
        return sum(map(self.text.count, _WILDCARDS))

    @cached_property
    def _relative(self) -> str:
        """The gitignore pattern, relative to the anchor."""
        text = self.text[len(self.anchor) :]
        dotted = text.startswith("./") and not self.anchor
        text = text[2:] if dotted else text
        if self.anchor or (dotted and self.outcome is PermissionOutcome.ALLOW):
            return text if text.startswith("**") else f"/{text}"
        if self.outcome is not PermissionOutcome.ALLOW and _ONE_DIRECTORY.fullmatch(text):
            return f"**/{text}"
        return text

    @cached_property
    def _regex(self) -> LinearRegex | None:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(self._relative)
        if regex is None:
            return None
        expression = str(regex).replace(_NAMED_GROUP, "(?:")
        return LinearRegex(expression, _MIN_BYTES + _BYTES_PER_CHARACTER * len(expression))

    @property
    def expression(self) -> str | None:
        """The regular expression that `covers` uses below the base directory, for joining with others."""
        return None if self._regex is None else self._regex.pattern

    @property
    def is_valid(self) -> bool:
        try:
            return self._regex is not None
        except (GitIgnorePatternError, UnsupportedPattern, re.error):
            return False

    def covers(self, path: str, context: PathContext) -> bool:
        """Return whether the pattern matches an absolute, normalised path."""
        regex = self._regex
        relative_path = _relative_to(path, self.base_directory(context))
        if regex is None or relative_path is None:
            return False
        context.budget.spend(PER_SEARCH + self.wildcards * len(relative_path))
        if regex.search(relative_path):
            return True
        return self.outcome is not PermissionOutcome.ALLOW and regex.search(f"{relative_path}/")

    def forbids(self, target: FileTarget, context: PathContext) -> bool:
        """Return whether a deny or ask rule matches the file by its path or by its resolved path."""
        if self.covers(target.path, context):
            return True
        return target.real_path not in {None, target.path} and self.covers(str(target.real_path), context)

    def permits(self, target: FileTarget, context: PathContext) -> bool:
        """Return whether an allow rule matches the file by its path and by its resolved path."""
        if target.real_path is None or not self.covers(target.path, context):
            return False
        return target.real_path == target.path or self.covers(target.real_path, context)

    def may_cover(self, glob: str, context: PathContext) -> bool:
        """Return whether a file that an absolute glob matches may be covered."""
        base = self.base_directory(context).rstrip("/")
        pattern = self._relative
        anchored = "/" in pattern.rstrip("/")
        whole = f"{base}/{pattern.lstrip('/')}" if anchored else f"{base}/**/{pattern}"
        return globs_may_overlap(glob, whole, context.budget) or globs_may_overlap(glob, f"{whole}/**", context.budget)

    def names_component(self, component: str) -> bool:
        """Return whether the pattern contains this path component literally."""
        return component in self.text.split("/")

    def base_directory(self, context: PathContext) -> str:
        """Return the directory to which the pattern is relative."""
        if self.anchor == "//":
            return "/"
        return context.home if self.anchor == "~/" else context.root


class ForbiddenPaths:
    """Searches for all deny and ask patterns at once. This is fast because most files match none of them."""

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        by_anchor: dict[str, list[PathPattern]] = {}
        for pattern in patterns:
            by_anchor.setdefault(pattern.anchor, []).append(pattern)
        self._groups: Final = [
            (group[0], _join_patterns(group), sum(each.wildcards for each in group)) for group in by_anchor.values()
        ]

    def forbids(self, target: FileTarget, context: PathContext) -> bool:
        """Return whether one of the patterns forbids the file."""
        paths = (target.path,) if target.real_path in {None, target.path} else (target.path, str(target.real_path))
        for first, regexes, wildcards in self._groups:
            base = first.base_directory(context)
            for path in paths:
                relative_path = _relative_to(path, base)
                if relative_path is None:
                    continue
                context.budget.spend(PER_SEARCH * len(regexes) + wildcards * len(relative_path))
                if any(regex.search(relative_path) or regex.search(f"{relative_path}/") for regex in regexes):
                    return True
        return False


def _join_patterns(patterns: Sequence[PathPattern]) -> Sequence[LinearRegex]:
    """Join the patterns into one expression, or into several if one would be too large."""
    groups: list[list[str]] = []
    size = _JOINED_CHARACTERS
    for each in patterns:
        if each.expression is None:
            continue
        if size + len(each.expression) > _JOINED_CHARACTERS:
            groups.append([])
            size = 0
        groups[-1].append(f"(?:{each.expression})")
        size += len(each.expression)
    return [LinearRegex("|".join(group), _JOINED_BYTES) for group in groups]


def _relative_to(path: str, base: str) -> str | None:
    if not is_under(path, base):
        return None
    return path[1:] if base == "/" else path[len(base) + 1 :]


def find_protected_component(path: str) -> str | None:
    """Return the first component of a path that is in `PROTECTED`, or None."""
    return next((part for part in path.split("/") if part in _PROTECTED), None)
