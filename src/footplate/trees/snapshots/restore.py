"""Restores the files of a snapshot into an empty directory, before an agent works there.

Contents, symbolic links and file modes are restored. The files of the agent's git directory are restored byte for byte,
and the host's git never uses that directory as a repository.
"""

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import Snapshot
from footplate.trees.git import Git
from footplate.trees.git_plumbing import split_nul_separated
from footplate.trees.snapshots import sidecar_tree
from footplate.trees.snapshots.full_snapshot import SNAPSHOT_GIT_CONFIGURATION

# git requires these two directories in a git directory, and a tree cannot store empty directories.
_REQUIRED_DIRECTORIES: Final = (b"objects", b"refs")


async def restore_snapshot(
    git_dir: Path, snapshot: Snapshot, work_tree: Path, *, user: tuple[int, int] | None = None
) -> None:
    """Restores a snapshot. `work_tree` exists and is empty. `git_dir` is the host's git directory for this tree. Its
    index matches the files afterwards.

    If the process is killed, the tree is incomplete. Start again with an empty directory.
    """
    if os.listdir(work_tree):  # noqa: PTH208 - the shortest check
        raise Permanent(f"The snapshot cannot be restored to {work_tree.name!r}: the directory is not empty.")
    git = Git(git_dir=git_dir, work_tree=work_tree, user=user, configuration=SNAPSHOT_GIT_CONFIGURATION)
    (git_dir / "index").unlink(missing_ok=True)
    await git.run("read-tree", snapshot.tree)
    await git.run("checkout-index", "--all", "--index")
    if snapshot.sidecar is not None:
        await _restore_sidecar(git, snapshot.sidecar, work_tree)


async def _restore_sidecar(git: Git, tree: str, work_tree: Path) -> None:
    """Checks out the sidecar tree to a temporary directory, under escaped names, and then moves each file to its real
    path.
    """
    with _temporary_checkout(work_tree, git.user) as (checkout_dir, index):
        git = replace(git, index=index)
        await git.run("read-tree", tree)
        await git.run("checkout-index", "--all", f"--prefix={checkout_dir}/")
        paths = split_nul_separated(await git.run("ls-files", "-z", "--cached"))
        await asyncio.to_thread(_move_files, checkout_dir, work_tree, paths, git.user)


def _move_files(checkout_dir: Path, work_tree: Path, paths: list[bytes], user: tuple[int, int] | None) -> None:
    source, target = os.fsencode(checkout_dir) + b"/", os.fsencode(work_tree) + b"/"
    made: set[bytes] = set()
    heads: list[bytes] = []
    for stored in paths:
        path = sidecar_tree.unescape_path(stored)
        directory, _, name = path.rpartition(b"/")
        if not _make_directory(target, directory, made, user):
            continue  # a link that appeared while the snapshot was taken: it could lead anywhere
        if name == b"HEAD":
            heads.append(directory)
        os.rename(source + stored, target + path)  # noqa: PTH104 - a name may be any bytes
    for directory in heads:  # last, because the agent may have had something else there, such as a link
        for name_in_git_dir in _REQUIRED_DIRECTORIES:
            _make_directory(target, directory + b"/" + name_in_git_dir, made, user)


def _make_directory(root: bytes, directory: bytes, made: set[bytes], user: tuple[int, int] | None) -> bool:
    """Creates a directory and its parents, owned by the agent's user. Returns False if something else has the name."""
    if not directory or directory in made:
        return True
    if not _make_directory(root, directory.rpartition(b"/")[0], made, user):
        return False
    try:
        os.mkdir(root + directory)  # noqa: PTH102 - as above
        if user is not None and os.geteuid() == 0:
            os.chown(root + directory, *user)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(root + directory).st_mode):
            return False
    made.add(directory)
    return True


@contextlib.contextmanager
def _temporary_checkout(work_tree: Path, user: tuple[int, int] | None) -> Iterator[tuple[Path, Path]]:
    """Creates a temporary directory on the same filesystem, and the path of an index. git may run as another user."""
    scratch = Path(tempfile.mkdtemp(prefix=".restoring-", dir=work_tree.parent))
    try:
        checkout_dir = scratch / "apart"
        checkout_dir.mkdir()
        if user is not None and os.geteuid() == 0:
            os.chown(scratch, *user)
            os.chown(checkout_dir, *user)
        yield checkout_dir, scratch / "index"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
