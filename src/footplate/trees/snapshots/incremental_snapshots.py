"""Takes snapshots of a tree during a turn. Each one reads only the files that changed since the previous snapshot.

The first snapshot scans every file. A later snapshot also does so if the changed paths are not sufficient, for example
after changes of ignore rules, submodules or many files. Both kinds of snapshot produce the same object ids.
"""

import asyncio
import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.files.snapshots import EMPTY_TREE, OmittedPath, Snapshot, TakenSnapshot
from footplate.trees.git import Git
from footplate.trees.git_plumbing import split_nul_separated
from footplate.trees.object_database import (
    MAX_BYTES,
    MAX_FILES,
    MAX_PACKS,
    ObjectDatabase,
    TreeEntry,
    TreeTooLarge,
    count_packs,
)
from footplate.trees.safe_open import InspectedPath, SafeDirectory
from footplate.trees.snapshots import full_snapshot, sidecar_tree
from footplate.trees.snapshots.changed_paths import parent_directories
from footplate.trees.snapshots.file_state_cache import CachedFile, SnapshotCache
from footplate.trees.snapshots.gitignore import GitignoreMatcher, UnsupportedRule
from footplate.trees.snapshots.packs import SnapshotStep
from footplate.trees.snapshots.staging_area import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, SnapshotLimits
from footplate.trees.snapshots.tree_watch import TouchedPaths, TreeWatch, WatchFailed

log = structlog.get_logger(__name__)

_GIT_SETTINGS: Final = {b".gitignore", b".gitattributes", b".gitmodules"}
"""Files that change how git treats other files."""
_MAX_NEW: Final = 100
_SECONDS: Final = 10.0
"""Time limit for processing the touched paths. A scan of every file has its own limit."""
_LISTING_SECONDS: Final = 3.0


class _FullScanNeeded(Exception):
    """The touched paths alone do not determine the snapshot."""


@dataclass(slots=True)
class _Change:
    """Touched paths, grouped by their meaning for the tree of the last snapshot."""

    known: list[bytes] = field(default_factory=list)
    """Files that are in the snapshot."""
    new: list[bytes] = field(default_factory=list)
    """Files that are not in the snapshot."""
    unclear: list[bytes] = field(default_factory=list)
    """New files for which git has to decide whether they are ignored."""
    gone: list[bytes] = field(default_factory=list)
    """Directories of the snapshot that no longer exist."""
    sidecar: list[bytes] = field(default_factory=list)
    """Paths in the agent's own git directory."""


@dataclass(slots=True)
class _State:
    """The result of the last snapshot."""

    cache: SnapshotCache
    omitted: Mapping[bytes, OmittedPath] = field(default_factory=dict)
    small: frozenset[str] = frozenset()
    """Blobs of this turn that are small enough to be read into memory."""


@dataclass(slots=True)
class IncrementalSnapshots:
    """Takes incremental snapshots of one tree. Not safe for concurrent use.

    Changed ignore rules, nested repositories, submodules, hard links, and many or large files
    require a scan of every file.
    """

    git_dir: Path
    work_tree: Path
    limits: SnapshotLimits
    uploaded: SnapshotStep | None = None
    """The last step whose pack is in the object store."""
    _watch: TreeWatch | None = None
    _watchable: bool = True
    """False if a watch could not be created, even without the ignored directories, or if there are too many packs."""
    _objects: ObjectDatabase | None = None
    _state: _State = field(default_factory=lambda: _State(SnapshotCache(tree=EMPTY_TREE)))

    async def take_snapshot(self, base: str | None) -> TakenSnapshot:
        """Takes a snapshot of the touched paths; the first time, of every file. `base`: id of the project's tree."""
        if self._watch is None:
            return await self._restart_watch(base)
        try:
            touched = await asyncio.to_thread(self._watch.read_touched)
            if touched.paths:
                async with asyncio.timeout(_SECONDS):
                    self._state = await self._snapshot_touched(touched)
            cache, omitted = self._state.cache, self._state.omitted
            return TakenSnapshot(Snapshot(cache.tree, cache.sidecar), tuple(omitted.values()))
        except WatchFailed:
            return await self._restart_watch(base)
        except (_FullScanNeeded, TreeTooLarge):
            return await (self._restart_watch(base) if self._watch.skipped else self._scan_all(base))
        except Exception:  # a scan of every file shows whether something is really wrong
            log.warning(
                "incremental snapshot failed; taking a full snapshot",
                action="snapshot.incremental_failed",
                exc_info=True,
            )
            return await self._restart_watch(base)
        except BaseException:  # the touched paths were consumed, so the next snapshot has to scan every file
            await self.close()
            raise

    async def watch_empty_tree(self) -> None:
        """Starts watching a tree that has no files yet. If it already has files, `take_snapshot` scans them first."""
        if self._watch is not None:
            return
        with contextlib.suppress(WatchFailed):
            watch = await asyncio.to_thread(TreeWatch, self.work_tree)
            try:
                if not await asyncio.to_thread(os.listdir, self.work_tree):
                    self._watch = watch
            finally:
                if self._watch is None:
                    await asyncio.to_thread(watch.close)

    async def close(self) -> None:
        watch, objects, self._watch, self._objects = self._watch, self._objects, None, None
        self._state = _State(SnapshotCache(tree=EMPTY_TREE))
        if objects is not None:
            with contextlib.suppress(BufferError):  # a cancelled snapshot's thread may still be reading
                objects.close()
        if watch is not None:
            await asyncio.to_thread(watch.close)  # slow in the kernel with many watches

    async def build_pack(self, before: Snapshot | None, after: Snapshot) -> bytes | None:
        """Returns a pack of the objects that `after` adds to `before`, or None if git has to build it."""
        if self._watch is None:
            return None
        try:
            return await asyncio.to_thread(_build_pack, self._open_objects(), self._state.small, before, after)
        except (KeyError, RecursionError, OSError, TreeTooLarge):
            return None

    async def _restart_watch(self, base: str | None) -> TakenSnapshot:
        await self.close()
        self._watchable = self._watchable and await asyncio.to_thread(count_packs, self.git_dir) <= MAX_PACKS
        if self._watchable:
            try:
                self._watch = await asyncio.to_thread(TreeWatch, self.work_tree)
            except WatchFailed:
                await self._watch_without_ignored()
        return await self._scan_all(base)

    async def _watch_without_ignored(self) -> None:
        """Retries the watch without ignored directories. Installed packages are often most of a large tree."""
        try:
            async with asyncio.timeout(_LISTING_SECONDS):
                git = Git(git_dir=self.git_dir, work_tree=self.work_tree, runs_in_work_tree=True)
                listed = await git.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
                # The list includes directories that are ignored only because all their current files are.
                named = [
                    path for path in split_nul_separated(listed) if path.endswith(b"/") and not path.startswith(b":")
                ]
                names = b"".join(path.rstrip(b"/") + b"\0" for path in named)
                git = replace(git, variables={"GIT_LITERAL_PATHSPECS": "0"})  # check-ignore refuses literal pathspecs
                _, ignored = await git.run_with_exit_code("check-ignore", "-z", "--stdin", "--no-index", stdin=names)
            self._watch = await asyncio.to_thread(TreeWatch, self.work_tree, skipped=split_nul_separated(ignored))
        except (WatchFailed, FootplateError, TimeoutError):
            self._watchable = False

    async def _scan_all(self, base: str | None) -> TakenSnapshot:
        try:
            taken, cache = await full_snapshot.take_snapshot_and_cache(
                self.git_dir, self.work_tree, base=base, limits=self.limits
            )
        except BaseException:
            await self.close()
            raise
        self._state = _State(cache, {each.path: each for each in taken.omitted}, self._state.small)
        return taken

    async def _snapshot_touched(self, touched: TouchedPaths) -> _State:
        objects, state = self._open_objects(), self._state
        change = await asyncio.to_thread(_classify, self.work_tree, objects, state.cache.tree, touched)
        if change.unclear:
            change.new += await self._list_not_ignored(change.unclear)
        return await asyncio.to_thread(_apply, self.work_tree, objects, state, change, touched)

    async def _list_not_ignored(self, paths: Sequence[bytes]) -> list[bytes]:
        """Returns the paths that git does not ignore. Uses an empty index, because the one on disk is from the last
        full scan.
        """
        index = self.git_dir / "no-index"
        git = Git(git_dir=self.git_dir, work_tree=self.work_tree, runs_in_work_tree=True, index=index)
        names = [path.decode("utf-8", "surrogateescape") for path in paths]
        async with asyncio.timeout(_LISTING_SECONDS):
            listed = split_nul_separated(
                await git.run("ls-files", "-z", "--others", "--exclude-standard", "--", *names)
            )
        if any(path.endswith(b"/") for path in listed):
            raise _FullScanNeeded
        return listed

    def _open_objects(self) -> ObjectDatabase:
        if self._objects is None:
            self._objects = ObjectDatabase(self.git_dir)
        return self._objects


def _classify(work_tree: Path, objects: ObjectDatabase, tree: str, touched: TouchedPaths) -> _Change:
    change = _Change()
    with SafeDirectory(work_tree) as workspace:
        for path in sorted(touched.paths):
            if path.startswith(sidecar_tree.GIT_DIR_NAME + b"/"):
                change.sidecar.append(path)
            elif path.rpartition(b"/")[2] in _GIT_SETTINGS or sidecar_tree.is_sidecar_path(path, is_link=False):
                raise _FullScanNeeded
            else:
                with workspace.inspect(path) as found:
                    _classify_path(change, path, objects.find_entry(tree, path), found, touched)
        if sidecar_tree.find_git_directories(work_tree, parent_directories(change.new)) - {sidecar_tree.GIT_DIR_NAME}:
            raise _FullScanNeeded
        matcher = GitignoreMatcher(workspace)
        new = change.new
        change.new = []
        for path in new:
            try:
                if not matcher.is_ignored(path):
                    change.new.append(path)
            except UnsupportedRule:
                change.unclear.append(path)
    return change


def _classify_path(
    change: _Change, path: bytes, entry: TreeEntry | None, found: InspectedPath | None, touched: TouchedPaths
) -> None:
    if found is not None and found.is_file and found.status.st_nlink > 1:
        raise _FullScanNeeded  # it also changed under its other names
    if entry is None:
        if found is not None and not found.is_directory:
            change.new.append(path)
    elif entry.is_submodule:
        raise _FullScanNeeded
    elif not entry.is_directory:
        change.known.append(path)
    elif found is None:
        change.gone.append(path)
    elif path in touched.directories or not found.is_directory:
        raise _FullScanNeeded
    if len(change.new) > _MAX_NEW or len(change.known) > MAX_FILES:
        raise _FullScanNeeded


def _apply(work_tree: Path, objects: ObjectDatabase, state: _State, change: _Change, touched: TouchedPaths) -> _State:
    """Builds the new state. Changes only the object database, because the thread keeps running if the snapshot is
    cancelled.
    """
    before, touched_git_paths = state.cache, frozenset(change.sidecar)
    if any(
        _is_at_or_below(path, touched.paths)
        for path in before.sidecar_files
        if not path.startswith(sidecar_tree.GIT_DIR_NAME + b"/")
    ):
        raise _FullScanNeeded  # a nested repository, or files in a submodule
    reader = _Reader(objects)
    changes: dict[bytes, TreeEntry | None] = dict.fromkeys(change.gone)
    sidecar_files = {
        path: each for path, each in before.sidecar_files.items() if not _is_at_or_below(path, touched_git_paths)
    }
    with SafeDirectory(work_tree) as workspace:
        for path in sorted((*change.known, *change.new)):
            with workspace.inspect(path) as found:
                stored = reader.store(found)
                if stored is not None and sidecar_tree.is_sidecar_path(path, is_link=stored.mode == LINK_MODE):
                    raise _FullScanNeeded
                changes[path] = None if stored is None else TreeEntry(int(stored.mode, 8), stored.blob)
        for path in sorted({path for top in touched_git_paths for path in sidecar_tree.iter_files(workspace, top)}):
            with workspace.inspect(path) as found:
                if (stored := reader.store(found)) is not None:
                    sidecar_files[path] = sidecar_tree.create_cache_record(stored.mode, stored.status, stored.blob)
    omitted = {path: each for path, each in state.omitted.items() if not _is_at_or_below(path, touched.paths)}
    return _State(
        SnapshotCache(
            tree=objects.change_tree(before.tree, changes),
            sidecar=_change_sidecar(objects, before, sidecar_files),
            sidecar_files=sidecar_files,
        ),
        omitted,
        state.small | reader.blobs,
    )


class _Stored(NamedTuple):
    mode: str
    blob: str
    status: os.stat_result


class _Reader:
    """Stores files as blobs. Raises `_FullScanNeeded` if they are too many or too large."""

    def __init__(self, objects: ObjectDatabase) -> None:
        self._objects = objects
        self._bytes = 0
        self._files = 0
        self.blobs: set[str] = set()

    def store(self, found: InspectedPath | None) -> _Stored | None:
        """Returns None if the file no longer exists."""
        if found is None or found.is_directory:
            return None
        if found.is_link:
            mode, content = LINK_MODE, found.read_link()
        elif found.is_file:
            mode, content = (EXECUTABLE_MODE if found.is_executable else FILE_MODE), self._read(found)
        else:
            raise _FullScanNeeded
        self._files += 1
        self._bytes += len(content)
        if self._files > MAX_FILES or self._bytes > MAX_BYTES:
            raise _FullScanNeeded
        blob = self._objects.write_blob(content)
        self.blobs.add(blob)
        return _Stored(mode, blob, found.status)

    @staticmethod
    def _read(found: InspectedPath) -> bytes:
        pieces: list[bytes] = []
        size = 0
        with found.open_file() as descriptor:
            while size <= MAX_BYTES and (piece := os.read(descriptor, MAX_BYTES)):
                pieces.append(piece)
                size += len(piece)
        return b"".join(pieces)


def _build_pack(
    objects: ObjectDatabase, small: Collection[str], before: Snapshot | None, after: Snapshot
) -> bytes | None:
    ids: dict[str, None] = {}
    for old, new in zip(_trees(before), _trees(after), strict=True):
        for object_id, is_tree in objects.iter_added_objects(old, new):
            if not is_tree and object_id not in small:
                return None
            ids[object_id] = None
    return objects.build_pack(ids) if ids else None


def _change_sidecar(
    objects: ObjectDatabase, before: SnapshotCache, sidecar_files: Mapping[bytes, CachedFile]
) -> str | None:
    changes: dict[bytes, TreeEntry | None] = {
        sidecar_tree.escape_path(path): None for path in before.sidecar_files.keys() - sidecar_files.keys()
    }
    for path, new in sidecar_files.items():
        old = before.sidecar_files.get(path)
        if old is None or (old.mode, old.blob) != (new.mode, new.blob):
            changes[sidecar_tree.escape_path(path)] = TreeEntry(int(new.mode, 8), new.blob)
    if not sidecar_files:
        return None
    return objects.change_tree(before.sidecar or EMPTY_TREE, changes) if changes else before.sidecar


def _is_at_or_below(path: bytes, tops: Collection[bytes]) -> bool:
    while path:
        if path in tops:
            return True
        path = path.rpartition(b"/")[0]
    return False


def _trees(snapshot: Snapshot | None) -> Sequence[str]:
    if snapshot is None:
        return (EMPTY_TREE, EMPTY_TREE, EMPTY_TREE)
    return (snapshot.tree, snapshot.sidecar or EMPTY_TREE, snapshot.bundles or EMPTY_TREE)
