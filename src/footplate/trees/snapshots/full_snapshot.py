"""Takes a full snapshot: stores all files of a working tree as git trees, through a temporary index that the host owns.

git finds the changed paths (`changed_paths.py`), but the worker reads the files itself (`staging_area.py`). The agent's
git directory is stored as plain bytes (`sidecar_tree.py`), and its configuration is never used. The same files have the
same object ids, so a snapshot without changes writes nothing.
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
from footplate.domain.files.snapshots import Snapshot, TakenSnapshot
from footplate.trees.git import Git, GitFailed
from footplate.trees.git_plumbing import format_index_entry, format_index_removal, store_blobs, update_index, write_tree
from footplate.trees.object_database import MAX_BYTES, MAX_FILES, ObjectDatabase
from footplate.trees.safe_open import SafeDirectory
from footplate.trees.scratch_directory import scratch_directory
from footplate.trees.snapshots import file_state_cache, sidecar_tree
from footplate.trees.snapshots.changed_paths import ScanResult, check_attributes, find_changed_paths
from footplate.trees.snapshots.file_state_cache import CachedFile, SnapshotCache
from footplate.trees.snapshots.staging_area import LINK_MODE, SnapshotLimits, StagedCopy, StagingArea

SNAPSHOT_GIT_CONFIGURATION: Final = {
    # Names that another operating system would treat as `.git` are ordinary names here, as they are for the agent.
    "core.protectNTFS": "false",
    "core.protectHFS": "false",
    "core.precomposeUnicode": "false",
    "core.ignoreCase": "false",
    # git streams larger files instead of loading them into memory.
    "core.bigFileThreshold": "16m",
    "core.looseCompression": "1",
}


async def take_snapshot(
    git_dir: Path, work_tree: Path, *, base: str | None = None, limits: SnapshotLimits | None = None
) -> TakenSnapshot:
    """Takes a snapshot of `work_tree`. `git_dir` is the host's git directory for this tree, used by one caller at a
    time. `base` is the project's own tree: its files are stored even if they are ignored.

    If the agent changes files during the call, each file is stored as it was at some point during the call.
    """
    return (await take_snapshot_and_cache(git_dir, work_tree, base=base, limits=limits))[0]


async def take_snapshot_and_cache(
    git_dir: Path, work_tree: Path, *, base: str | None = None, limits: SnapshotLimits | None = None
) -> tuple[TakenSnapshot, SnapshotCache]:
    """Takes a snapshot, and also returns the state that speeds up the next one."""
    limits = limits or SnapshotLimits()
    with scratch_directory(git_dir) as scratch_dir:
        index = scratch_dir / "index"
        git = Git(
            git_dir=git_dir,
            work_tree=work_tree,
            runs_in_work_tree=True,
            index=index,
            configuration=SNAPSHOT_GIT_CONFIGURATION,
        )
        try:
            os.link(git_dir / "index", index)  # safe: git replaces an index file and never modifies it in place
        except FileNotFoundError:
            await git.run("read-tree", "--empty")
        staging = StagingArea(scratch_dir, limits, time.monotonic() + limits.timeout_seconds)
        try:
            async with asyncio.timeout(limits.timeout_seconds):
                return await _scan_and_store(git, work_tree, base, staging)
        except TimeoutError:
            raise Unavailable(
                f"The session's files could not be read within {limits.timeout_seconds:g} s.",
                help_text="If there are very many new files, add generated files to the project's .gitignore.",
            ) from None


async def _scan_and_store(
    git: Git, work_tree: Path, base: str | None, staging: StagingArea
) -> tuple[TakenSnapshot, SnapshotCache]:
    scan = await find_changed_paths(git, work_tree, base)
    before = scan.previous
    staged = await asyncio.to_thread(_stage_files, work_tree, scan, staging)
    gone = [format_index_removal(path) for path in (*staged.missing, *scan.index_removals)]
    if gone:
        await update_index(git, gone)
    # git records the files in its index by itself while the worker stores its copies.
    recorded, blobs = await asyncio.gather(
        _record_in_index(git, staged.files), _store_copies(git, [*staged.files, *staged.sidecar])
    )
    entries = [format_index_entry(copy.mode, blob, copy.path) for copy, blob in zip(staged.files, blobs, strict=False)]
    sidecar_files = dict(staged.unchanged_sidecar)
    for copy, blob in zip(staged.sidecar, blobs[len(entries) :], strict=True):
        sidecar_files[copy.path] = sidecar_tree.create_cache_record(copy.mode, copy.status, blob)
    changed = bool(gone or entries)
    after = SnapshotCache(
        tree=await _write_files_tree(git, entries, recorded=recorded) if changed else before.tree,
        sidecar=before.sidecar
        if _has_same_blobs(sidecar_files, before.sidecar_files)
        else await _write_sidecar_tree(git, staging.directory, sidecar_files),
        directories=before.directories | scan.new_directories,
        submodules=before.submodules - staged.removed_submodules,
        sidecar_files=sidecar_files,
    )
    if changed or after != before:
        index = git.index
        assert index is not None
        file_state_cache.save_cache(Path(git.git_dir), index, after, scratch=staging.directory)
    return TakenSnapshot(Snapshot(after.tree, after.sidecar), tuple(staging.omitted)), after


@dataclass(frozen=True, slots=True)
class _StagedFiles:
    files: Sequence[StagedCopy]
    missing: Sequence[bytes]
    sidecar: Sequence[StagedCopy]
    unchanged_sidecar: Mapping[bytes, CachedFile]
    """Sidecar files that did not change since the last snapshot."""
    removed_submodules: frozenset[bytes]


def _stage_files(work_tree: Path, scan: ScanResult, staging: StagingArea) -> _StagedFiles:
    before = scan.previous
    with SafeDirectory(work_tree) as workspace:
        removed_submodules = frozenset(path for path in before.submodules if not workspace.is_directory(path))
        staging.copy_paths(workspace, sorted(scan.paths | removed_submodules))
        copies = staging.copies
        staging.copies = []
        missing = [path for path in staging.missing if not sidecar_tree.is_sidecar_path(path, is_link=False)]
        files = [copy for copy in copies if not sidecar_tree.is_sidecar_path(copy.path, is_link=copy.mode == LINK_MODE)]
        refused = {copy.path for copy in copies}.difference(copy.path for copy in files)
        missing += [path for path in refused if not sidecar_tree.is_sidecar_path(path, is_link=False)]
        sidecar_roots = sidecar_tree.find_git_directories(work_tree, before.directories | scan.new_directories)
        sidecar_roots |= before.submodules - removed_submodules
        paths = {path for root in sidecar_roots for path in sidecar_tree.iter_files(workspace, root)} | refused
        unchanged_sidecar = sidecar_tree.copy_changed_files(workspace, sorted(paths), staging, before.sidecar_files)
        check_attributes(workspace, (copy.path for copy in files))
    return _StagedFiles(files, missing, staging.copies, unchanged_sidecar, removed_submodules)


async def _store_copies(git: Git, copies: Sequence[StagedCopy]) -> list[str]:
    """Stores copies as blobs: small amounts in this process, larger amounts with git, which streams large files."""
    if len(copies) <= MAX_FILES and sum(copy.file.stat().st_size for copy in copies) <= MAX_BYTES:
        return await asyncio.to_thread(_write_blobs, git.git_dir, copies)
    return await store_blobs(git, [copy.file for copy in copies])


def _write_blobs(git_dir: Path, copies: Sequence[StagedCopy]) -> list[str]:
    with ObjectDatabase(git_dir) as objects:
        return [objects.write_blob(copy.file.read_bytes()) for copy in copies]


async def _record_in_index(git: Git, files: Sequence[StagedCopy]) -> bool:
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


async def _write_files_tree(git: Git, entries: Sequence[bytes], *, recorded: bool) -> str:
    """Writes the tree. git refuses a tree with a blob that is not stored, which means that a file changed since it was
    copied. Then the tree is built from the copies.
    """
    if recorded:
        with contextlib.suppress(GitFailed):
            return await write_tree(git)
    if entries:
        await update_index(git, entries)
    return await write_tree(git)


async def _write_sidecar_tree(git: Git, scratch_dir: Path, sidecar_files: Mapping[bytes, CachedFile]) -> str | None:
    if not sidecar_files:
        return None
    git = replace(git, index=scratch_dir / "apart")
    await update_index(
        git,
        (
            format_index_entry(file.mode, file.blob, sidecar_tree.escape_path(path))
            for path, file in sorted(sidecar_files.items())
        ),
    )
    return await write_tree(git)


def _has_same_blobs(some: Mapping[bytes, CachedFile], others: Mapping[bytes, CachedFile]) -> bool:
    if some.keys() != others.keys():
        return False
    return all((file.mode, file.blob) == (others[path].mode, others[path].blob) for path, file in some.items())
