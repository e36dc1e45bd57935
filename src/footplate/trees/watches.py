"""Watches the directories of a work tree, so that a snapshot looks only at what was touched since the one before.

What is reported are hints: each path is looked at again before it is read. Writes by a memory map that is still open,
or by a name outside of the tree, are not reported. So the first and the last snapshot of a turn look at every file.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from inotify_simple import INotify, flags

from footplate.trees.beneath import GONE, Beneath

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
_LOST: Final = flags.Q_OVERFLOW | flags.UNMOUNT
MAX_DIRECTORIES: Final = 2_000
_MAX_TOUCHED: Final = 5_000


class CannotWatch(Exception):
    """There are too many directories, or the host has no watches left."""


@dataclass(slots=True)
class Touched:
    paths: set[bytes] = field(default_factory=set)
    """Files and directories that were made, written, removed or renamed. Of a new directory, all files in it too."""
    moved_away: set[bytes] = field(default_factory=set)
    """Directories that were renamed, with all that was in them."""


class TreeWatch:
    """Blocking. Raises `CannotWatch`; it is of no use from then on."""

    def __init__(self, root: Path, *, skipped: Collection[bytes] = ()) -> None:
        """`skipped`: directories of no interest."""
        self._skipped = frozenset(skipped)
        self._directories: dict[int, bytes] = {}
        try:
            self._inotify = INotify()
        except (OSError, AttributeError) as error:  # only Linux has it
            raise CannotWatch from error
        self._root = root
        try:
            for _ in self._add(b""):
                pass
        except CannotWatch:
            self.close()
            raise

    def close(self) -> None:
        self._inotify.close()

    def changed(self) -> Touched:
        """What was touched since the last time."""
        touched = Touched()
        created = []
        for event in self._inotify.read(timeout=0):
            if event.mask & _LOST or len(touched.paths) > _MAX_TOUCHED:
                raise CannotWatch
            directory = self._directories.get(event.wd)
            if event.mask & flags.IGNORED:
                self._directories.pop(event.wd, None)
            elif directory is not None and event.name:
                path = _join(directory, os.fsencode(event.name))
                touched.paths.add(path)
                if event.mask & flags.ISDIR:
                    if event.mask & (flags.CREATE | flags.MOVED_TO):
                        created.append(path)
                    elif event.mask & flags.MOVED_FROM:
                        touched.moved_away.add(path)
                    elif event.mask & flags.ATTRIB:  # what is in it may be readable now, or not any more
                        raise CannotWatch
        for path in (path for path in created if path not in self._skipped):
            touched.paths.update(self._add(path))
        return touched

    def _add(self, top: bytes) -> Iterator[bytes]:
        """Watches a directory and those below it; yields their files. What is gone by now is reported next time."""
        with Beneath(self._root) as workspace:
            waiting = [top]
            while waiting:
                directory = waiting.pop()
                if len(self._directories) >= MAX_DIRECTORIES:
                    raise CannotWatch
                try:
                    descriptor = workspace.directory(directory)
                    watch = self._inotify.add_watch(f"/proc/self/fd/{descriptor}", _MASK)
                    names = workspace.names(directory)
                except OSError as error:
                    if error.errno in GONE:
                        continue
                    raise CannotWatch from error
                self._directories[watch] = directory
                for name, is_directory in names:
                    path = _join(directory, name)
                    if not is_directory:
                        yield path
                    elif path not in self._skipped:
                        waiting.append(path)


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
