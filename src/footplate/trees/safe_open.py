"""Opens files in a workspace safely, even if the agent changes them at the same time.

Between the check of a path and its use, the agent could replace a file by a symbolic link to a file of the host. Each
path is therefore opened one name at a time, without following links, and the checked descriptor is the one that is
read. Pipes and devices are never opened, because opening them can block or have side effects.
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

_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_INSPECT_FLAGS: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a file under a lease would block.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
MISSING_PATH_ERRNOS: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}


@dataclass(frozen=True, slots=True)
class InspectedPath:
    """The object at a path, inspected but not opened."""

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

    def read_link(self) -> bytes:
        """Returns the target of a symbolic link."""
        return os.readlink(b"", dir_fd=self.fd)

    @contextmanager
    def open_file(self) -> Iterator[int]:
        """Opens the same file that was inspected, even if its name now refers to another file."""
        fd = os.open(f"/proc/self/fd/{self.fd}", _READ_FLAGS)
        try:
            yield fd
        finally:
            os.close(fd)


class SafeDirectory:
    """The root of a workspace. Paths are relative bytes with `/` as separator. An empty path is the root itself."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._open_directories: list[tuple[bytes, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_below(0)
        os.close(self._root)

    @contextmanager
    def inspect(self, path: bytes) -> Iterator[InspectedPath | None]:
        """Yields None if the path does not exist or leads through a link. Raises PermissionError."""
        directory, _, name = path.rpartition(b"/")
        try:
            fd = os.open(name, _INSPECT_FLAGS, dir_fd=self.open_directory(directory))
        except OSError as error:
            if error.errno not in MISSING_PATH_ERRNOS:
                raise
            yield None
            return
        try:
            yield InspectedPath(fd, os.fstat(fd))
        finally:
            os.close(fd)

    def is_directory(self, path: bytes) -> bool:
        with self.inspect(path) as found:
            return found is not None and found.is_directory

    def list_directory(self, path: bytes) -> list[tuple[bytes, bool]]:
        """Returns the sorted names in a directory, and whether each is a directory. A link counts as an empty
        directory.
        """
        try:
            with os.scandir(self.open_directory(path)) as entries:
                return sorted((os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            if error.errno not in MISSING_PATH_ERRNOS:
                raise
            return []

    def open_directory(self, path: bytes) -> int:
        """Returns the descriptor of a directory, valid until the next call. Parent descriptors stay open for reuse,
        because callers pass paths in sorted order.
        """
        names = path.split(b"/") if path else []
        shared = 0
        for name, (open_name, _) in zip(names, self._open_directories, strict=False):
            if name != open_name:
                break
            shared += 1
        self._close_below(shared)
        for name in names[shared:]:
            self._open_directories.append((name, os.open(name, _DIRECTORY_FLAGS, dir_fd=self._deepest_descriptor)))
        return self._deepest_descriptor

    @property
    def _deepest_descriptor(self) -> int:
        return self._open_directories[-1][1] if self._open_directories else self._root

    def _close_below(self, count: int) -> None:
        while len(self._open_directories) > count:
            os.close(self._open_directories.pop()[1])
