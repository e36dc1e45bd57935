"""Records which files of this checkout any process opens while a claim runs.

inotify watches the directories, so it sees the API, workers, guardians, sandboxes, containers and command lines alike,
even those that are killed. A module counts when its source or its bytecode is opened.
"""

import hashlib
import os
import re
import select
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from inotify_simple import Event, INotify, flags

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = ("src/footplate", "bench/claims", "bench/support")
_BYTECODE: Final = re.compile(r"(?P<directory>.*)/__pycache__/(?P<module>[^/.]+)\.[^/]*\.pyc(\.\d+)?")
_HASH_LENGTH: Final = 12


class LoadedFiles:
    """Watches while the context is open. Then `paths` has the opened files, relative to the checkout."""

    def __init__(self, root: Path = ROOT, directories: Iterable[str] = CODE) -> None:
        self.paths: set[str] = set()
        self._root = root
        self._directories = [root / directory for directory in directories]
        self._inotify = INotify()
        self._watched: dict[int, Path] = {}
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._collect, daemon=True)

    def __enter__(self) -> Self:
        for directory in self._directories:
            self._watch(directory)
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._stop_write)
        self._thread.join()
        os.close(self._stop_read)
        self._inotify.close()
        self._add_own_modules()

    def _watch(self, top: Path) -> None:
        for directory, _, _ in os.walk(top):
            watch = self._inotify.add_watch(directory, flags.OPEN | flags.CREATE | flags.ONLYDIR)
            self._watched[watch] = Path(directory)

    def _collect(self) -> None:
        stopping = False
        while not stopping:
            stopping = _wait_readable(self._inotify.fileno(), self._stop_read)
            try:
                for event in self._inotify.read(timeout=0):
                    self._note(event)
            except OSError:  # a directory could not be watched
                self._add_every_file()

    def _add_every_file(self) -> None:
        """Records too many files rather than too few: after lost events, no result may count as current by mistake."""
        for top in self._directories:
            for path in top.rglob("*"):
                self._add(path)

    def _note(self, event: Event) -> None:
        if event.mask & flags.Q_OVERFLOW:
            self._add_every_file()
        elif event.mask & flags.ISDIR:
            if event.mask & flags.CREATE:
                self._watch(self._watched[event.wd] / event.name)
        elif event.mask & flags.OPEN and event.name:
            self._add(self._watched[event.wd] / event.name)

    def _add(self, path: Path) -> None:
        if bytecode := _BYTECODE.fullmatch(str(path)):
            path = Path(bytecode["directory"], f"{bytecode['module']}.py")
        if path.is_file() and "__pycache__" not in path.parts:
            self.paths.add(str(path.relative_to(self._root)))

    def _add_own_modules(self) -> None:
        """Adds the modules that this process imported before the watch began."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if file and any(Path(file).is_relative_to(top) for top in self._directories):
                self._add(Path(file))


def _wait_readable(events: int, stop: int) -> bool:
    """Waits for events or the stop signal, and returns whether to stop."""
    readable, _, _ = select.select([events, stop], [], [])
    return stop in readable


def hash_files(paths: Iterable[str], root: Path = ROOT) -> Mapping[str, str]:
    """Returns a content hash by path, sorted. A missing file has an empty hash."""
    return {path: _hash(root / path) for path in sorted(paths)}


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:_HASH_LENGTH]
    except FileNotFoundError:
        return ""
