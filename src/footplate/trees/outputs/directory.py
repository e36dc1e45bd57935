"""Reads, writes and scans a session's output directory, and the host's record of its files.

The agent owns the directory and may change it at any time, so every path is opened one name at a time without following
links.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from footplate.domain.files.session_outputs import check_path
from footplate.domain.files.snapshots import display_path
from footplate.trees.safe_open import SafeDirectory

FileStatus = tuple[int, ...]

RECORD_NAME: Final = "outputs.json"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of the directory at the last commit."""

    sha256: str | None = None
    """None: it was omitted."""
    status: FileStatus = ()
    """Empty: processes were running, so the file may have changed without a trace."""


@dataclass(slots=True)
class DirectoryScan:
    """The regular files of a directory, and what it has besides."""

    files: dict[str, os.stat_result] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OutputDirectory:
    """A session's output directory. Its parent directory belongs to Footplate."""

    path: Path
    record: Path

    def scan(self, max_entries: int) -> DirectoryScan:
        found = DirectoryScan()
        with SafeDirectory(self.path.parent) as root:
            for count, (path, status) in enumerate(_walk(root, os.fsencode(self.path.name), b"", found.omitted)):
                if count >= max_entries:
                    found.omitted.append(f"everything after the first {max_entries} entries")
                    break
                if (reason := check_path(path)) is not None:
                    found.omitted.append(f"{display_path(path)}: {reason}")
                elif status is not None:
                    found.files[path.decode()] = status
        return found

    def open_file(self, path: str) -> int | None:
        """Returns a descriptor for reading. None: there is no such file any more."""
        with SafeDirectory(self.path.parent) as root, root.inspect(self._inside(path)) as found:
            if found is None or not found.is_file:
                return None
            with found.open_file() as descriptor:
                return os.dup(descriptor)

    def status_of(self, path: str) -> FileStatus:
        with SafeDirectory(self.path.parent) as root, root.inspect(self._inside(path)) as found:
            return () if found is None else file_status(found.status)

    def create_file(self, path: str) -> int:
        """Returns a descriptor of a new file. Creates missing directories."""
        *directories, name = self._inside(path).split(b"/")
        with SafeDirectory(self.path.parent) as root:
            owner = os.fstat(root.open_directory(directories[0]))
            for depth in range(1, len(directories)):
                parent = root.open_directory(b"/".join(directories[:depth]))
                with suppress(FileExistsError):
                    os.mkdir(directories[depth], 0o755, dir_fd=parent)
                    _change_owner(directories[depth], parent, owner)
            parent = root.open_directory(b"/".join(directories))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, 0o644, dir_fd=parent)
            _change_owner(name, parent, owner)
            return descriptor

    def remove_file(self, path: str) -> None:
        directory, _, name = self._inside(path).rpartition(b"/")
        with SafeDirectory(self.path.parent) as root:
            os.unlink(name, dir_fd=root.open_directory(directory))

    def remove_all_except(self, kept: set[str]) -> None:
        """Removes every file and link that is not kept, and the directories that are then empty."""
        with SafeDirectory(self.path.parent) as root:
            _remove_entries(root, os.fsencode(self.path.name), b"", {os.fsencode(path) for path in kept})

    def load_record(self) -> dict[str, KnownFile] | None:
        try:
            found = orjson.loads(self.record.read_bytes())
            return {path: KnownFile(sha256, tuple(status)) for path, (sha256, status) in found.items()}
        except (FileNotFoundError, ValueError, TypeError, AttributeError):
            return None

    def save_record(self, known: Mapping[str, KnownFile]) -> None:
        self.record.parent.mkdir(parents=True, exist_ok=True)
        new = self.record.with_name(f"{RECORD_NAME}.{os.getpid()}")
        new.write_bytes(orjson.dumps({path: [one.sha256, one.status] for path, one in known.items()}))
        new.replace(self.record)

    def _inside(self, path: str) -> bytes:
        return os.fsencode(self.path.name) + b"/" + path.encode()


def _walk(
    root: SafeDirectory, top: bytes, prefix: bytes, omitted: list[str]
) -> Iterator[tuple[bytes, os.stat_result | None]]:
    """Yields the regular files below a directory, and its directories without a status. Paths are relative to `top`."""
    try:
        entries = root.list_directory(top + b"/" + prefix.rstrip(b"/") if prefix else top)
    except PermissionError:
        omitted.append(f"{display_path(prefix)}: the directory cannot be read")
        return
    for name, is_directory in entries:
        path = prefix + name
        if is_directory:
            yield path, None
            if check_path(path) is None:
                yield from _walk(root, top, path + b"/", omitted)
            continue
        with root.inspect(top + b"/" + path) as found:
            if found is not None and found.is_file:
                yield path, found.status
            elif found is not None and not found.is_directory:
                omitted.append(f"{display_path(path)}: it is not a regular file")


def _remove_entries(root: SafeDirectory, top: bytes, prefix: bytes, kept: set[bytes]) -> bool:
    """Removes entries below a directory, except those with a path that no output can have. Returns whether it is empty
    now.
    """
    directory = top + b"/" + prefix.rstrip(b"/") if prefix else top
    is_empty = True
    for name, is_directory in root.list_directory(directory):
        path = prefix + name
        if path in kept or check_path(path) is not None:
            is_empty = False
        elif not is_directory:
            os.unlink(name, dir_fd=root.open_directory(directory))
        elif _remove_entries(root, top, path + b"/", kept):
            os.rmdir(name, dir_fd=root.open_directory(directory))
        else:
            is_empty = False
    return is_empty


def file_status(status: os.stat_result) -> FileStatus:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _change_owner(name: bytes, parent: int, owner: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)


def write_all(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
