"""The sidecar tree of a snapshot: a second git tree, for files that git refuses to store under their own names.

These files are git directories: the agent's own and those of nested repositories. The files in a submodule's directory
are included too, because the main tree contains only a link there. The host stores and restores all of them as plain
bytes, and git never uses them.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from footplate.trees.safe_open import SafeDirectory
from footplate.trees.snapshots.file_state_cache import CachedFile
from footplate.trees.snapshots.staging_area import StagingArea, file_signature

GIT_DIR_NAME: Final = b".git"
_GITMODULES_NAME: Final = b".gitmodules"
_ESCAPED: Final = re.compile(rb"%(25|2[Ee])")
# A file that changes twice within this time may keep the same timestamps, because filesystem clocks are coarse.
_CLOCK_RESOLUTION_NS: Final = 100_000_000


def is_sidecar_path(path: bytes, *, is_link: bool) -> bool:
    """Whether git's index refuses the path. Upper and lower case are treated alike, as some filesystems do."""
    names = path.lower().split(b"/")
    return GIT_DIR_NAME in names or (is_link and names[-1] == _GITMODULES_NAME)


def escape_path(path: bytes) -> bytes:
    return b"/".join(_escape_name(name) for name in path.split(b"/"))


def unescape_path(path: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), path)


def _escape_name(name: bytes) -> bytes:
    name = name.replace(b"%", b"%25")
    return b"%2E" + name[1:] if name.lower().startswith(GIT_DIR_NAME) else name


def find_git_directories(work_tree: Path, directories: Iterable[bytes]) -> set[bytes]:
    """Finds git directories, and files that stand for one, in these directories and in the root of the working tree.
    The result is a hint: each path is inspected again before it is read.
    """
    root = os.fsencode(work_tree) + b"/"
    found = {GIT_DIR_NAME} if os.path.lexists(root + GIT_DIR_NAME) else set()
    for directory in directories:
        if os.path.lexists(root + directory + b"/" + GIT_DIR_NAME):
            found.add(directory + b"/" + GIT_DIR_NAME)
    return found


def iter_files(workspace: SafeDirectory, top: bytes) -> Iterator[bytes]:
    """Yields all files at or below a path. In git directories, files that only a running git needs are skipped."""
    with workspace.inspect(top) as found:
        if found is None:
            return
        if not found.is_directory:
            if not _is_temporary(top, top.rpartition(b"/")[2]):
                yield top
            return
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        for name, is_directory in workspace.list_directory(directory):
            path = directory + b"/" + name
            if is_directory:
                waiting.append(path)
            elif not _is_temporary(path, name):
                yield path


def _is_temporary(path: bytes, name: bytes) -> bool:
    """Whether a file is temporary. A lock file would never be released on the next host, because its owner is gone."""
    inside = GIT_DIR_NAME in path.lower().split(b"/")[:-1]
    return inside and (name.endswith((b".lock", b".ipc")) or name.startswith(b"tmp_"))


def copy_changed_files(
    workspace: SafeDirectory, paths: Iterable[bytes], staging: StagingArea, known: Mapping[bytes, CachedFile]
) -> dict[bytes, CachedFile]:
    """Copies the files that are new or changed, and returns the unchanged ones. Blocking."""
    unchanged: dict[bytes, CachedFile] = {}
    for path in paths:
        cached = known.get(path)
        if cached is not None and cached.signature:
            with workspace.inspect(path) as found:
                if found is not None and file_signature(found.status) == cached.signature:
                    unchanged[path] = cached
                    continue
        staging.copy_path(workspace, path)
    return unchanged


def create_cache_record(mode: str, status: os.stat_result, blob: str) -> CachedFile:
    """Returns the cache record of a file. If the file changed very recently, the record has no signature, so the file
    is read again next time.
    """
    changed = max(status.st_ctime_ns, status.st_mtime_ns)
    is_recent = time.time_ns() - changed < _CLOCK_RESOLUTION_NS
    return CachedFile(mode, blob, () if is_recent else file_signature(status))
