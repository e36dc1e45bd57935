"""Files of a working tree, by plain blocking calls. The environment runs them in a thread."""

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from footplate.domain.ports import FileInfo


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def write(path: str, content: bytes, *, before_replace: Callable[[], None]) -> None:
    """All or nothing: whoever reads meanwhile sees the old file or the new one. A link is written through."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        raise IsADirectoryError(21, os.strerror(21), path)
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            _keep_owner_and_mode(target, file.fileno())
        before_replace()
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def list_files(path: str) -> list[FileInfo]:
    return sorted(_walk(path, ""), key=lambda file: file.path)


def _keep_owner_and_mode(target: Path, fd: int) -> None:
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(PermissionError):
        os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _walk(directory: str, prefix: str) -> Iterator[FileInfo]:
    """A directory that vanished or may not be read is as good as empty; the one that was asked for is not."""
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, PermissionError):
        if not prefix:
            raise
        return
    with entries:
        for entry in entries:
            if entry.name == ".git":
                continue
            with contextlib.suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk(entry.path, f"{prefix}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield FileInfo(path=f"{prefix}{entry.name}", size=found.st_size, modified=found.st_mtime)
