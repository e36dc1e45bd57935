"""Decides whether a new file is ignored by the `.gitignore` files above it, without starting git.

It supports names, `*`, `?`, and `**` as a whole path component. For any other pattern, or for too many or too long
rules, it raises `UnsupportedRule`.
"""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from footplate.domain.text.linear_regex import LinearRegex, UnsupportedPattern
from footplate.trees.safe_open import SafeDirectory

_NAME: Final = b".gitignore"
_MAX_FILE_BYTES: Final = 16 << 10
_MAX_RULES: Final = 300
"""Limit for all files that one snapshot reads."""
_MAX_DEPTH: Final = 50
_REGEX_BYTES: Final = 16 << 10
_SUPPORTED: Final = re.compile(rb"[^\[\]\\\x00]{1,200}")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class UnsupportedRule(Exception):
    """A `.gitignore` has a rule that only git can evaluate."""


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: LinearRegex
    is_negated: bool
    directories_only: bool
    matches_basename: bool
    """True: the rule is compared with the last path component. False: with the path relative to the rule's directory.
    """

    def matches(self, path: bytes, *, is_directory: bool) -> bool:
        if self.directories_only and not is_directory:
            return False
        text = path.rpartition(b"/")[2] if self.matches_basename else path
        return self.regex.fullmatch(text.decode("latin-1"))


class GitignoreMatcher:
    """Matches paths against `.gitignore` files. Each file is read once; create a new matcher for each snapshot.
    Blocking.
    """

    def __init__(self, workspace: SafeDirectory) -> None:
        self._workspace = workspace
        self._rules: dict[bytes, tuple[_Rule, ...]] = {}
        self._count = 0
        self._directories: dict[bytes, bool] = {b"": False}

    def is_ignored(self, path: bytes) -> bool:
        """Whether git ignores this file. Raises `UnsupportedRule`."""
        if path.count(b"/") > _MAX_DEPTH:
            raise UnsupportedRule
        return self._is_directory_ignored(path.rpartition(b"/")[0]) or self._decide(path, is_directory=False)

    def _is_directory_ignored(self, path: bytes) -> bool:
        """Whether the directory is ignored. Then everything in it is ignored too: no rule can include it again."""
        if path not in self._directories:
            above = self._is_directory_ignored(path.rpartition(b"/")[0])
            self._directories[path] = above or self._decide(path, is_directory=True)
        return self._directories[path]

    def _decide(self, path: bytes, *, is_directory: bool) -> bool:
        """Applies the last matching rule of the nearest `.gitignore` file that has a match."""
        directory = path
        while directory:
            directory = directory.rpartition(b"/")[0]
            below = path[len(directory) + 1 :] if directory else path
            for rule in reversed(self._rules_in(directory)):
                if rule.matches(below, is_directory=is_directory):
                    return not rule.is_negated
        return False

    def _rules_in(self, directory: bytes) -> tuple[_Rule, ...]:
        if directory not in self._rules:
            found = _parse(self._read(directory + b"/" + _NAME if directory else _NAME))
            self._count += len(found)
            if self._count > _MAX_RULES:
                raise UnsupportedRule
            self._rules[directory] = found
        return self._rules[directory]

    def _read(self, path: bytes) -> bytes:
        try:
            with self._workspace.inspect(path) as found:
                if found is None:
                    return b""
                if not found.is_file or found.status.st_size > _MAX_FILE_BYTES:
                    raise UnsupportedRule
                with found.open_file() as descriptor:
                    return os.read(descriptor, _MAX_FILE_BYTES)
        except OSError:
            raise UnsupportedRule from None


@lru_cache(maxsize=16)
def _parse(content: bytes) -> tuple[_Rule, ...]:
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    patterns = [line.removesuffix(b"\r").rstrip(b" ") for line in lines if not line.startswith(b"#")]
    patterns = [pattern for pattern in patterns if pattern not in {b"", b"/", b"!", b"!/"}]
    if len(patterns) > _MAX_RULES or any(not _SUPPORTED.fullmatch(pattern) for pattern in patterns):
        raise UnsupportedRule
    return tuple(map(_parse_rule, patterns))


def _parse_rule(pattern: bytes) -> _Rule:
    is_negated, pattern = pattern.startswith(b"!"), pattern.removeprefix(b"!")
    directories_only, pattern = pattern.endswith(b"/"), pattern.removesuffix(b"/")
    matches_basename = b"/" not in pattern
    try:
        regex = LinearRegex(_regex(pattern.removeprefix(b"/").decode("latin-1")), _REGEX_BYTES)
    except UnsupportedPattern:
        raise UnsupportedRule from None
    return _Rule(regex, is_negated, directories_only, matches_basename)


def _regex(pattern: str) -> str:
    names = pattern.split("/")
    parts: list[str] = []
    for number, name in enumerate(names):
        last = number == len(names) - 1
        if name == "**" and len(names) > 1:
            parts.append(".+" if last else "(?:.*/)?")
        elif "**" in name or not name:
            raise UnsupportedRule
        else:
            text = "".join({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char) for char in name)
            parts.append(text if last else f"{text}/")
    return "".join(parts)
