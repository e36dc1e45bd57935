"""Merges a session's packs in the object store, so that another host restores any of its snapshots from few objects.

A merged pack leads directly from an earlier snapshot to a later one and has only the objects that the later one adds.
It is an addition: the packs of the single steps stay, nothing refers to it by name, and a reader uses it if it makes
the chain of packs shorter. A crash at any point therefore loses nothing, and two workers that merge the same packs
write the same name. Both snapshots are in the log, so garbage collection treats the merged pack like any other.

As in `git repack --geometric`, new packs are merged with older ones of about their size. A session of n snapshots
copies each object about log(n) times, and its chain stays shorter than `MAX_CHAIN_PACKS`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from footplate import failpoints
from footplate.domain.errors import FootplateError
from footplate.domain.files.pack_names import NO_BASE, Pack, short_id
from footplate.domain.files.snapshots import Snapshot, StoredSnapshot
from footplate.trees.git import Git
from footplate.trees.snapshots import packs
from footplate.trees.snapshots.packs import PackStore, SnapshotStep
from footplate.trees.snapshots.upload import SnapshotUploader, TreeLocation

log = structlog.get_logger(__name__)

MAX_CHAIN_PACKS: Final = 8
"""A chain of this many packs is merged. A project's base is not counted."""
_MIN_MERGED: Final = 3
"""Merging fewer packs would happen too often in a very long session."""
_MAX_CONCURRENT: Final = 2
_MAX_CACHED: Final = 1000
_RETRY_AFTER: Final = 16
"""Snapshots after which a failed merge is tried again. The chain is longer until then."""


class SnapshotHistory(Protocol):
    async def load_snapshots(self, session_id: str, tree: str, numbers: Sequence[int]) -> Mapping[int, Snapshot]:
        """Loads the snapshots with these numbers from the log, including those that a fork inherits."""


@dataclass(slots=True)
class _ChainState:
    newest: StoredSnapshot
    next_check: int = MAX_CHAIN_PACKS - 1
    """The number of the next snapshot whose chain may be too long."""
    task: asyncio.Task[None] | None = None

    @property
    def is_due(self) -> bool:
        return self.newest.number >= self.next_check


class PackConsolidator:
    def __init__(self, store: PackStore, uploader: SnapshotUploader, history: SnapshotHistory) -> None:
        self._store = store
        self._uploader = uploader
        self._history = history
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)
        self._chains: dict[str, _ChainState] = {}
        """By key prefix. A chain that is not here is checked, so this is only a cache."""

    def consolidate_later(self, location: TreeLocation, stored: StoredSnapshot, session_id: str, tree: str) -> None:
        """Merges packs in the background if the chain of `stored` may be too long. The log has `stored`, and
        `location.git_dir` has its objects.
        """
        chain = self._chains.setdefault(location.prefix, _ChainState(stored))
        chain.newest = stored
        if chain.task is None and chain.is_due:
            chain.task = asyncio.create_task(self._run(chain, location, session_id, tree), context=Context())
        oldest = next(iter(self._chains))
        if len(self._chains) > _MAX_CACHED and self._chains[oldest].task is None:
            del self._chains[oldest]

    async def aclose(self) -> None:
        tasks = [chain.task for chain in self._chains.values() if chain.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, chain: _ChainState, location: TreeLocation, session_id: str, tree: str) -> None:
        try:
            while chain.is_due:
                stored = chain.newest
                try:
                    async with self._slots:
                        length = await self.consolidate(location, stored, session_id, tree)
                    chain.next_check = stored.number + MAX_CHAIN_PACKS - length
                except (FootplateError, OSError) as error:
                    chain.next_check = stored.number + _RETRY_AFTER
                    log.warning(
                        "a session's packs could not be merged",
                        action="trees.packs_not_consolidated",
                        session=session_id,
                        reason=str(error),
                    )
        finally:
            chain.task = None

    async def consolidate(self, location: TreeLocation, stored: StoredSnapshot, session_id: str, tree: str) -> int:
        """Merges the last packs of a snapshot's chain if it is too long. Returns the number of packs in the chain."""
        base = await self._uploader.ensure_base(location)
        base_snapshot = None if base is None else base.snapshot
        names = await packs.list_packs(self._store, location.prefixes)
        chain = packs.find_pack_chain(names, stored.number, stored.snapshot, base_snapshot)
        if len(chain) < MAX_CHAIN_PACKS:
            return len(chain)
        first = choose_first_pack([pack.steps for pack in chain])
        found = await self._history.load_snapshots(session_id, tree, [pack.base[0] for pack in chain[1 : first + 1]])
        git = Git(git_dir=location.git_dir)
        # A fork has its parent's last snapshot on this host, but not always the earlier ones. Its base is always here.
        while first > 0 and not await _has_base(git, chain[first], found.get(chain[first].base[0])):
            first -= 1
        number, short_base = chain[first].base
        previous = found[number] if first > 0 else None if short_base == NO_BASE else base_snapshot
        await failpoints.hit("packs_merging")
        step = SnapshotStep(stored.number, stored.snapshot, previous, stored.number - number)
        await packs.upload_pack(self._store, location.prefix, location.git_dir, step)
        await failpoints.hit("packs_merged")
        return first + 1


def choose_first_pack(steps: Sequence[int]) -> int:
    """Returns the position of the first pack to merge with all later ones, by the steps that each pack covers. Each
    pack before it covers at least twice as many steps as all later packs together.
    """
    first = len(steps) - _MIN_MERGED
    while first > 0 and steps[first - 1] < 2 * sum(steps[first:]):
        first -= 1
    return first


async def _has_base(git: Git, pack: Pack, base: Snapshot | None) -> bool:
    return base is not None and short_id(base) == pack.base[1] and await packs.has_objects(git, packs.tree_ids(base))
