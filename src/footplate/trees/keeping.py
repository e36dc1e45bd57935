"""Uploads a session's files to the object store: takes a snapshot, writes its pack, and only then returns a reference
to it.

The base of a project is written once and shared by all its sessions. Each session's packs contain only its additions. A
worker that dies midway leaves a pack without a reference. The next worker finds that pack or writes another.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.snapshots import Collected, KeptSnapshot, LeftOut, Snapshot
from footplate.trees import packs, restoring, snapshots
from footplate.trees.git import Git, GitFailed
from footplate.trees.incremental_snapshots import IncrementalSnapshots
from footplate.trees.mirrors import has, tree_of
from footplate.trees.packs import Shelf, Step
from footplate.trees.staging import Limits

_MOST_TOLD: Final = 50
_MOST_BASES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlace:
    """The location of a session's tree on this host and of its packs in the object store."""

    git_dir: Path
    """The host's git directory."""
    tree: Path
    prefix: str
    """Key prefix of the session's packs in the object store. A fork also reads the packs of its `parents`."""
    parents: Sequence[str] = ()
    base: str | None = None
    """The commit that the tree started from; None if it started empty."""
    shared: str | None = None
    """Key prefix of the project's bases; set only with a base."""
    nearby: Sequence[Path] = ()
    """Other git directories on this host that may have the objects: those of a fork's parents."""

    @property
    def prefixes(self) -> list[str]:
        return [self.prefix, *self.parents, *([] if self.shared is None else [self.shared])]


class Keeper:
    def __init__(self, store: Shelf, limits: Limits | None = None) -> None:
        self._shelf = store
        self._limits = limits
        self._bases: dict[tuple[str, str], KeptSnapshot] = {}
        """Bases by session. A base is in the log before it is used here, so it is never removed from the store
        afterwards.
        """

    def create_incremental_snapshots(self, location: TreePlace) -> IncrementalSnapshots:
        """Creates the incremental snapshots of a tree for one turn. `keep` takes them."""
        return IncrementalSnapshots(location.git_dir, location.tree, self._limits or Limits())

    async def keep(
        self,
        location: TreePlace,
        last: KeptSnapshot | None,
        collected: Collected | None = None,
        incremental: IncrementalSnapshots | None = None,
    ) -> KeptSnapshot:
        """Takes a snapshot and uploads it. The returned snapshot is in the object store. `last` is the one that the log
        refers to. `collected`: the agent's own commits; None: unchanged. `incremental`: takes the snapshot; None: every
        file is scanned.
        """
        base = await self._base(location)
        last = last or base
        tree = None if base is None else base.snapshot.tree
        if incremental is None:
            taken = await snapshots.take(location.git_dir, location.tree, base=tree, limits=self._limits)
        else:
            taken = await incremental.take(tree)
        omitted = _told(taken.left_out)
        if collected is None:
            collected = Collected() if last is None else Collected(last.snapshot.commits, last.snapshot.bundles)
        snapshot = replace(taken.snapshot, commits=collected.commits, bundles=collected.bundles)
        if last is not None and snapshot == last.snapshot:
            return last if last.left_out == omitted else replace(last, left_out=omitted)
        number, before = (0, None) if last is None else (last.number + 1, last.snapshot)
        step = Step(number, snapshot, before)
        if incremental is None or incremental.uploaded != step:
            await self._upload(location, step, incremental)
        return KeptSnapshot(step.number, step.snapshot, None if base is None else base.snapshot.tree, omitted)

    async def _upload(self, location: TreePlace, step: Step, incremental: IncrementalSnapshots | None) -> None:
        pack = None if incremental is None else await incremental.pack(step.before, step.snapshot)
        if pack is None or len(pack) > packs.PART:
            await packs.upload(self._shelf, location.prefix, location.git_dir, step)
        else:
            await self._shelf.create(f"{location.prefix}/{step.name(0, 1)}", pack)
        if incremental is not None:
            incremental.uploaded = step

    async def bring_back(self, location: TreePlace, stored: KeptSnapshot, *, user: tuple[int, int] | None = None) -> None:
        """Restores the files. The tree and the git directory exist and are empty. Objects that are in the project's
        mirror are not downloaded.
        """
        known = await _base_of(location) if location.base and await has(Git(git_dir=location.git_dir), location.base) else None
        if not await _copied(location, stored.snapshot, known):
            await packs.download(self._shelf, location.prefixes, location.git_dir, stored.number, stored.snapshot, known)
        await restoring.restore(location.git_dir, stored.snapshot, location.tree, user=user)

    async def _base(self, location: TreePlace) -> KeptSnapshot | None:
        """Returns the base, after making sure that it is in the object store."""
        if location.base is None or location.shared is None:
            return None
        key = (location.prefix, location.base)
        if (found := self._bases.get(key)) is not None:
            return found
        base = await _base_of(location)
        try:
            packs.chain(await self._shelf.names(location.shared), 0, base)
        except Permanent:
            await packs.upload(self._shelf, location.shared, location.git_dir, Step(0, base, None))
        while len(self._bases) >= _MOST_BASES:
            self._bases.pop(next(iter(self._bases)))
        self._bases[key] = KeptSnapshot(0, base, base.tree)
        return self._bases[key]


async def _copied(place: TreePlace, snapshot: Snapshot, known: Snapshot | None) -> bool:
    """Copies the objects from another git directory on this host, which may disappear at any time."""
    for source in place.nearby:
        with contextlib.suppress(GitFailed):
            if await packs.copy(source, place.git_dir, snapshot, known):
                return True
    return False


async def _base_of(place: TreePlace) -> Snapshot:
    assert place.base is not None
    return Snapshot(await tree_of(Git(git_dir=place.git_dir), place.base))


def _told(left_out: Sequence[LeftOut]) -> tuple[str, ...]:
    told = tuple(str(one) for one in left_out[:_MOST_TOLD])
    rest = len(left_out) - len(told)
    return (*told, f"and {rest} more") if rest else told
