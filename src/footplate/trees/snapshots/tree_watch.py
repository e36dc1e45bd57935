"""Watches a working tree with inotify, so that a snapshot reads only files that were touched since the last snapshot.

Reported paths are only hints: each path is checked again before it is read. Some writes are not reported: through
memory mappings, or through a hard link that is deleted or outside the watched directories. The last snapshot of a turn
therefore scans every file.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from inotify_simple import Event, INotify, flags

from footplate.trees.safe_open import MISSING_PATH_ERRNOS, SafeDirectory

_MASK: Final = (
    flags.MODIFY
    | flags.ATTRIB
    | flags.CLOSE_WRITE
    | flags.CREATE
    | flags.DELETE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.ONLYDIR
)
_EVENTS_LOST: Final = flags.Q_OVERFLOW | flags.UNMOUNT
MAX_DIRECTORIES: Final = 2_000
_MAX_ENTRIES: Final = 100_000
"""Maximum number of names to read while searching for directories."""
_MAX_TOUCHED: Final = 2_000
_MAX_DEPTH: Final = 100


class WatchFailed(Exception):
    """The watch cannot be created, or can no longer report every change."""


@dataclass(slots=True)
class TouchedPaths:
    paths: set[bytes] = field(default_factory=set)
    """Files and directories that were created, written, removed, renamed or changed in mode, and the files of a new
    directory.
    """
    directories: set[bytes] = field(default_factory=set)
    """Directories among them that were created or renamed. Files below the old name may have disappeared without a
    report.
    """


class TreeWatch:
    """Reports touched paths through inotify. Blocking. Unusable once it has raised `WatchFailed`."""

    def __init__(self, root: Path, *, skipped: Collection[bytes] = ()) -> None:
        """`skipped`: directories that are not watched."""
        self.skipped = frozenset(skipped)
        self._root = root
        self._directories: dict[int, bytes] = {}
        try:
            self._inotify = INotify(nonblocking=True)
        except (OSError, AttributeError) as error:  # inotify exists only on Linux
            raise WatchFailed from error
        try:
            self._identity = self._identify()
            for _ in self._watch_recursively(b"", _MAX_ENTRIES):
                pass
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._inotify.close()

    def read_touched(self) -> TouchedPaths:
        """Returns the paths touched since the last call."""
        touched = TouchedPaths()
        created: dict[bytes, None] = {}
        for event in self._read_events():
            if event.mask & _EVENTS_LOST or len(touched.paths) > _MAX_TOUCHED:
                raise WatchFailed
            if event.mask & flags.IGNORED:
                self._directories.pop(event.wd, None)
            elif event.name and event.wd in self._directories:
                path = _join(self._directories[event.wd], os.fsencode(event.name))
                touched.paths.add(path)
                if event.mask & flags.ISDIR:
                    self._note_directory(touched, created, path, event.mask)
        for path in created:
            touched.paths.update(self._watch_recursively(path, _MAX_TOUCHED - len(touched.paths)))
        if self._identify() != self._identity:
            raise WatchFailed
        return touched

    def _note_directory(self, touched: TouchedPaths, created: dict[bytes, None], path: bytes, mask: int) -> None:
        if mask & flags.ATTRIB:  # files in the directory may have become readable or unreadable
            raise WatchFailed
        if mask & (flags.CREATE | flags.MOVED_FROM | flags.MOVED_TO):
            touched.directories.add(path)
        if mask & (flags.CREATE | flags.MOVED_TO) and path not in self.skipped:
            created[path] = None

    def _read_events(self) -> list[Event]:
        try:
            return list(self._inotify.read(timeout=0))
        except OSError as error:
            raise WatchFailed from error

    def _identify(self) -> tuple[int, int]:
        """Returns device and inode of the root. No event reports that another directory replaced it."""
        try:
            status = self._root.stat()
        except OSError as error:
            raise WatchFailed from error
        return status.st_dev, status.st_ino

    def _watch_recursively(self, top: bytes, max_entries: int) -> Iterator[bytes]:
        """Watches a directory and everything below it, and yields the files. A directory that is gone is reported next
        time.
        """
        waiting, entries = [top], 0
        try:
            with SafeDirectory(self._root) as workspace:
                while waiting:
                    directory = waiting.pop()
                    if len(self._directories) >= MAX_DIRECTORIES or directory.count(b"/") >= _MAX_DEPTH:
                        raise WatchFailed
                    for name, is_directory in self._watch_directory(workspace, directory):
                        entries += 1
                        if entries > max_entries:
                            raise WatchFailed
                        path = _join(directory, name)
                        if not is_directory:
                            yield path
                        elif path not in self.skipped:
                            waiting.append(path)
        except OSError as error:
            raise WatchFailed from error

    def _watch_directory(self, workspace: SafeDirectory, directory: bytes) -> Iterator[tuple[bytes, bool]]:
        try:
            descriptor = workspace.open_directory(directory)
            watch = self._inotify.add_watch(f"/proc/self/fd/{descriptor}", _MASK)
            entries = os.scandir(descriptor)
        except OSError as error:
            if error.errno in MISSING_PATH_ERRNOS:
                return
            raise
        self._directories[watch] = directory
        with entries:
            for entry in entries:
                yield os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
