"""Copies what a snapshot needs out of a workspace, to a place that the agent cannot reach, before git looks at it.

git would open a file a second time by its name, and store whatever has that name by then. What it is given here are
copies, numbered; what they are called in the tree is told to it apart.
"""

import errno
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from footplate.domain.snapshots import LeftOut
from footplate.trees.beneath import Beneath, Found

FILE: Final = "100644"
PROGRAM: Final = "100755"
LINK: Final = "120000"

_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one snapshot; what is beyond them is left out, and that is said."""

    file_bytes: int = 256 << 20
    new_bytes: int = 2 << 30
    """What may be copied in all: files that were in the last snapshot and did not change are not."""
    seconds: float = 120


@dataclass(frozen=True, slots=True)
class Copy:
    path: bytes
    mode: str
    file: Path
    status: os.stat_result
    """Of the file in the workspace, when it was looked at."""


@dataclass(slots=True)
class Staging:
    """A directory of ours that copies are put into."""

    directory: Path
    limits: Limits
    until: float
    """On the monotonic clock. Nobody can end a thread from outside."""
    copies: list[Copy] = field(default_factory=list)
    gone: list[bytes] = field(default_factory=list)
    """There is nothing to keep at these paths any more."""
    left_out: list[LeftOut] = field(default_factory=list)
    _number: int = 0
    _bytes: int = 0

    def take(self, workspace: Beneath, paths: Iterable[bytes]) -> None:
        """Sorted paths are quickest. Blocking."""
        for path in paths:
            self.take_one(workspace, path)

    def take_one(self, workspace: Beneath, path: bytes) -> None:
        if time.monotonic() > self.until:
            raise TimeoutError
        try:
            with workspace.look(path) as found:
                self._take(path, found)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}:
                raise  # it is ours, and not the workspace's
            self._leave(path, f"could not be read ({os.strerror(error.errno or 0)})")

    def _take(self, path: bytes, found: Found | None) -> None:
        if found is None or found.is_directory:
            self.gone.append(path)  # a directory is what is in it, and that has paths of its own
        elif found.is_link:
            copy = self._next()
            copy.write_bytes(found.target())
            self.copies.append(Copy(path, LINK, copy, found.status))
        elif not found.is_file:
            self._leave(path, "neither a file nor a link")
        elif found.status.st_size > self.limits.file_bytes:
            self._leave(path, f"larger than {self.limits.file_bytes} bytes")
        elif self._bytes + found.status.st_size > self.limits.new_bytes:
            self._leave(path, f"the snapshot has {self.limits.new_bytes} new bytes without it")
        else:
            self._copy(path, found)

    def _copy(self, path: bytes, found: Found) -> None:
        copy = self._next()
        with found.open() as source:
            size = _copied(source, copy, self.limits.file_bytes)
        self._bytes += min(size, self.limits.file_bytes)
        if size > self.limits.file_bytes:  # it grew while it was read
            copy.unlink()
            self._leave(path, f"larger than {self.limits.file_bytes} bytes")
            return
        self.copies.append(Copy(path, PROGRAM if found.is_executable else FILE, copy, found.status))

    def _leave(self, path: bytes, reason: str) -> None:
        self.gone.append(path)
        self.left_out.append(LeftOut(path, reason))

    def _next(self) -> Path:
        self._number += 1
        return self.directory / str(self._number)


def _copied(source: int, target: Path, limit: int) -> int:
    """How many bytes there were; reading stops past the limit, wherever the end went meanwhile."""
    size = 0
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        while size <= limit and (data := os.read(source, _PIECE)):
            size += len(data)
            left = memoryview(data)
            while left:
                left = left[os.write(fd, left) :]
    finally:
        os.close(fd)
    return size


def signature(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file does."""
    return (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
