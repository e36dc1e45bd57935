"""Keeps a session's files off its host: a snapshot, its pack in the object store, and only then something to refer to.

Sessions of a project share what their base has: it is written once, and each of their packs has what was added to it. A
worker that dies in between leaves a pack that nobody refers to; the next one finds it, or writes another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from footplate.domain.errors import Permanent
from footplate.domain.snapshots import LeftOut, Snapshot
from footplate.trees import packs, restoring, snapshots
from footplate.trees.git import Git
from footplate.trees.packs import Shelf, Step
from footplate.trees.staging import Limits


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """What the log refers to."""

    number: int
    """Its place in the session's chain of packs."""
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlace:
    """A session's tree on this host, and where its packs are."""

    git_dir: Path
    """The host's own."""
    tree: Path
    prefix: str
    """Of the session's packs in the object store. A fork's first, then its parents'."""
    parents: Sequence[str] = ()
    base: str | None = None
    """The commit that the tree began with; None: it began empty."""
    shared: str | None = None
    """Where the bases of the project are; with a base only."""

    @property
    def prefixes(self) -> list[str]:
        return [self.prefix, *self.parents, *([] if self.shared is None else [self.shared])]


class Keeper:
    def __init__(self, shelf: Shelf, limits: Limits | None = None) -> None:
        self._shelf = shelf
        self._limits = limits

    async def keep(self, place: TreePlace, last: KeptSnapshot | None) -> tuple[KeptSnapshot, tuple[LeftOut, ...]]:
        """`last` is what the log refers to by now. Whatever is returned is in the object store to stay."""
        base = await self._base(place)
        last = last or base
        taken = await snapshots.take(
            place.git_dir, place.tree, base=None if base is None else base.snapshot.tree, limits=self._limits
        )
        if last is not None and taken.snapshot == last.snapshot:
            return last, taken.left_out
        number, before = (0, None) if last is None else (last.number + 1, last.snapshot)
        step = Step(number, taken.snapshot, before)
        await packs.upload(self._shelf, place.prefix, place.git_dir, step)
        return KeptSnapshot(step.number, step.snapshot), taken.left_out

    async def bring_back(self, place: TreePlace, kept: KeptSnapshot, *, user: tuple[int, int] | None = None) -> None:
        """The files as they were, from the store alone. The tree is there and empty, and so is the git directory."""
        await packs.download(self._shelf, place.prefixes, place.git_dir, kept.number, kept.snapshot)
        await restoring.restore(place.git_dir, kept.snapshot, place.tree, user=user)

    async def _base(self, place: TreePlace) -> KeptSnapshot | None:
        """In the store, too, once it is returned."""
        if place.base is None or place.shared is None:
            return None
        found = await Git(git_dir=place.git_dir).run("rev-parse", "--verify", f"{place.base}^{{tree}}")
        base = Snapshot(found.decode().strip())
        try:
            packs.chain(await self._shelf.names(place.shared), 0, base)
        except Permanent:
            await packs.upload(self._shelf, place.shared, place.git_dir, Step(0, base, None))
        return KeptSnapshot(0, base)
