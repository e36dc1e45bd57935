"""Reads a project's instructions (`domain.brought`) from the git objects of a commit. Working trees are never read.

Links are not followed, because their target need not be part of the commit. Files that are skipped for their size,
number or type are reported by name, so that a user can see why they have no effect.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Final

from footplate.domain import brought
from footplate.domain.brought import Brought, Kind, LeftOut
from footplate.domain.errors import Permanent
from footplate.domain.projects import Trust
from footplate.trees.git import Git

_LINK: Final = "120000"
_FILES: Final = frozenset({"100644", "100755"})
_MOST_TOLD: Final = 100


@dataclass(frozen=True, slots=True)
class _Listed:
    path: str
    mode: str
    name: str
    """The id of its blob."""
    size: int


async def read(git: Git, commit: str, trust: Trust) -> Brought:
    if trust is Trust.NOTHING:
        return Brought(commit=commit)
    bringing = _Bringing(git, commit, trust)
    await bringing.read()
    return Brought(
        trust=trust, commit=commit, files=bringing.files, left_out=tuple(bringing.left_out.values())[:_MOST_TOLD]
    )


@dataclass(slots=True)
class _Bringing:
    git: Git
    commit: str
    trust: Trust
    files: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    size: int = 0

    async def read(self) -> None:
        listed = [found async for found in self._all() if self._concerns(found)]
        listed.sort(key=lambda found: (found.path.count("/"), found.path))
        await self._take(listed)
        begins = [path for path in self.files if brought.may_import(brought.kind(path))]
        for _ in range(brought.IMPORTS_DEEP):
            named = [path for path in self._imports(begins) if path not in self.files and path not in self.left_out]
            if not named:
                return
            begins = await self._take([found async for found in self._listed([*dict.fromkeys(named)])])

    def _concerns(self, found: _Listed) -> bool:
        """Whether to load this file of the commit. Records known files that are not wanted."""
        if found.path in {".claude", ".claude/rules", ".claude/skills", ".claude/commands", ".claude/hooks"}:
            self._leave(found.path, "is a link, which is not followed" if found.mode == _LINK else "is not a directory")
            return False
        kind = brought.kind(found.path)
        if kind is None:
            return False
        if not brought.wanted(kind, self.trust):
            if (reason := brought.why_not(kind)) is not None:
                self._leave(found.path, reason)
            return False
        return True

    def _imports(self, paths: Iterable[str]) -> list[str]:
        found: list[str] = []
        for path in paths:
            if (text := brought.text_of(self.files[path])) is not None:
                found += brought.imports(path, text)
        return found

    async def _take(self, listed: Iterable[_Listed]) -> list[str]:
        """Loads the files that are within the limits and returns their paths."""
        taken = []
        for found in listed:
            if (reason := self._refusal(found)) is not None:
                self._leave(found.path, reason)
                continue
            taken.append(found)
            self.size += found.size
            self.files[found.path] = b""
        for found in taken:
            self.files[found.path] = await self.git.run("cat-file", "blob", found.name)
        for found in taken:
            if brought.kind(found.path) is not Kind.SCRIPT and brought.text_of(self.files[found.path]) is None:
                del self.files[found.path]
                self._leave(found.path, "is not a text file")
        return [found.path for found in taken if found.path in self.files]

    def _refusal(self, found: _Listed) -> str | None:
        if found.mode == _LINK:
            return "is a link, which is not followed"
        if found.mode not in _FILES:
            return "is not a regular file"
        if found.size > brought.LONGEST_FILE:
            return f"is larger than {brought.LONGEST_FILE} bytes"
        if len(self.files) >= brought.MOST_FILES:
            return f"exceeds the limit of {brought.MOST_FILES} files"
        if self.size + found.size > brought.MOST_BYTES:
            return f"exceeds the total limit of {brought.MOST_BYTES} bytes"
        return None

    def _leave(self, path: str, reason: str) -> None:
        self.left_out.setdefault(path, LeftOut(path, reason))

    async def _all(self) -> AsyncIterator[_Listed]:
        rest = b""
        async with self.git.stream("ls-tree", "-r", "-z", "-l", "--full-tree", self.commit) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\0")
                for line in lines:
                    if (found := _parsed(line)) is not None:
                        yield found

    async def _listed(self, paths: list[str]) -> AsyncIterator[_Listed]:
        """Yields the files that the commit has at these paths, without directories."""
        out = await self.git.run("ls-tree", "-z", "-l", "--full-tree", self.commit, "--", *paths[: brought.MOST_FILES])
        for line in out.split(b"\0"):
            if (found := _parsed(line)) is not None and found.path in paths and found.mode in {_LINK, *_FILES}:
                yield found


def _parsed(line: bytes) -> _Listed | None:
    if not line:
        return None
    facts, tab, path = line.partition(b"\t")
    words = facts.decode("ascii").split()
    if not tab or len(words) != 4:  # noqa: PLR2004 - mode, type, name, size
        raise Permanent("git printed an unknown format when it listed a commit.")
    try:
        readable = path.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if len(readable) > brought.LONGEST_PATH:
        return None
    return _Listed(readable, words[0], words[2], int(words[3]) if words[3].isdigit() else 0)
