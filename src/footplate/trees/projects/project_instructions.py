"""Reads a project's instructions for agents (`domain.projects.project_instructions`) from the git objects of a commit.

Working trees are never read. Symbolic links are not followed, because their target may be outside the commit. Files
that are skipped because of their size, number or type are reported by name, so that a user can see the reason.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.projects import project_instructions
from footplate.domain.projects.project import Trust
from footplate.domain.projects.project_instructions import InstructionKind, ProjectInstructions, SkippedFile
from footplate.trees.git import Git

_LINK_MODE: Final = "120000"
_FILE_MODES: Final = frozenset({"100644", "100755"})
_MAX_REPORTED: Final = 100


@dataclass(frozen=True, slots=True)
class _TreeFile:
    path: str
    mode: str
    blob_id: str
    """The id of its blob."""
    size: int


async def read_instructions(git: Git, commit: str, trust: Trust) -> ProjectInstructions:
    if trust is Trust.NOTHING:
        return ProjectInstructions(commit=commit)
    reader = _InstructionReader(git, commit, trust)
    await reader.read_all()
    return ProjectInstructions(
        trust=trust, commit=commit, files=reader.files, skipped=tuple(reader.skipped.values())[:_MAX_REPORTED]
    )


@dataclass(slots=True)
class _InstructionReader:
    git: Git
    commit: str
    trust: Trust
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: dict[str, SkippedFile] = field(default_factory=dict)
    total_bytes: int = 0

    async def read_all(self) -> None:
        listed = [found async for found in self._list_commit() if self._is_wanted(found)]
        listed.sort(key=lambda found: (found.path.count("/"), found.path))
        await self._load_files(listed)
        importers = [
            path for path in self.files if project_instructions.allows_imports(project_instructions.classify_path(path))
        ]
        for _ in range(project_instructions.MAX_IMPORT_DEPTH):
            named = [
                path for path in self._list_imports(importers) if path not in self.files and path not in self.skipped
            ]
            if not named:
                return
            importers = await self._load_files([found async for found in self._list_paths([*dict.fromkeys(named)])])

    def _is_wanted(self, found: _TreeFile) -> bool:
        """Whether to load this file of the commit. Records known files that are not wanted."""
        if found.path in {".claude", ".claude/rules", ".claude/skills", ".claude/commands", ".claude/hooks"}:
            self._skip(
                found.path,
                "is a symbolic link, which is not followed" if found.mode == _LINK_MODE else "is not a directory",
            )
            return False
        kind = project_instructions.classify_path(found.path)
        if kind is None:
            return False
        if not project_instructions.is_loaded(kind, self.trust):
            if (reason := project_instructions.skip_reason(kind)) is not None:
                self._skip(found.path, reason)
            return False
        return True

    def _list_imports(self, paths: Iterable[str]) -> list[str]:
        found: list[str] = []
        for path in paths:
            if (text := project_instructions.decode_text(self.files[path])) is not None:
                found += project_instructions.find_imports(path, text)
        return found

    async def _load_files(self, listed: Iterable[_TreeFile]) -> list[str]:
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
            self.files[found.path] = await self.git.run("cat-file", "blob", found.blob_id)
        for found in loaded:
            if (
                project_instructions.classify_path(found.path) is not InstructionKind.SCRIPT
                and project_instructions.decode_text(self.files[found.path]) is None
            ):
                del self.files[found.path]
                self._skip(found.path, "is not a text file")
        return [found.path for found in loaded if found.path in self.files]

    def _skip_reason(self, found: _TreeFile) -> str | None:
        if found.mode == _LINK_MODE:
            return "is a symbolic link, which is not followed"
        if found.mode not in _FILE_MODES:
            return "is not a regular file"
        if found.size > project_instructions.MAX_FILE_BYTES:
            return f"is larger than {project_instructions.MAX_FILE_BYTES} bytes"
        if len(self.files) >= project_instructions.MAX_FILES:
            return f"exceeds the limit of {project_instructions.MAX_FILES} files"
        if self.total_bytes + found.size > project_instructions.MAX_TOTAL_BYTES:
            return f"exceeds the total limit of {project_instructions.MAX_TOTAL_BYTES} bytes"
        return None

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.setdefault(path, SkippedFile(path, reason))

    async def _list_commit(self) -> AsyncIterator[_TreeFile]:
        rest = b""
        async with self.git.stream_output("ls-tree", "-r", "-z", "-l", "--full-tree", self.commit) as pieces:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\0")
                for line in lines:
                    if (found := _parse_entry(line)) is not None:
                        yield found

    async def _list_paths(self, paths: list[str]) -> AsyncIterator[_TreeFile]:
        """Yields the files that the commit has at these paths, without directories."""
        out = await self.git.run(
            "ls-tree", "-z", "-l", "--full-tree", self.commit, "--", *paths[: project_instructions.MAX_FILES]
        )
        for line in out.split(b"\0"):
            if (
                (found := _parse_entry(line)) is not None
                and found.path in paths
                and found.mode in {_LINK_MODE, *_FILE_MODES}
            ):
                yield found


def _parse_entry(line: bytes) -> _TreeFile | None:
    if not line:
        return None
    metadata, tab, path = line.partition(b"\t")
    fields = metadata.decode("ascii").split()
    if not tab or len(fields) != 4:  # noqa: PLR2004 - mode, type, name, size
        raise Permanent("git listed a commit in an unknown format.")
    try:
        text_path = path.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if len(text_path) > project_instructions.MAX_PATH_CHARACTERS:
        return None
    return _TreeFile(text_path, fields[0], fields[2], int(fields[3]) if fields[3].isdigit() else 0)
