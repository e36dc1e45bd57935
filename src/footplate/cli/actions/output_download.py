"""Writes a downloaded output below a directory, and nowhere else.

The names of outputs come from an agent, so they are not trusted: a name with `..`, or one that leads through a symbolic
link, is refused. The file gets its name when it is complete.
"""

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from footplate.client import ClientError


class OutputDownload:
    def __init__(self, directory: Path, filename: str, *, force: bool) -> None:
        self._force = force
        self._target = _resolve(directory, filename)
        self._check_target()
        _create_directories(directory, self._target.parent)
        descriptor, name = tempfile.mkstemp(prefix=".footplate-", dir=self._target.parent)
        self._file = os.fdopen(descriptor, "wb")
        self._temporary = Path(name)
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._size += len(piece)

    def finish(self, expected_size: int) -> Path:
        """Gives the complete file its name, and returns its path."""
        if self._size != expected_size:
            raise ClientError(
                f"The server sent {self._size} of {expected_size} bytes.", help_text="Run the command again."
            )
        self._file.close()
        self._check_target()
        self._temporary.chmod(0o666 & ~_umask())
        self._temporary.replace(self._target)  # replaces a link, and not what it leads to
        return self._target

    def _check_target(self) -> None:
        if self._target.is_dir() and not self._target.is_symlink():
            raise ClientError(f"There is a directory at {str(self._target)!r}.", help_text="Use another directory.")
        if os.path.lexists(self._target) and not self._force:
            raise ClientError(f"{str(self._target)!r} exists.", help_text="Use `--force` to replace it.")


def _resolve(directory: Path, filename: str) -> Path:
    names = filename.split("/")
    target = directory.joinpath(*names)
    if any(name in {"", ".", ".."} or "\0" in name for name in names) or target.parts != (*directory.parts, *names):
        raise ClientError(
            "Its name is not a path below the directory.", help_text="Use `footplate files get` to read it."
        )
    return target


def _create_directories(directory: Path, parent: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory
    for name in parent.parts[len(directory.parts) :]:
        path /= name
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise ClientError(f"{str(path)!r} exists and is not a directory.", help_text="Use another directory.")
        path.mkdir(exist_ok=True)


def _umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found
