"""Project instructions: the files that a repository provides for agents (CLAUDE.md, rules, skills, hooks, MCP servers).

They are read from the session's base commit and not from the working tree, so an agent cannot write instructions to
itself. This module decides which files count, which files they import, the size limits, and which of them the project's
trust level admits. `trees` reads the files, and the harness applies them.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from footplate.domain.projects import Trust

MOST_FILES: Final = 200
MOST_BYTES: Final = 512 * 1024
"""Limit on the total size of all files."""
LONGEST_FILE: Final = 64 * 1024
LONGEST_PATH: Final = 500
IMPORTS_DEEP: Final = 5
"""Maximum length of a chain of imports."""

_CODE: Final = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?(?:^(?P=fence)|\Z)|`[^`\n]*`|<!--.*?(?:-->|\Z)", re.MULTILINE | re.DOTALL
)
_IMPORT: Final = re.compile(r"(?:^|(?<=\s))@(?P<path>(?:\\ |[^\s@])+)")


class Kind(StrEnum):
    INSTRUCTIONS = "instructions"
    RULE = "rule"
    SKILL = "skill"
    COMMAND = "command"
    IMPORT = "import"
    """A file that an instruction file imports."""
    SCRIPT = "script"
    """Any other file below `.claude`; a hook may run it."""
    SETTINGS = "settings"
    SERVERS = "servers"
    OTHER = "other"
    """A known file that is never loaded: agents, personal settings, output styles, plugins."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """The loaded files of a session's base commit, by path. Two values are equal if the loaded files are the same."""

    trust: Trust = Trust.NOTHING
    commit: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def kind(path: str) -> Kind | None:
    """Classify a file of the commit. None: it does not concern agents unless an instruction file imports it."""
    folders, name = posixpath.split(path)
    if name == "CLAUDE.md" and ".claude" not in folders.split("/")[:-1]:
        return Kind.INSTRUCTIONS
    if path.startswith(".claude/"):
        return _own(path.removeprefix(".claude/"), name)
    if name == "CLAUDE.local.md":
        return Kind.OTHER
    return Kind.SERVERS if path == ".mcp.json" else None


def _own(path: str, name: str) -> Kind | None:
    """Classify a file below `.claude`."""
    folder, slash, rest = path.partition("/")
    if folder == "skills" and slash:
        return (Kind.SKILL if name == "SKILL.md" else None) if rest.count("/") == 1 else None
    if folder in {"rules", "commands"} and name.endswith(".md"):
        return Kind.RULE if folder == "rules" else Kind.COMMAND
    if path == "settings.json":
        return Kind.SETTINGS
    return Kind.SCRIPT if slash and folder not in _GIVEN_TO_NOBODY else Kind.OTHER


_GIVEN_TO_NOBODY: Final = frozenset({"agents", "output-styles", "plugins"})
_WORDS: Final = frozenset({Kind.INSTRUCTIONS, Kind.RULE, Kind.SKILL, Kind.COMMAND})
_WORKS: Final = frozenset({Kind.SETTINGS, Kind.SERVERS, Kind.SCRIPT})
_WHY_NOT: Final = {
    Kind.OTHER: "is not loaded from a repository",
    Kind.SETTINGS: "needs the trust 'all'",
    Kind.SERVERS: "needs the trust 'all'",
}


def wanted(found: Kind, trust: Trust) -> bool:
    if trust is Trust.ALL:
        return found in _WORDS | _WORKS
    return trust is Trust.INSTRUCTIONS and found in _WORDS


def why_not(found: Kind) -> str | None:
    """Return the recorded reason why a file is skipped. None: the skipped file is not recorded."""
    return _WHY_NOT.get(found)


def may_import(found: Kind | None) -> bool:
    return found in {Kind.INSTRUCTIONS, Kind.RULE, Kind.IMPORT, None}


def imports(path: str, text: str) -> Iterator[str]:
    """Yield the paths that an instruction file imports with `@`, except in code and outside the repository."""
    for match in _IMPORT.finditer(_CODE.sub(" ", text)):
        named = match["path"].replace("\\ ", " ").partition("#")[0].rstrip(".,;:!?)'\"")
        if not named or named.startswith(("/", "~")):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
        if target != ".." and not target.startswith("../") and target != "." and len(target) <= LONGEST_PATH:
            yield target


def text_of(content: bytes) -> str | None:
    """Decode a file as UTF-8. None: it is not text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
