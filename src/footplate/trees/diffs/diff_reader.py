"""Reads the diff between two snapshots of a session's files.

The reader uses the session's git directory if that directory is on this host. Otherwise it downloads packs from the
object store, and removes them when the response is complete.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from footplate.domain.files.snapshots import (
    SCRATCH_TREE,
    FileChange,
    StoredSnapshot,
    TreeDiff,
    base_packs_prefix,
    packs_prefix,
)
from footplate.domain.organisations.fair_limiter import OrganisationLimiter
from footplate.trees.checkout import host_git_dir_path, init_git_dir, private_dir_path
from footplate.trees.diffs import tree_diff
from footplate.trees.git import Git
from footplate.trees.scratch_directory import scratch_directory
from footplate.trees.snapshots import packs
from footplate.trees.snapshots.packs import PackStore

_DIRECTORY_NAME: Final = "diffs"
"""Directory name inside the data directory."""


class DiffReader:
    def __init__(self, data: Path, store: PackStore, *, max_concurrent: int) -> None:
        """`max_concurrent`: maximum number of diffs that are computed concurrently; others wait."""
        self._data = data.resolve()
        self._store = store
        self._slots = OrganisationLimiter(max_concurrent)

    async def changes(self, diff: TreeDiff) -> Sequence[FileChange]:
        old, new = diff.tree_ids
        if old == new:
            return ()
        async with self._slots.acquire_slot(diff.organisation), self.open_objects(diff, diff.tree_ids) as git_dir:
            return await tree_diff.summarise_changes(git_dir, old, new)

    @contextlib.asynccontextmanager
    async def patch(self, diff: TreeDiff) -> AsyncGenerator[AsyncIterator[bytes], None]:
        old, new = diff.tree_ids
        if old == new:
            yield _empty_stream()
            return
        async with (
            self._slots.acquire_slot(diff.organisation),
            self.open_objects(diff, diff.tree_ids) as git_dir,
            tree_diff.stream_patch(git_dir, old, new) as pieces,
        ):
            yield pieces

    @contextlib.asynccontextmanager
    async def open_objects(self, diff: TreeDiff, object_ids: Sequence[str]) -> AsyncGenerator[Path, None]:
        """Yields a git directory that has these objects of the session."""
        local_git_dir = host_git_dir_path(
            private_dir_path(self._data, diff.organisation, diff.session_id),
            diff.tree,
            is_additional=diff.is_additional,
        )
        if await packs.has_objects(Git(git_dir=local_git_dir), object_ids):
            yield local_git_dir
            return
        directory = self._data / _DIRECTORY_NAME
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
        with scratch_directory(directory) as git_dir:
            await init_git_dir(git_dir, "main", None)
            for stored in (diff.new, diff.old):  # usually one contains the other
                if stored is not None and not await packs.has_objects(Git(git_dir=git_dir), object_ids):
                    await self._download(git_dir, diff, stored)
            yield git_dir

    async def _download(self, git_dir: Path, diff: TreeDiff, stored: StoredSnapshot) -> None:
        sessions = [diff.session_id, *diff.ancestors]
        prefixes = [packs_prefix(f"{diff.organisation}/{session}", diff.tree) for session in sessions]
        if diff.tree != SCRATCH_TREE:
            prefixes.append(base_packs_prefix(diff.organisation, diff.tree))
        await packs.download_packs(self._store, prefixes, git_dir, stored.number, stored.snapshot)


async def _empty_stream() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece
