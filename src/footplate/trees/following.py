"""Takes the snapshots of one tree during a turn: each looks only at what was touched since the one before.

The first one looks at every file, and so does whatever the touched paths alone do not decide: rules of what is ignored
that changed, nested repositories, submodules, very many or very large files. Both ways give the same ids.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from footplate.domain.snapshots import EMPTY, LeftOut, Snapshot, Taken
from footplate.trees import apart, snapshots
from footplate.trees.beneath import Beneath, Found
from footplate.trees.git import Git, GitFailed
from footplate.trees.ignores import AskGit, Ignores
from footplate.trees.indexing import split
from footplate.trees.looking import parents_of
from footplate.trees.object_database import ObjectDatabase, TreeEntry
from footplate.trees.remembered import Kept, Remembered
from footplate.trees.scratch import scratch
from footplate.trees.staging import LINK, Limits, Staging
from footplate.trees.watches import CannotWatch, Touched, TreeWatch

_RULES: Final = {b".gitignore", b".gitattributes", b".gitmodules"}
"""Files that say something about others."""
_MAX_NEW: Final = 100
_MAX_BYTES: Final = 1 << 20
"""More than this is read and compressed by git, in a process of its own."""


class _LookAtAll(Exception):
    """The touched paths alone do not decide what the snapshot has."""


@dataclass(slots=True)
class _Change:
    """Paths that were touched, by what they mean for the tree of the last snapshot."""

    known: list[bytes] = field(default_factory=list)
    """Files that it has."""
    new: list[bytes] = field(default_factory=list)
    """That it has not."""
    unclear: list[bytes] = field(default_factory=list)
    """That it has not, and that may be ignored."""
    gone: list[bytes] = field(default_factory=list)
    """Directories that it has and that are no more."""
    apart: list[bytes] = field(default_factory=list)
    """In the agent's own git directory."""


@dataclass(slots=True)
class FollowedTree:
    """Used by one at a time."""

    git_dir: Path
    work_tree: Path
    limits: Limits
    _watch: TreeWatch | None = None
    _watchable: bool = True
    """False: it has too many directories, or the host no watches left."""
    _objects: ObjectDatabase | None = None
    _state: Remembered = field(default_factory=lambda: Remembered(tree=EMPTY))
    _left_out: dict[bytes, LeftOut] = field(default_factory=dict)
    _small: set[str] = field(default_factory=set)
    """Blobs of this turn that may be read into memory."""

    async def take(self, base: str | None) -> Taken:
        """Looks at what was touched since the last time; the first time, at every file. `base`: the project's tree."""
        if self._watch is None:
            return await self._begin(base)
        try:
            touched = await asyncio.to_thread(self._watch.changed)
        except CannotWatch:
            return await self._begin(base)
        try:
            if touched.paths:
                async with asyncio.timeout(self.limits.seconds):
                    await self._follow(touched)
            return Taken(Snapshot(self._state.tree, self._state.apart), tuple(self._left_out.values()))
        except (_LookAtAll, GitFailed, KeyError, TimeoutError):
            return await self._look_at_all(base)
        except BaseException:  # what was touched is forgotten by now
            await self.close()
            raise

    async def begin_empty(self) -> None:
        """Follow a tree that has no files yet. One that has some is looked at first, by `take`."""
        if self._watch is not None:
            return
        with contextlib.suppress(CannotWatch):
            self._watch = await asyncio.to_thread(TreeWatch, self.work_tree)
            if await asyncio.to_thread(os.listdir, self.work_tree):
                await self.close()

    async def close(self) -> None:
        watch, objects, self._watch, self._objects = self._watch, self._objects, None, None
        self._small.clear()
        if objects is not None:
            objects.close()
        if watch is not None:
            await asyncio.to_thread(watch.close)  # the kernel takes its time for many watches

    def pack(self, before: Snapshot | None, after: Snapshot) -> bytes | None:
        """What the second snapshot adds to the first; None if that is not known to be small. Blocking."""
        if self._watch is None:
            return None
        objects = self._opened()
        ids: dict[str, bool] = {}
        for old, new in zip(_trees(before), _trees(after), strict=True):
            ids |= dict(objects.added(old, new))
        if not ids or any(not is_tree and one not in self._small for one, is_tree in ids.items()):
            return None
        return objects.pack(ids)

    async def _begin(self, base: str | None) -> Taken:
        await self.close()
        if self._watchable:
            try:
                self._watch = await asyncio.to_thread(TreeWatch, self.work_tree)
            except CannotWatch:
                await self._watch_without_ignored()
        return await self._look_at_all(base)

    async def _watch_without_ignored(self) -> None:
        """Many directories are often of installed packages, which projects ignore."""
        git = Git(git_dir=self.git_dir, work_tree=self.work_tree, inside=True)
        listed = split(await git.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
        skipped = [path.rstrip(b"/") for path in listed if path.endswith(b"/")]
        try:
            self._watch = await asyncio.to_thread(TreeWatch, self.work_tree, skipped=skipped)
        except CannotWatch:
            self._watchable = False

    async def _look_at_all(self, base: str | None) -> Taken:
        try:
            taken, self._state = await snapshots.take_and_remember(
                self.git_dir, self.work_tree, base=base, limits=self.limits
            )
        except BaseException:
            await self.close()
            raise
        self._left_out = {each.path: each for each in taken.left_out}
        return taken

    async def _follow(self, touched: Touched) -> None:
        change = await asyncio.to_thread(self._sort, touched)
        if change.unclear:
            change.new += await self._ask_git(change.unclear)
        await asyncio.to_thread(self._apply, change)
        self._left_out = {path: each for path, each in self._left_out.items() if path not in touched.paths}

    def _sort(self, touched: Touched) -> _Change:
        change = _Change()
        with Beneath(self.work_tree) as workspace:
            ignores = Ignores(workspace)
            for path in sorted(touched.paths):
                if path.startswith(apart.GIT + b"/"):
                    change.apart.append(path)
                elif path.rpartition(b"/")[2] in _RULES or apart.belongs(path, is_link=False):
                    raise _LookAtAll
                else:
                    with workspace.look(path) as found:
                        self._sort_one(change, path, found, renamed=path in touched.moved_away)
            new, change.new = change.new, []
            if len(new) > _MAX_NEW or apart.places(self.work_tree, parents_of(new)) - {apart.GIT}:
                raise _LookAtAll
            for path in new:
                try:
                    if not ignores.is_ignored(path):
                        change.new.append(path)
                except AskGit:
                    change.unclear.append(path)
        return change

    def _sort_one(self, change: _Change, path: bytes, found: Found | None, *, renamed: bool) -> None:
        entry = self._opened().find(self._state.tree, path)
        if found is not None and found.is_file and found.status.st_nlink > 1:
            raise _LookAtAll  # it changed under its other names too
        if entry is None:
            if found is not None and not found.is_directory:
                change.new.append(path)
        elif entry.is_submodule:
            raise _LookAtAll
        elif not entry.is_directory:
            change.known.append(path)
        elif found is None:
            change.gone.append(path)
        elif renamed or not found.is_directory:
            raise _LookAtAll

    async def _ask_git(self, paths: Sequence[bytes]) -> list[bytes]:
        """Those that are not ignored, by an index that has nothing: the one on disk is of the last look at all."""
        index = self.git_dir / "no-index"
        git = Git(git_dir=self.git_dir, work_tree=self.work_tree, inside=True, index=index)
        names = [path.decode("utf-8", "surrogateescape") for path in paths]
        listed = split(await git.run("ls-files", "-z", "--others", "--exclude-standard", "--", *names))
        if any(path.endswith(b"/") for path in listed):
            raise _LookAtAll
        return listed

    def _apply(self, change: _Change) -> None:
        objects, before = self._opened(), self._state
        touched = frozenset(change.apart)
        with scratch(self.git_dir) as place, Beneath(self.work_tree) as workspace:
            staging = Staging(place, self.limits, time.monotonic() + self.limits.seconds)
            staging.take(workspace, sorted((*change.known, *change.new)))
            files, staging.copies = staging.copies, []
            removed = [*staging.gone, *change.gone]
            paths = {path for top in touched for path in apart.under(workspace, top)}
            same = apart.take(workspace, sorted(paths), staging, before.kept)
            copies = [*files, *staging.copies]
            if any(apart.belongs(copy.path, is_link=copy.mode == LINK) for copy in files) or staging.left_out:
                raise _LookAtAll
            if sum(copy.file.stat().st_size for copy in copies) > _MAX_BYTES:
                raise _LookAtAll
            blobs = {copy.path: objects.write_blob(copy.file.read_bytes()) for copy in copies}
        self._small.update(blobs.values())
        changes: dict[bytes, TreeEntry | None] = dict.fromkeys(removed)
        changes |= {copy.path: TreeEntry(int(copy.mode, 8), blobs[copy.path]) for copy in files}
        kept = {path: each for path, each in before.kept.items() if not _is_at_or_below(path, touched)}
        kept |= same | {copy.path: apart.remember(copy, blobs[copy.path]) for copy in staging.copies}
        self._state = Remembered(
            tree=objects.change_tree(before.tree, changes),
            apart=_change_apart(objects, before, kept),
            kept=kept,
        )

    def _opened(self) -> ObjectDatabase:
        if self._objects is None:
            self._objects = ObjectDatabase(self.git_dir)
        return self._objects


def _change_apart(objects: ObjectDatabase, before: Remembered, kept: Mapping[bytes, Kept]) -> str | None:
    changes: dict[bytes, TreeEntry | None] = {apart.escape(path): None for path in before.kept.keys() - kept.keys()}
    for path, now in kept.items():
        was = before.kept.get(path)
        if was is None or (was.mode, was.blob) != (now.mode, now.blob):
            changes[apart.escape(path)] = TreeEntry(int(now.mode, 8), now.blob)
    if not kept:
        return None
    return objects.change_tree(before.apart or EMPTY, changes) if changes else before.apart


def _is_at_or_below(path: bytes, tops: Collection[bytes]) -> bool:
    while path:
        if path in tops:
            return True
        path = path.rpartition(b"/")[0]
    return False


def _trees(snapshot: Snapshot | None) -> Sequence[str]:
    if snapshot is None:
        return (EMPTY, EMPTY, EMPTY)
    return (snapshot.tree, snapshot.apart or EMPTY, snapshot.bundles or EMPTY)
