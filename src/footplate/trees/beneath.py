"""Opens what is in a workspace, and nothing else, while its agent may be changing it.

A check and a use of the same path are two moments, and a process of the agent's that swaps a file for a link between
them would have the worker read a file of the host's. So a path is walked from the workspace's own descriptor, name by
name, no name that is a link is gone through, and a thing is looked at by the descriptor that it is later read from. A
pipe is not opened at all, nor is a device: opening them is what blocks, or does something.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
# A file under a lease would keep whoever opens it waiting.
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
GONE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}


@dataclass(frozen=True, slots=True)
class Found:
    """What is at a path: looked at, not opened."""

    fd: int
    status: os.stat_result

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.status.st_mode)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_executable(self) -> bool:
        return bool(self.status.st_mode & stat.S_IXUSR)

    def target(self) -> bytes:
        """Of a link."""
        return os.readlink(b"", dir_fd=self.fd)

    @contextmanager
    def open(self) -> Iterator[int]:
        """The very file that was looked at, whatever has its name by now."""
        fd = os.open(f"/proc/self/fd/{self.fd}", _READ)
        try:
            yield fd
        finally:
            os.close(fd)


class Beneath:
    """A workspace's root. Paths are relative to it, bytes, with `/` between names; empty is the root itself."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._chain: list[tuple[bytes, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keep(0)
        os.close(self._root)

    @contextmanager
    def look(self, path: bytes) -> Iterator[Found | None]:
        """None if there is nothing, or only by way of a link. Raises PermissionError."""
        directory, _, name = path.rpartition(b"/")
        try:
            fd = os.open(name, _LOOK, dir_fd=self.directory(directory))
        except OSError as error:
            if error.errno not in GONE:
                raise
            yield None
            return
        try:
            yield Found(fd, os.fstat(fd))
        finally:
            os.close(fd)

    def is_directory(self, path: bytes) -> bool:
        with self.look(path) as found:
            return found is not None and found.is_directory

    def names(self, path: bytes) -> list[tuple[bytes, bool]]:
        """What is in a directory, in order, and whether each is one itself. A link is as good as an empty directory."""
        try:
            with os.scandir(self.directory(path)) as entries:
                return sorted((os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            if error.errno not in GONE:
                raise
            return []

    def directory(self, path: bytes) -> int:
        """Its descriptor, good until the next call. Those on the way stay open, because paths come in order."""
        names = path.split(b"/") if path else []
        same = 0
        for name, (kept, _) in zip(names, self._chain, strict=False):
            if name != kept:
                break
            same += 1
        self._keep(same)
        for name in names[same:]:
            self._chain.append((name, os.open(name, _DIRECTORY, dir_fd=self._last)))
        return self._last

    @property
    def _last(self) -> int:
        return self._chain[-1][1] if self._chain else self._root

    def _keep(self, count: int) -> None:
        while len(self._chain) > count:
            os.close(self._chain.pop()[1])
