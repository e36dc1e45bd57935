"""Project instructions: the files that a repository provides for agents (CLAUDE.md, rules, skills, hooks, MCP servers).

The files are read from the session's base commit, not from the working tree, so an agent cannot write instructions to
itself. This module decides which files are loaded, based on their names, their `@` imports, the size limits and the
project's trust level. `trees` reads the files, and the harness applies them.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from footplate.domain.projects.project import Trust

MAX_FILES: Final = 200
MAX_TOTAL_BYTES: Final = 512 * 1024
"""Limit on the total size of all files."""
MAX_FILE_BYTES: Final = 64 * 1024
MAX_PATH_CHARACTERS: Final = 500
MAX_IMPORT_DEPTH: Final = 5
"""Maximum length of a chain of imports."""

_CODE: Final = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?(?:^(?P=fence)|\Z)|`[^`\n]*`|<!--.*?(?:-->|\Z)", re.MULTILINE | re.DOTALL
)
_IMPORT: Final = re.compile(r"(?:^|(?<=\s))@(?P<path>(?:\\ |[^\s@])+)")


class InstructionKind(StrEnum):
    INSTRUCTIONS = "instructions"
    RULE = "rule"
    SKILL = "skill"
    COMMAND = "command"
    AGENT = "agent"
    """An agent of `.claude/agents`, which an agent with subagents may use."""
    IMPORT = "import"
    """A file that an instruction file imports."""
    SCRIPT = "script"
    """Any other file below `.claude`; a hook may run it."""
    SETTINGS = "settings"
    SERVERS = "servers"
    OTHER = "other"
    """A known file that is never loaded: personal settings, output styles, plugins."""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInstructions:
    """The loaded files of a session's base commit, by path. Two values are equal if the loaded files are the same."""

    trust: Trust = Trust.NOTHING
    commit: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    skipped: tuple[SkippedFile, ...] = ()


def classify_path(path: str) -> InstructionKind | None:
    """Classify a file of the commit. None: it does not concern agents unless an instruction file imports it."""
    folders, name = posixpath.split(path)
    if name == "CLAUDE.md" and ".claude" not in folders.split("/")[:-1]:
        return InstructionKind.INSTRUCTIONS
    if path.startswith(".claude/"):
        return _classify_claude_path(path.removeprefix(".claude/"), name)
    if name == "CLAUDE.local.md":
        return InstructionKind.OTHER
    return InstructionKind.SERVERS if path == ".mcp.json" else None


def _classify_claude_path(path: str, name: str) -> InstructionKind | None:
    """Classify a file below `.claude`."""
    folder, slash, rest = path.partition("/")
    if folder == "skills" and slash:
        return (InstructionKind.SKILL if name == "SKILL.md" else None) if rest.count("/") == 1 else None
    if folder == "agents" and name.endswith(".md"):
        return InstructionKind.AGENT
    if folder in {"rules", "commands"} and name.endswith(".md"):
        return InstructionKind.RULE if folder == "rules" else InstructionKind.COMMAND
    if path == "settings.json":
        return InstructionKind.SETTINGS
    return InstructionKind.SCRIPT if slash and folder not in _NEVER_LOADED_FOLDERS else InstructionKind.OTHER


_NEVER_LOADED_FOLDERS: Final = frozenset({"agents", "output-styles", "plugins"})
_INSTRUCTION_KINDS: Final = frozenset(
    {
        InstructionKind.INSTRUCTIONS,
        InstructionKind.RULE,
        InstructionKind.SKILL,
        InstructionKind.COMMAND,
        InstructionKind.AGENT,
    }
)
_EXECUTABLE_KINDS: Final = frozenset({InstructionKind.SETTINGS, InstructionKind.SERVERS, InstructionKind.SCRIPT})
_SKIP_REASONS: Final = {
    InstructionKind.OTHER: "is never loaded from a repository",
    InstructionKind.SETTINGS: "needs the trust level 'all'",
    InstructionKind.SERVERS: "needs the trust level 'all'",
}


def is_loaded(kind: InstructionKind, trust: Trust) -> bool:
    if trust is Trust.ALL:
        return kind in _INSTRUCTION_KINDS | _EXECUTABLE_KINDS
    return trust is Trust.INSTRUCTIONS and kind in _INSTRUCTION_KINDS


def skip_reason(kind: InstructionKind) -> str | None:
    """Return the recorded reason why a file is skipped. None: the skipped file is not recorded."""
    return _SKIP_REASONS.get(kind)


def allows_imports(kind: InstructionKind | None) -> bool:
    return kind in {InstructionKind.INSTRUCTIONS, InstructionKind.RULE, InstructionKind.IMPORT, None}


def find_imports(path: str, text: str) -> Iterator[str]:
    """Yield the paths that an instruction file imports with `@`, except in code and outside the repository."""
    for match in _IMPORT.finditer(_CODE.sub(" ", text)):
        target_path = match["path"].replace("\\ ", " ").partition("#")[0].rstrip(".,;:!?)'\"")
        if not target_path or target_path.startswith(("/", "~")):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target_path))
        if target != ".." and not target.startswith("../") and target != "." and len(target) <= MAX_PATH_CHARACTERS:
            yield target


def decode_text(content: bytes) -> str | None:
    """Decode a file as UTF-8. None: it is not text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
