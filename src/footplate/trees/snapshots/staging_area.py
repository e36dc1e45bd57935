"""Copies the files of a working tree to a directory that the agent cannot access, before git stores them in a snapshot.

Each file is opened only once, so the agent cannot replace it between the check and the read. The copies are numbered,
and their real paths are passed to git separately.
"""

import errno
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from footplate.domain.files.snapshots import OmittedPath
from footplate.trees.safe_open import InspectedPath, SafeDirectory

FILE_MODE: Final = "100644"
EXECUTABLE_MODE: Final = "100755"
LINK_MODE: Final = "120000"

_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLimits:
    """Limits of one snapshot. Files beyond them are omitted and reported."""

    max_file_bytes: int = 256 << 20
    max_new_bytes: int = 2 << 30
    """Limit for all copied bytes. Files that are unchanged since the last snapshot are not copied."""
    timeout_seconds: float = 120


@dataclass(frozen=True, slots=True)
class StagedCopy:
    path: bytes
    mode: str
    file: Path
    status: os.stat_result
    """Status of the file in the workspace at the time of inspection."""


@dataclass(slots=True)
class StagingArea:
    """A directory owned by the host that receives the copies."""

    directory: Path
    limits: SnapshotLimits
    deadline: float
    """Deadline on the monotonic clock, checked here because a thread cannot be cancelled from outside."""
    copies: list[StagedCopy] = field(default_factory=list)
    missing: list[bytes] = field(default_factory=list)
    """Paths that no longer hold anything to store."""
    omitted: list[OmittedPath] = field(default_factory=list)
    _number: int = 0
    _bytes: int = 0

    def copy_paths(self, workspace: SafeDirectory, paths: Iterable[bytes]) -> None:
        """Copies these paths. Blocking. Sorted paths are fastest."""
        for path in paths:
            self.copy_path(workspace, path)

    def copy_path(self, workspace: SafeDirectory, path: bytes) -> None:
        if time.monotonic() > self.deadline:
            raise TimeoutError
        try:
            with workspace.inspect(path) as found:
                self._copy_inspected(path, found)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}:
                raise  # the worker ran out of space or descriptors: not the workspace's fault
            self._omit(path, f"cannot be read ({os.strerror(error.errno or 0)})")

    def _copy_inspected(self, path: bytes, found: InspectedPath | None) -> None:
        if found is None or found.is_directory:
            self.missing.append(path)  # the files in a directory have paths of their own
        elif found.is_link:
            copy = self._next_file()
            copy.write_bytes(found.read_link())
            self.copies.append(StagedCopy(path, LINK_MODE, copy, found.status))
        elif not found.is_file:
            self._omit(path, "not a regular file or symbolic link")
        elif found.status.st_size > self.limits.max_file_bytes:
            self._omit(path, f"larger than {self.limits.max_file_bytes} bytes")
        elif self._bytes + found.status.st_size > self.limits.max_new_bytes:
            self._omit(path, f"the snapshot would exceed {self.limits.max_new_bytes} new bytes")
        else:
            self._copy_file(path, found)

    def _copy_file(self, path: bytes, found: InspectedPath) -> None:
        copy = self._next_file()
        with found.open_file() as source:
            size = _copy_bytes(source, copy, self.limits.max_file_bytes)
        self._bytes += min(size, self.limits.max_file_bytes)
        if size > self.limits.max_file_bytes:  # the file grew while it was read
            copy.unlink()
            self._omit(path, f"larger than {self.limits.max_file_bytes} bytes")
            return
        self.copies.append(StagedCopy(path, EXECUTABLE_MODE if found.is_executable else FILE_MODE, copy, found.status))

    def _omit(self, path: bytes, reason: str) -> None:
        self.missing.append(path)
        self.omitted.append(OmittedPath(path, reason))

    def _next_file(self) -> Path:
        self._number += 1
        return self.directory / str(self._number)


def _copy_bytes(source: int, target: Path, limit: int) -> int:
    """Copies a file and returns its size. Reading stops beyond the limit, even if the file keeps growing."""
    size = 0
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        while size <= limit and (data := os.read(source, _CHUNK_BYTES)):
            size += len(data)
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(fd, remaining) :]
    finally:
        os.close(fd)
    return size


def file_signature(status: os.stat_result) -> tuple[int, ...]:
    """Returns the status fields that change when a file changes."""
    return (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
