"""Recovers a session's tree from the object store, on a host that does not have it or has an outdated version.

A file next to the host's index lists the snapshots that the tree may be based on: the one it was restored from, or the
last two that were taken here, because the worker cannot know whether the last one reached the log. If the log has a
different snapshot, the session has run on another host since, and the tree is outdated.
"""

import asyncio
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from footplate import failpoints
from footplate.domain.snapshots import KeptSnapshot, Snapshot
from footplate.trees.keeping import Keeper, TreePlace
from footplate.trees.placing import HOST, begin_anew, init, own

_GOES_ON_FROM: Final = "goes_on_from.json"
_ALTERNATES: Final = (".git", "objects", "info", "alternates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    place: TreePlace
    """`git_dir` is the final path of the host's git directory."""
    kept: KeptSnapshot
    user: tuple[int, int]
    branch: str = "main"
    mirror: Path | None = None
    objects: str | None = None
    """Path of the mirror's objects as the agent sees it on this host."""


async def bring_back(keeper: Keeper, wanted: Return) -> None:
    """Recovers the tree. The caller has exclusive access to the session and this tree."""
    place, private = wanted.place, wanted.place.git_dir.parent
    host = await asyncio.to_thread(begin_anew, private, place.tree, wanted.user)
    await init(host, wanted.branch, wanted.mirror)
    await keeper.bring_back(replace(place, git_dir=host), wanted.kept, user=wanted.user)
    if wanted.objects is not None:
        await asyncio.to_thread(_share_anew, place.tree, wanted.objects, wanted.user)
    go_on_from(host, [wanted.kept])
    await failpoints.hit("tree_written")
    await asyncio.to_thread(host.rename, private / HOST)


def goes_on(host: Path, kept: KeptSnapshot | None) -> bool:
    """Whether the tree is based on the snapshot in the log. A tree without any snapshot matches a log without one."""
    try:
        found = orjson.loads((host / _GOES_ON_FROM).read_bytes())
    except FileNotFoundError:
        found = [None]
    except orjson.JSONDecodeError:  # the machine died while the file was written
        return False
    return _line(kept) in found


def go_on_from(host: Path, kept: Sequence[KeptSnapshot | None]) -> None:
    new = host / f"{_GOES_ON_FROM}.{os.getpid()}"
    new.write_bytes(orjson.dumps([_line(one) for one in kept]))
    new.replace(host / _GOES_ON_FROM)


def _line(kept: KeptSnapshot | None) -> list[int | str | None] | None:
    if kept is None:
        return None
    snapshot: Snapshot = kept.snapshot
    return [kept.number, snapshot.tree, snapshot.apart]


def _share_anew(tree: Path, objects: str, user: tuple[int, int]) -> None:
    """Updates the path of the mirror's objects, which may differ on this host. The agent owns these files, so nothing
    is written through a link.
    """
    *directories, name = _ALTERNATES
    place = tree
    for directory in directories:
        place /= directory
        try:
            if not stat.S_ISDIR(place.lstat().st_mode):
                return
        except FileNotFoundError:
            return  # the git directory was removed
    file = place / name
    file.unlink(missing_ok=True)
    file.write_text(f"{objects}\n")
    own(file, user)
