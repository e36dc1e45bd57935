"""Reads the differences of a session's files on any host: from its git directory if it is present, otherwise from
packs.

Objects that were downloaded from the object store are removed when the response is complete.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from footplate.domain.organisation_slots import OrganisationSlots
from footplate.domain.snapshots import SCRATCH, FileChange, KeptSnapshot, TreeDiff, bases_of, prefix_of
from footplate.trees import diffs, packs
from footplate.trees.git import Git
from footplate.trees.packs import Shelf
from footplate.trees.placing import host_of, init, private_of
from footplate.trees.scratch import scratch

_PLACE: Final = "diffs"
"""Directory name inside the data directory."""


class DiffReader:
    def __init__(self, data: Path, store: Shelf, *, max_concurrent: int) -> None:
        """`at_once`: maximum number of diffs that are computed concurrently; others wait."""
        self._data = data.resolve()
        self._shelf = store
        self._slots = OrganisationSlots(max_concurrent)

    async def changes(self, diff: TreeDiff) -> Sequence[FileChange]:
        old, new = diff.ids
        if old == new:
            return ()
        async with self._slots.held(diff.organisation), self.objects(diff, diff.ids) as git_dir:
            return await diffs.summary(git_dir, old, new)

    @contextlib.asynccontextmanager
    async def patch(self, diff: TreeDiff) -> AsyncGenerator[AsyncIterator[bytes], None]:
        old, new = diff.ids
        if old == new:
            yield _nothing()
            return
        async with (
            self._slots.held(diff.organisation),
            self.objects(diff, diff.ids) as git_dir,
            diffs.patch(git_dir, old, new) as pieces,
        ):
            yield pieces

    @contextlib.asynccontextmanager
    async def objects(self, diff: TreeDiff, object_ids: Sequence[str]) -> AsyncGenerator[Path, None]:
        """Yields a git directory that has these objects of the session."""
        local_git_dir = host_of(private_of(self._data, diff.organisation, diff.session_id), diff.tree, is_additional=diff.beside)
        if await packs.has_all(Git(git_dir=local_git_dir), object_ids):
            yield local_git_dir
            return
        directory = self._data / _PLACE
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
        with scratch(directory) as git_dir:
            await init(git_dir, "main", None)
            for stored in (diff.new, diff.old):  # usually one contains the other
                if stored is not None and not await packs.has_all(Git(git_dir=git_dir), object_ids):
                    await self._fetch(git_dir, diff, stored)
            yield git_dir

    async def _fetch(self, git_dir: Path, diff: TreeDiff, stored: KeptSnapshot) -> None:
        sessions = [diff.session_id, *diff.owners]
        prefixes = [prefix_of(f"{diff.organisation}/{session}", diff.tree) for session in sessions]
        if diff.tree != SCRATCH:
            prefixes.append(bases_of(diff.organisation, diff.tree))
        await packs.download(self._shelf, prefixes, git_dir, stored.number, stored.snapshot)


async def _nothing() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece
