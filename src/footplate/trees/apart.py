"""What no git tree holds under its own name is kept apart: a second tree, in which such names are written differently.

Those are git directories: the agent's own, with its HEAD, index, refs and objects, in the middle of a merge as well as
before a first commit, and those of nested repositories. And what is in the directory of a submodule, where the tree has
a link. All of it is bytes to us: stored and written back, never asked anything, so it can ask nothing of us.
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
# Changed again within this time, a file could look the same: clocks of filesystems are coarse.
_UNSURE: Final = 100_000_000


def belongs(path: bytes, *, is_link: bool) -> bool:
    """Whether git's index would refuse the path, in any case that a filesystem could hold to be the same."""
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
    """Git directories, and files that stand for one, in these directories and in the work tree itself. A hint: each is
    looked at again before anything of it is read.
    """
    root = os.fsencode(work_tree) + b"/"
    found = {GIT} if os.path.lexists(root + GIT) else set()
    for directory in directories:
        if os.path.lexists(root + directory + b"/" + GIT):
            found.add(directory + b"/" + GIT)
    return found


def under(workspace: Beneath, top: bytes) -> Iterator[bytes]:
    """All that is no directory at or below a path; of git directories, without what only a running git needs."""
    with workspace.look(top) as found:
        if found is None:
            return
        if not found.is_directory:
            if not _passing(top, top.rpartition(b"/")[2]):
                yield top
            return
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        for name, is_directory in workspace.names(directory):
            path = directory + b"/" + name
            if is_directory:
                waiting.append(path)
            elif not _passing(path, name):
                yield path


def _passing(path: bytes, name: bytes) -> bool:
    """A lock whose holder is dead on the next host would never be released there."""
    inside = GIT in path.lower().split(b"/")[:-1]
    return inside and (name.endswith((b".lock", b".ipc")) or name.startswith(b"tmp_"))


def take(
    workspace: Beneath, paths: Iterable[bytes], staging: Staging, known: Mapping[bytes, Kept]
) -> dict[bytes, Kept]:
    """Copies what is not known yet; the known that are unchanged come back. Blocking."""
    same: dict[bytes, Kept] = {}
    for path in paths:
        kept = known.get(path)
        if kept is not None and kept.signature:
            with workspace.look(path) as found:
                if found is not None and signature(found.status) == kept.signature:
                    same[path] = kept
                    continue
        staging.take_one(workspace, path)
    return same


def remember(mode: str, status: os.stat_result, blob: str) -> Kept:
    """One that changed a moment ago is remembered without a signature: it is read again next time."""
    changed = max(status.st_ctime_ns, status.st_mtime_ns)
    unsure = time.time_ns() - changed < _UNSURE
    return Kept(mode, blob, () if unsure else signature(status))
