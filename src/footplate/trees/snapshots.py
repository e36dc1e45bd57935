"""Takes snapshots: stores all files of a work tree as git trees, through a temporary index owned by the host.

git finds the changed paths (`looking.py`). The worker reads the files itself (`staging.py`), so a snapshot contains
only files of the workspace. The agent's git directory is stored as plain bytes (`apart.py`). Its index, configuration,
attributes and excludes are never used.

The same files have the same ids, so a snapshot without changes writes nothing.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from footplate.domain.errors import Unavailable
from footplate.domain.snapshots import Snapshot, Taken
from footplate.trees import apart, remembered
from footplate.trees.beneath import Beneath
from footplate.trees.git import Git, GitFailed
from footplate.trees.indexing import entry, removal, store, update, write_tree
from footplate.trees.looking import Seen, check_attributes, look
from footplate.trees.object_database import MAX_BYTES, MAX_FILES, ObjectDatabase
from footplate.trees.remembered import Kept, Remembered
from footplate.trees.scratch import scratch
from footplate.trees.staging import LINK, Copy, Limits, Staging

CONFIGURATION: Final = {
    # Names that another operating system would treat as `.git` are ordinary names here, as they are for the agent.
    "core.protectNTFS": "false",
    "core.protectHFS": "false",
    "core.precomposeUnicode": "false",
    "core.ignoreCase": "false",
    # git streams larger files instead of loading them into memory.
    "core.bigFileThreshold": "16m",
    "core.looseCompression": "1",
}


async def take(git_dir: Path, work_tree: Path, *, base: str | None = None, limits: Limits | None = None) -> Taken:
    """Takes a snapshot of `work_tree`. `git_dir` is the host's git directory for this tree, used by one caller at a
    time. `base` is the project's own tree: its files are stored even if they are ignored.

    If the agent changes files during the call, each file is stored as it was at some point during the call.
    """
    return (await take_and_remember(git_dir, work_tree, base=base, limits=limits))[0]


async def take_and_remember(
    git_dir: Path, work_tree: Path, *, base: str | None = None, limits: Limits | None = None
) -> tuple[Taken, Remembered]:
    """Takes a snapshot, and also returns the state that speeds up the next one."""
    limits = limits or Limits()
    with scratch(git_dir) as place:
        index = place / "index"
        git = Git(git_dir=git_dir, work_tree=work_tree, runs_in_work_tree=True, index=index, configuration=CONFIGURATION)
        try:
            os.link(git_dir / "index", index)  # safe: git replaces an index file and never modifies it in place
        except FileNotFoundError:
            await git.run("read-tree", "--empty")
        staging = Staging(place, limits, time.monotonic() + limits.timeout_seconds)
        try:
            async with asyncio.timeout(limits.timeout_seconds):
                return await _take(git, work_tree, base, staging)
        except TimeoutError:
            raise Unavailable(
                f"The session's files could not be read within {limits.timeout_seconds:g} s.",
                help_text="If there are very many new files, add generated files to the project's .gitignore.",
            ) from None


async def _take(git: Git, work_tree: Path, base: str | None, staging: Staging) -> tuple[Taken, Remembered]:
    seen = await look(git, work_tree, base)
    before = seen.before
    found = await asyncio.to_thread(_read, work_tree, seen, staging)
    gone = [removal(path) for path in (*found.gone, *seen.unwanted)]
    if gone:
        await update(git, gone)
    # git records the files in its index by itself while the worker stores its copies.
    noted, blobs = await asyncio.gather(_note(git, found.files), _store(git, [*found.files, *found.apart]))
    entries = [entry(copy.mode, blob, copy.path) for copy, blob in zip(found.files, blobs, strict=False)]
    kept = dict(found.same)
    for copy, blob in zip(found.apart, blobs[len(entries) :], strict=True):
        kept[copy.path] = apart.remember(copy.mode, copy.status, blob)
    changed = bool(gone or entries)
    after = Remembered(
        tree=await _tree(git, entries, noted=noted) if changed else before.tree,
        apart=before.apart if _same(kept, before.kept) else await _apart(git, staging.directory, kept),
        directories=before.directories | seen.directories,
        submodules=before.submodules - found.no_submodules,
        kept=kept,
    )
    if changed or after != before:
        index = git.index
        assert index is not None
        remembered.save(Path(git.git_dir), index, after, scratch=staging.directory)
    return Taken(Snapshot(after.tree, after.apart), tuple(staging.omitted)), after


@dataclass(frozen=True, slots=True)
class _Found:
    files: Sequence[Copy]
    gone: Sequence[bytes]
    apart: Sequence[Copy]
    same: Mapping[bytes, Kept]
    """Sidecar files that did not change since the last snapshot."""
    no_submodules: frozenset[bytes]


def _read(work_tree: Path, seen: Seen, staging: Staging) -> _Found:
    before = seen.before
    with Beneath(work_tree) as workspace:
        no_submodules = frozenset(path for path in before.submodules if not workspace.is_directory(path))
        staging.copy_paths(workspace, sorted(seen.paths | no_submodules))
        mine, staging.copies = staging.copies, []
        gone = [path for path in staging.missing if not apart.belongs(path, is_link=False)]
        files = [copy for copy in mine if not apart.belongs(copy.path, is_link=copy.mode == LINK)]
        refused = {copy.path for copy in mine}.difference(copy.path for copy in files)
        gone += [path for path in refused if not apart.belongs(path, is_link=False)]
        places = apart.places(work_tree, before.directories | seen.directories)
        places |= before.submodules - no_submodules
        paths = {path for place in places for path in apart.under(workspace, place)} | refused
        same = apart.take(workspace, sorted(paths), staging, before.kept)
        check_attributes(workspace, (copy.path for copy in files))
    return _Found(files, gone, staging.copies, same, no_submodules)


async def _store(git: Git, copies: Sequence[Copy]) -> list[str]:
    """Stores copies as blobs: small amounts in this process, larger amounts with git, which streams large files."""
    if len(copies) <= MAX_FILES and sum(copy.file.stat().st_size for copy in copies) <= MAX_BYTES:
        return await asyncio.to_thread(_write_blobs, git.git_dir, copies)
    return await store(git, [copy.file for copy in copies])


def _write_blobs(git_dir: Path, copies: Sequence[Copy]) -> list[str]:
    with ObjectDatabase(git_dir) as objects:
        return [objects.write_blob(copy.file.read_bytes()) for copy in copies]


async def _note(git: Git, files: Sequence[Copy]) -> bool:
    """Makes git record the status and blob ids of these files in its index, so that the next snapshot need not read
    them. git stores no content here, so a version that only git saw is in no snapshot.
    """
    if not files:
        return True
    paths = b"\0".join(copy.path for copy in files)
    try:
        await git.run("update-index", "-z", "--add", "--replace", "--info-only", "--stdin", stdin=paths)
    except GitFailed:  # for example, because a file was deleted in the meantime
        return False
    return True


async def _tree(git: Git, entries: Sequence[bytes], *, noted: bool) -> str:
    """Writes the tree. git refuses a tree with a blob that is not stored, which means that a file changed since it was
    copied. Then the tree is built from the copies.
    """
    if noted:
        with contextlib.suppress(GitFailed):
            return await write_tree(git)
    if entries:
        await update(git, entries)
    return await write_tree(git)


async def _apart(git: Git, place: Path, kept: Mapping[bytes, Kept]) -> str | None:
    if not kept:
        return None
    git = replace(git, index=place / "apart")
    await update(git, (entry(file.mode, file.blob, apart.escape(path)) for path, file in sorted(kept.items())))
    return await write_tree(git)


def _same(some: Mapping[bytes, Kept], others: Mapping[bytes, Kept]) -> bool:
    if some.keys() != others.keys():
        return False
    return all((file.mode, file.blob) == (others[path].mode, others[path].blob) for path, file in some.items())
