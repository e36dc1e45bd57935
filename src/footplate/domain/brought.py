"""What a repository brings for its agents beside its code: instructions, hooks, servers. And how far that is trusted.

It is read from the commit that a session began with, never from the working tree: what an agent writes, and what it
commits, is not told to it as somebody else's word. Pure: which files count, what they import, and within what bounds.
Whoever has the commit reads the files (`trees`); a harness decides what becomes of them.
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
"""Of all files together."""
LONGEST_FILE: Final = 64 * 1024
LONGEST_PATH: Final = 500
IMPORTS_DEEP: Final = 5
"""How many files may import one another in a row."""

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
    """Named by a file of instructions."""
    SCRIPT = "script"
    """Another file below `.claude`, which a hook may run."""
    SETTINGS = "settings"
    SERVERS = "servers"
    OTHER = "other"
    """Known to be there, and given to nobody: agents, settings of one person, output styles, plugins."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Files of a session's base commit, by their paths. Equal where nothing that counts is different."""

    trust: Trust = Trust.NOTHING
    commit: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def kind(path: str) -> Kind | None:
    """What a file of the commit is; None: nothing that concerns an agent unless an instruction names it."""
    folders, name = posixpath.split(path)
    if name == "CLAUDE.md" and ".claude" not in folders.split("/")[:-1]:
        return Kind.INSTRUCTIONS
    if path.startswith(".claude/"):
        return _own(path.removeprefix(".claude/"), name)
    if name == "CLAUDE.local.md":
        return Kind.OTHER
    return Kind.SERVERS if path == ".mcp.json" else None


def _own(path: str, name: str) -> Kind | None:
    """The same of a file below `.claude`."""
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
    """What the record says of a file that is not wanted; None: not worth a word."""
    return _WHY_NOT.get(found)


def may_import(found: Kind | None) -> bool:
    return found in {Kind.INSTRUCTIONS, Kind.RULE, Kind.IMPORT, None}


def imports(path: str, text: str) -> Iterator[str]:
    """Paths in the commit that an instruction names by `@`, outside code. What leads out of the commit is not one."""
    for match in _IMPORT.finditer(_CODE.sub(" ", text)):
        named = match["path"].replace("\\ ", " ").partition("#")[0].rstrip(".,;:!?)'\"")
        if not named or named.startswith(("/", "~")):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
        if target != ".." and not target.startswith("../") and target != "." and len(target) <= LONGEST_PATH:
            yield target


def text_of(content: bytes) -> str | None:
    """None: it is no text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
