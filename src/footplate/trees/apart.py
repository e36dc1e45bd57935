"""The sidecar tree of a snapshot: a second git tree for files that git refuses to store under their own names.

These are git directories: the agent's own, with HEAD, index, refs and objects, in any state, and those of nested
repositories. The files in a submodule's directory are included too, because the main tree has only a link there. All of
them are plain bytes to the host: they are stored and restored, and git never uses them, so they cannot run anything.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from footplate.trees.beneath import Beneath
from footplate.trees.remembered import Kept
from footplate.trees.staging import Staging, signature

GIT: Final = b".git"
_MODULES: Final = b".gitmodules"
_ESCAPED: Final = re.compile(rb"%(25|2[Ee])")
# A file that changes twice within this time may keep the same timestamps, because filesystem clocks are coarse.
_UNSURE: Final = 100_000_000


def belongs(path: bytes, *, is_link: bool) -> bool:
    """Whether git's index refuses the path. Upper and lower case are treated alike, as some filesystems do."""
    names = path.lower().split(b"/")
    return GIT in names or (is_link and names[-1] == _MODULES)


def escape(path: bytes) -> bytes:
    return b"/".join(_escape(name) for name in path.split(b"/"))


def unescape(path: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), path)


def _escape(name: bytes) -> bytes:
    name = name.replace(b"%", b"%25")
    return b"%2E" + name[1:] if name.lower().startswith(GIT) else name


def places(work_tree: Path, directories: Iterable[bytes]) -> set[bytes]:
    """Finds git directories, and files that stand for one, in these directories and in the root of the work tree. The
    result is a hint: each path is inspected again before it is read.
    """
    root = os.fsencode(work_tree) + b"/"
    found = {GIT} if os.path.lexists(root + GIT) else set()
    for directory in directories:
        if os.path.lexists(root + directory + b"/" + GIT):
            found.add(directory + b"/" + GIT)
    return found


def under(workspace: Beneath, top: bytes) -> Iterator[bytes]:
    """Yields all files at or below a path. In git directories, files that only a running git needs are skipped."""
    with workspace.inspect(top) as found:
        if found is None:
            return
        if not found.is_directory:
            if not _passing(top, top.rpartition(b"/")[2]):
                yield top
            return
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        for name, is_directory in workspace.list_directory(directory):
            path = directory + b"/" + name
            if is_directory:
                waiting.append(path)
            elif not _passing(path, name):
                yield path


def _passing(path: bytes, name: bytes) -> bool:
    """Whether a file is temporary. A lock file would never be released on the next host, because its owner is gone."""
    inside = GIT in path.lower().split(b"/")[:-1]
    return inside and (name.endswith((b".lock", b".ipc")) or name.startswith(b"tmp_"))


def take(
    workspace: Beneath, paths: Iterable[bytes], staging: Staging, known: Mapping[bytes, Kept]
) -> dict[bytes, Kept]:
    """Copies the files that are new or changed, and returns the unchanged ones. Blocking."""
    same: dict[bytes, Kept] = {}
    for path in paths:
        kept = known.get(path)
        if kept is not None and kept.signature:
            with workspace.inspect(path) as found:
                if found is not None and signature(found.status) == kept.signature:
                    same[path] = kept
                    continue
        staging.copy_path(workspace, path)
    return same


def remember(mode: str, status: os.stat_result, blob: str) -> Kept:
    """Returns the cache record of a file. If the file changed very recently, the record has no signature, so the file
    is read again next time.
    """
    changed = max(status.st_ctime_ns, status.st_mtime_ns)
    unsure = time.time_ns() - changed < _UNSURE
    return Kept(mode, blob, () if unsure else signature(status))
