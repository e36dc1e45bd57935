"""Reads, writes and lists files on the worker's own file system.

The functions block, so the environment calls them in a thread.
"""

import os
from collections.abc import Callable, Sequence

from footplate.domain.ports.harness import FileInfo
from footplate.environments.programs import safe_file_access


def read_file(path: str) -> bytes:
    with os.fdopen(safe_file_access.open_regular(path), "rb") as file:
        return file.read()


def write_file(path: str, content: bytes, *, before_replace: Callable[[], None]) -> None:
    safe_file_access.replace_file(path, lambda fd: safe_file_access.write_all(fd, content), before_replace)


def list_files(path: str) -> list[FileInfo]:
    files = (
        FileInfo(path=name, size=status.st_size, modified=status.st_mtime)
        for name, status in safe_file_access.walk_files(path)
    )
    return sorted(files, key=lambda file: file.path)


def resolve_paths(paths: Sequence[str]) -> list[str | None]:
    """Returns None for a path that contains a NUL, because it cannot be resolved."""
    return [
        None if "\0" in path else os.fsdecode(safe_file_access.resolve_path(os.fsencode(path))) or None
        for path in paths
    ]
