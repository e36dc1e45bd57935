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
    blob_id: str
    """The id of its blob."""
    size: int


async def read(git: Git, commit: str, trust: Trust) -> Brought:
    if trust is Trust.NOTHING:
        return Brought(commit=commit)
    reader = _Bringing(git, commit, trust)
    await reader.read_all()
    return Brought(
        trust=trust, commit=commit, files=reader.files, left_out=tuple(reader.skipped.values())[:_MOST_TOLD]
    )


@dataclass(slots=True)
class _Bringing:
    git: Git
    commit: str
    trust: Trust
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: dict[str, LeftOut] = field(default_factory=dict)
    total_bytes: int = 0

    async def read_all(self) -> None:
        listed = [found async for found in self._list_commit() if self._is_wanted(found)]
        listed.sort(key=lambda found: (found.path.count("/"), found.path))
        await self._load_files(listed)
        importers = [path for path in self.files if brought.may_import(brought.kind(path))]
        for _ in range(brought.IMPORTS_DEEP):
            named = [path for path in self._list_imports(importers) if path not in self.files and path not in self.skipped]
            if not named:
                return
            importers = await self._load_files([found async for found in self._list_paths([*dict.fromkeys(named)])])

    def _is_wanted(self, found: _Listed) -> bool:
        """Whether to load this file of the commit. Records known files that are not wanted."""
        if found.path in {".claude", ".claude/rules", ".claude/skills", ".claude/commands", ".claude/hooks"}:
            self._skip(found.path, "is a link, which is not followed" if found.mode == _LINK else "is not a directory")
            return False
        kind = brought.kind(found.path)
        if kind is None:
            return False
        if not brought.wanted(kind, self.trust):
            if (reason := brought.why_not(kind)) is not None:
                self._skip(found.path, reason)
            return False
        return True

    def _list_imports(self, paths: Iterable[str]) -> list[str]:
        found: list[str] = []
        for path in paths:
            if (text := brought.text_of(self.files[path])) is not None:
                found += brought.imports(path, text)
        return found

    async def _load_files(self, listed: Iterable[_Listed]) -> list[str]:
        """Loads the files that are within the limits and returns their paths."""
        loaded = []
        for found in listed:
            if (reason := self._skip_reason(found)) is not None:
                self._skip(found.path, reason)
                continue
            loaded.append(found)
            self.total_bytes += found.size
            self.files[found.path] = b""
        for found in loaded:
            self.files[found.path] = await self.git.run("cat-file", "blob", found.name)
        for found in loaded:
            if brought.kind(found.path) is not Kind.SCRIPT and brought.text_of(self.files[found.path]) is None:
                del self.files[found.path]
                self._skip(found.path, "is not a text file")
        return [found.path for found in loaded if found.path in self.files]

    def _skip_reason(self, found: _Listed) -> str | None:
        if found.mode == _LINK:
            return "is a link, which is not followed"
        if found.mode not in _FILES:
            return "is not a regular file"
        if found.size > brought.LONGEST_FILE:
            return f"is larger than {brought.LONGEST_FILE} bytes"
        if len(self.files) >= brought.MOST_FILES:
            return f"exceeds the limit of {brought.MOST_FILES} files"
        if self.total_bytes + found.size > brought.MOST_BYTES:
            return f"exceeds the total limit of {brought.MOST_BYTES} bytes"
        return None

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.setdefault(path, LeftOut(path, reason))

    async def _list_commit(self) -> AsyncIterator[_Listed]:
        rest = b""
        async with self.git.stream_output("ls-tree", "-r", "-z", "-l", "--full-tree", self.commit) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\0")
                for line in lines:
                    if (found := _parsed(line)) is not None:
                        yield found

    async def _list_paths(self, paths: list[str]) -> AsyncIterator[_Listed]:
        """Yields the files that the commit has at these paths, without directories."""
        out = await self.git.run("ls-tree", "-z", "-l", "--full-tree", self.commit, "--", *paths[: brought.MOST_FILES])
        for line in out.split(b"\0"):
            if (found := _parsed(line)) is not None and found.path in paths and found.mode in {_LINK, *_FILES}:
                yield found


def _parsed(line: bytes) -> _Listed | None:
    if not line:
        return None
    metadata, tab, path = line.partition(b"\t")
    fields = metadata.decode("ascii").split()
    if not tab or len(fields) != 4:  # noqa: PLR2004 - mode, type, name, size
        raise Permanent("git printed an unknown format when it listed a commit.")
    try:
        text_path = path.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if len(text_path) > brought.LONGEST_PATH:
        return None
    return _Listed(text_path, fields[0], fields[2], int(fields[3]) if fields[3].isdigit() else 0)
