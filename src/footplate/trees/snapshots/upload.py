"""Uploads a session's files to the object store: takes a snapshot, writes its pack, and then returns a reference to it.

The base of a project is uploaded once and shared by all its sessions. The packs of a session contain only its changes.
If a worker dies before the reference is stored, the next worker finds the unused pack or writes another one.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import CollectedCommits, OmittedPath, Snapshot, StoredSnapshot
from footplate.trees.git import Git, GitFailed
from footplate.trees.projects.mirrors import has_commit, read_commit_tree
from footplate.trees.snapshots import full_snapshot, packs, restore
from footplate.trees.snapshots.incremental_snapshots import IncrementalSnapshots
from footplate.trees.snapshots.packs import PackStore, SnapshotStep
from footplate.trees.snapshots.staging_area import SnapshotLimits

_MAX_REPORTED: Final = 50
_MAX_CACHED_BASES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLocation:
    """The location of a session's tree on this host and of its packs in the object store."""

    git_dir: Path
    """The host's git directory."""
    tree: Path
    prefix: str
    """Key prefix of the session's packs in the object store. A fork also reads the packs of its `parent_prefixes`."""
    parent_prefixes: Sequence[str] = ()
    base: str | None = None
    """The commit that the tree started from; None if it started empty."""
    base_prefix: str | None = None
    """Key prefix of the project's bases; set only with a base."""
    local_sources: Sequence[Path] = ()
    """Other git directories on this host that may have the objects: those of a fork's parents."""
    limits: SnapshotLimits | None = None
    """Limits of its snapshots. None: those of the uploader."""

    @property
    def prefixes(self) -> list[str]:
        return [self.prefix, *self.parent_prefixes, *([] if self.base_prefix is None else [self.base_prefix])]


class SnapshotUploader:
    def __init__(self, store: PackStore, limits: SnapshotLimits | None = None) -> None:
        self._store = store
        self._limits = limits
        self._bases: dict[tuple[str, str], StoredSnapshot] = {}
        """Bases by session. A base is in the log before it is used here, so it is never removed from the store
        afterwards.
        """

    def create_incremental_snapshots(self, location: TreeLocation) -> IncrementalSnapshots:
        """Creates the incremental snapshots of a tree for one turn. `take_and_upload` takes them."""
        return IncrementalSnapshots(location.git_dir, location.tree, self._limits or SnapshotLimits())

    async def take_and_upload(
        self,
        location: TreeLocation,
        last: StoredSnapshot | None,
        collected: CollectedCommits | None = None,
        incremental: IncrementalSnapshots | None = None,
    ) -> StoredSnapshot:
        """Takes a snapshot and uploads it. The returned snapshot is in the object store. `last` is the one that the log
        refers to. `collected`: the agent's own commits; None: unchanged. `incremental`: takes the snapshot; None: every
        file is scanned.
        """
        base = await self.ensure_base(location)
        last = last or base
        tree = None if base is None else base.snapshot.tree
        if incremental is None:
            limits = location.limits or self._limits
            taken = await full_snapshot.take_snapshot(location.git_dir, location.tree, base=tree, limits=limits)
        else:
            taken = await incremental.take_snapshot(tree)
        omitted = _format_omitted(taken.omitted)
        if collected is None:
            collected = (
                CollectedCommits() if last is None else CollectedCommits(last.snapshot.commits, last.snapshot.bundles)
            )
        snapshot = replace(taken.snapshot, commits=collected.commits, bundles=collected.bundles)
        if last is not None and snapshot == last.snapshot:
            return last if last.omitted == omitted else replace(last, omitted=omitted)
        number, before = (0, None) if last is None else (last.number + 1, last.snapshot)
        step = SnapshotStep(number, snapshot, before)
        if incremental is None or incremental.uploaded != step:
            await self._upload(location, step, incremental)
        return StoredSnapshot(step.number, step.snapshot, None if base is None else base.snapshot.tree, omitted)

    async def _upload(
        self, location: TreeLocation, step: SnapshotStep, incremental: IncrementalSnapshots | None
    ) -> None:
        pack = None if incremental is None else await incremental.build_pack(step.previous, step.snapshot)
        if pack is None or len(pack) > packs.MAX_PART_BYTES:
            await packs.upload_pack(self._store, location.prefix, location.git_dir, step)
        else:
            await self._store.create(f"{location.prefix}/{step.part_name(0, 1)}", pack)
        if incremental is not None:
            incremental.uploaded = step

    async def restore_files(
        self, location: TreeLocation, stored: StoredSnapshot, *, user: tuple[int, int] | None = None
    ) -> None:
        """Restores the files. The tree and the git directory exist and are empty."""
        await self.fetch_objects(location, stored)
        await restore.restore_snapshot(location.git_dir, stored.snapshot, location.tree, user=user)

    async def fetch_objects(self, location: TreeLocation, stored: StoredSnapshot) -> None:
        """Copies or downloads the objects of a snapshot, except those that are in the project's mirror."""
        known = (
            await _base_snapshot(location)
            if location.base and await has_commit(Git(git_dir=location.git_dir), location.base)
            else None
        )
        if not await _copy_from_local(location, stored.snapshot, known):
            await packs.download_packs(
                self._store, location.prefixes, location.git_dir, stored.number, stored.snapshot, known
            )

    async def ensure_base(self, location: TreeLocation) -> StoredSnapshot | None:
        """Returns the base, after making sure that it is in the object store."""
        if location.base is None or location.base_prefix is None:
            return None
        key = (location.prefix, location.base)
        if (found := self._bases.get(key)) is not None:
            return found
        base = await _base_snapshot(location)
        try:
            packs.find_pack_chain(await self._store.list_names(location.base_prefix), 0, base)
        except Permanent:
            await packs.upload_pack(self._store, location.base_prefix, location.git_dir, SnapshotStep(0, base, None))
        while len(self._bases) >= _MAX_CACHED_BASES:
            self._bases.pop(next(iter(self._bases)))
        self._bases[key] = StoredSnapshot(0, base, base.tree)
        return self._bases[key]


async def _copy_from_local(location: TreeLocation, snapshot: Snapshot, known: Snapshot | None) -> bool:
    """Copies the objects from another git directory on this host, which may disappear at any time."""
    for source in location.local_sources:
        with contextlib.suppress(GitFailed):
            if await packs.copy_snapshot(source, location.git_dir, snapshot, known):
                return True
    return False


async def _base_snapshot(location: TreeLocation) -> Snapshot:
    assert location.base is not None
    return Snapshot(await read_commit_tree(Git(git_dir=location.git_dir), location.base))


def _format_omitted(omitted: Sequence[OmittedPath]) -> tuple[str, ...]:
    lines = tuple(str(omission) for omission in omitted[:_MAX_REPORTED])
    rest = len(omitted) - len(lines)
    return (*lines, f"and {rest} more") if rest else lines
