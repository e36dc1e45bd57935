"""Reads, writes and lists files with only the `os` module.

The worker uses these functions, and so does the init process of a sandbox or container. The init process runs as the
agent's user. A symbolic link therefore gives access only to files that the agent can already access, even if the link
is replaced during an operation.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 20


def open_regular(path: str) -> int:
    """Opens a regular file for reading. Never waits for the other end of a pipe and never reads from a device."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EPERM
    raise OSError(number, os.strerror(number), path)


def replace_file(path: str, copy: Callable[[int], None], before_replace: Callable[[], None]) -> None:
    """Replaces a file atomically: a concurrent reader sees the old or the new content. Writes through
    symbolic links.
    """
    target = os.path.realpath(path)
    directory, name = os.path.split(target)
    os.makedirs(directory, exist_ok=True)  # noqa: PTH103 - pathlib costs milliseconds to import
    if os.path.isdir(target):  # noqa: PTH112
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    temporary = os.path.join(directory, f".{name[:200]}.{os.urandom(4).hex()}.tmp")  # noqa: PTH118
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            copy(fd)
            copy_owner_and_mode(target, fd)
        finally:
            os.close(fd)
        before_replace()
        os.replace(temporary, target)  # noqa: PTH105
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)  # noqa: PTH108
        raise


def copy_owner_and_mode(target: str, fd: int) -> None:
    try:
        old = os.stat(target)  # noqa: PTH116
    except FileNotFoundError:
        return
    if os.geteuid() == 0:
        os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def write_all(fd: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(fd, remaining) :]


def walk_files(directory: str, prefix: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yields all regular files below a directory. Skips unreadable or vanished subdirectories, but raises for the top
    one.
    """
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        if not prefix:
            raise
        return
    with entries:
        for entry in entries:
            if entry.name == ".git":
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from walk_files(entry.path, f"{prefix}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue


def resolve_path(path: bytes) -> bytes:
    """Resolves a path as far as it exists. Returns an empty result for a link loop or a path that may not
    be accessed.
    """
    resolved = b""
    try:
        resolved = os.path.realpath(path)
        os.path.realpath(path, strict=True)
    except FileNotFoundError:
        return resolved
    except (OSError, ValueError):
        return b""
    return resolved
