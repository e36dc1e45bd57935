"""Recovers a session's working tree from the object store, on a host where the tree is missing or outdated.

A file next to the host's git index lists the snapshots on which the tree may be based. If the log has a different
snapshot, the session has since run on another host, and the tree is outdated.
"""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from footplate import failpoints
from footplate.domain.files.snapshots import Snapshot, StoredSnapshot
from footplate.trees.checkout import HOST_GIT_DIR_NAME, init_git_dir, reset_checkout
from footplate.trees.safe_open import MISSING_PATH_ERRNOS, SafeDirectory
from footplate.trees.snapshots.upload import SnapshotUploader, TreeLocation

_BASE_SNAPSHOTS_FILE: Final = "goes_on_from.json"
_ALTERNATES_DIRECTORY: Final = b".git/objects/info"
_ALTERNATES_NAME: Final = b"alternates"
_MAX_ALTERNATES_BYTES: Final = 1 << 16
"""A longer file is replaced. Git needs one line for each directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRequest:
    location: TreeLocation
    """`git_dir` is the final path of the host's git directory."""
    stored: StoredSnapshot
    user: tuple[int, int]
    branch: str = "main"
    mirror: Path | None = None
    objects_inside: str | None = None
    """Path of the mirror's objects as the agent sees it on this host."""
    is_private: bool = False
    """Whether only the user may access the files. Programs refuse keys that others can read, and snapshots have no
    permissions."""
    finish: Callable[[Path], Awaitable[None]] | None = None
    """As in a checkout: called with the host's git directory when all files are written."""


async def recover_tree(uploader: SnapshotUploader, request: RecoveryRequest) -> None:
    """Recovers the tree. The caller has exclusive access to the session and this tree."""
    location, private_dir = request.location, request.location.git_dir.parent
    host_git_dir = await asyncio.to_thread(reset_checkout, private_dir, location.tree, request.user)
    await init_git_dir(host_git_dir, request.branch, request.mirror)
    await uploader.restore_files(replace(location, git_dir=host_git_dir), request.stored, user=request.user)
    if request.objects_inside is not None:
        await asyncio.to_thread(update_alternates, location.tree, request.objects_inside, request.user)
    if request.is_private:
        await asyncio.to_thread(_make_private, location.tree)
    record_base_snapshots(host_git_dir, [request.stored])
    if request.finish is not None:
        await request.finish(host_git_dir)
    await failpoints.hit("tree_written")
    await asyncio.to_thread(host_git_dir.rename, private_dir / HOST_GIT_DIR_NAME)


def is_based_on(host_git_dir: Path, stored: StoredSnapshot | None) -> bool:
    """Whether the tree is based on the snapshot in the log. A tree without any snapshot matches a log without one."""
    try:
        found = orjson.loads((host_git_dir / _BASE_SNAPSHOTS_FILE).read_bytes())
    except FileNotFoundError:
        found = [None]
    except orjson.JSONDecodeError:  # the machine died while the file was written
        return False
    return snapshot_key(stored) in found


def record_base_snapshots(host_git_dir: Path, snapshots: Sequence[StoredSnapshot | None]) -> None:
    """Records the snapshots on which the tree may be based: the one that was restored, or the last two that were taken
    on this host. There are two because the worker cannot know whether the last one reached the log.
    """
    new = host_git_dir / f"{_BASE_SNAPSHOTS_FILE}.{os.getpid()}"
    new.write_bytes(orjson.dumps([snapshot_key(snapshot) for snapshot in snapshots]))
    new.replace(host_git_dir / _BASE_SNAPSHOTS_FILE)


def snapshot_key(stored: StoredSnapshot | None) -> list[int | str | None] | None:
    if stored is None:
        return None
    snapshot: Snapshot = stored.snapshot
    return [stored.number, snapshot.tree, snapshot.sidecar]


def _make_private(directory: Path) -> None:
    for _, _, names, descriptor in os.fwalk(directory, follow_symlinks=False):
        for name in names:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if not stat.S_ISLNK(status.st_mode):
                os.chmod(name, status.st_mode & stat.S_IRWXU, dir_fd=descriptor)
        os.fchmod(descriptor, stat.S_IRWXU)


def update_alternates(tree: Path, objects: str, user: tuple[int, int]) -> None:
    """Updates the path of the mirror's objects, which differs between hosts and between backends. Lines that the agent
    added are kept. The agent owns these files, so nothing is read or written through a link.
    """
    with SafeDirectory(tree) as root:
        try:
            directory = root.open_directory(_ALTERNATES_DIRECTORY)
        except OSError as error:
            if error.errno not in MISSING_PATH_ERRNOS:
                raise
            return  # the git directory was removed
        path = _ALTERNATES_DIRECTORY + b"/" + _ALTERNATES_NAME
        with root.inspect(path) as found:
            lines: list[bytes] = []
            if found is not None and found.is_file and found.status.st_size <= _MAX_ALTERNATES_BYTES:
                with found.open_file() as fd:
                    lines = os.read(fd, _MAX_ALTERNATES_BYTES).splitlines()
        wanted = os.fsencode(objects)
        if wanted in lines:
            return
        if found is not None:
            os.unlink(_ALTERNATES_NAME, dir_fd=directory)
        fd = os.open(_ALTERNATES_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=directory)
        with os.fdopen(fd, "wb") as file:
            file.write(b"\n".join([wanted, *lines[1:], b""]))
            if os.geteuid() == 0:
                os.fchown(file.fileno(), *user)
