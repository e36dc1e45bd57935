"""Removes the directories of deleted and expired sessions from this host, after checking the sessions in the database.

A deletion record stays in the database for at least an hour, so that every host sees it. A host that was down compares
all its directories with the database when a worker starts. Each data directory records the cell (deployment) to which
it belongs. A worker that is connected to the database of another cell removes nothing.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import structlog

from footplate.domain import ids
from footplate.domain.files.snapshots import SCRATCH_TREE, ExpiredSessionFiles
from footplate.domain.organisations.organisation_names import directory_name
from footplate.domain.projects.project import PRIVATE_TREES
from footplate.environments.directory_removal import remove_directory_async
from footplate.environments.session_directories import (
    WORKSPACES,
    remove_session_directories,
    session_id_of,
    state_directory,
)

log = structlog.get_logger(__name__)

CELL_FILE: Final = "cell"
"""The file in the data directory that stores the name of its cell."""
_BATCH_SIZE: Final = 1000
_RELEASED_PREFIX: Final = ".released."


class SessionRegistry(Protocol):
    async def cell(self) -> str: ...
    async def existing(self, session_ids: Sequence[str]) -> Collection[str]:
        """Returns the sessions that exist."""

    async def deleted(self) -> Sequence[tuple[str, str]]:
        """Returns organisation and id of recently deleted sessions."""

    async def expired(self, session_ids: Sequence[str], older_than: timedelta) -> Collection[str]:
        """Returns the sessions that are idle and were last used before that time."""

    def resting(
        self, session_id: str, older_than: timedelta
    ) -> AbstractAsyncContextManager[ExpiredSessionFiles | None]:
        """Holds off the turns of a session and returns its files, or None if the session has not expired."""


MarkForRebuild = Callable[[str, str], None]
"""Marks a session's tree as unfinished; called with its organisation and id. Blocks."""


class WorkspaceReaper:
    def __init__(
        self,
        data: Path,
        sessions: SessionRegistry,
        *,
        mark_for_rebuild: MarkForRebuild | None = None,
        released_after: timedelta | None = None,
    ) -> None:
        """`released_after` is how long the directories of an unused session stay; None: as long as the
        session exists.
        """
        self._data = data
        self._mark_for_rebuild = mark_for_rebuild
        self._released_after = released_after
        self._root = data / WORKSPACES
        self._sessions = sessions
        self._known_deleted: set[str] = set()

    async def remove_deleted(self, in_use: Collection[str]) -> int:
        """Removes the directories of recently deleted sessions, once each. Skips sessions with a living turn until the
        next call.
        """
        deletions = [deletion for deletion in await self._sessions.deleted() if deletion[1] not in in_use]
        new = [note for note in deletions if note[1] not in self._known_deleted]
        self._known_deleted = {session_id for _, session_id in deletions}
        here = [note for note in new if self._has_directory(*note)]
        return await self._remove_directories(here)

    async def remove_unknown(self, in_use: Collection[str]) -> int:
        """Compares every directory with the log and removes the unknown ones. Raises, and removes nothing, if the log
        is unavailable.
        """
        if not (self._data / CELL_FILE).exists() and await self._may_claim_for_cell():
            _write_once(self._data / CELL_FILE, await self._sessions.cell())
        return await self._remove_directories(await self.find_unknown(in_use))

    async def find_unknown(self, in_use: Collection[str]) -> list[tuple[str, str]]:
        """Returns organisation and id of sessions that have a directory here and are not in the log."""
        if not await self._belongs_to_cell():
            return []
        return [one async for one, exists in self._check_against_log(in_use, self._sessions.existing) if not exists]

    async def find_expired(self, in_use: Collection[str]) -> list[tuple[str, str]]:
        """Returns organisation and id of sessions whose directories here may be released."""
        if self._released_after is None or not await self._belongs_to_cell():
            return []
        query = partial(self._sessions.expired, older_than=self._released_after)
        return [one async for one, is_old in self._check_against_log(in_use, query) if is_old]

    async def _check_against_log(
        self, in_use: Collection[str], query: Callable[[Sequence[str]], Awaitable[Collection[str]]]
    ) -> AsyncIterator[tuple[tuple[str, str], bool]]:
        """Yields each session with a directory here that is not in use, and whether the log query returns it."""
        found = await asyncio.to_thread(lambda: list(self._directories()))
        for start in range(0, len(found), _BATCH_SIZE):
            batch = found[start : start + _BATCH_SIZE]
            named = await query([session_id for _, session_id in batch])
            for one in batch:
                if one[1] not in in_use:
                    yield one, one[1] in named

    async def release_expired(self, in_use: Collection[str]) -> int:
        """Removes the directories of expired sessions if the object store has all their files.
        Returns how many it released.

        The next turn of such a session restores its files. To avoid a race with that turn, the directories are first
        renamed while the log prevents the session from starting a turn. The renamed directories are removed afterwards.

        If the worker is killed in between, a tree is marked as unfinished and checked out again. Directories that were
        already renamed are removed by the next call.
        """
        released = 0
        for organisation, session_id in await self.find_expired(in_use):
            assert self._released_after is not None
            async with self._sessions.resting(session_id, self._released_after) as files:
                reason = (
                    "the session was used again"
                    if files is None
                    else await asyncio.to_thread(self.retention_reason, organisation, session_id, files)
                )
                if reason is None:
                    await asyncio.to_thread(self._rename_aside, organisation, session_id)
            if reason is not None:
                log.debug(
                    "session directories not released", action="reaper.not_released", session=session_id, reason=reason
                )
                continue
            released += 1
            log.info("session directories released", action="reaper.released", session=session_id)
        await self._remove_renamed()
        return released

    def retention_reason(self, organisation: str, session_id: str, files: ExpiredSessionFiles) -> str | None:
        """Returns why the directories must stay, because the object store lacks some of their files; None if they may
        be released.
        """
        if omitted := files.omitted:
            return f"no snapshot contains {omitted[0]}" + (f", and {len(omitted) - 1} more" if omitted[1:] else "")
        session_dir = self._root / directory_name(organisation) / session_id
        # A project's tree has a snapshot once a command ran there; until then it equals its base commit.
        if (
            SCRATCH_TREE in files.snapshots
            and files.snapshots[SCRATCH_TREE] is None
            and session_dir.is_dir()
            and any(session_dir.iterdir())
        ):
            return "no snapshot of its files is stored"
        return None

    def _rename_aside(self, organisation: str, session_id: str) -> None:
        if self._mark_for_rebuild is not None:
            self._mark_for_rebuild(organisation, session_id)
        session_dir = self._root / directory_name(organisation) / session_id
        for directory in (
            session_dir,
            state_directory(session_dir),
            self._data / PRIVATE_TREES / directory_name(organisation) / session_id,
        ):
            if directory.exists():
                directory.rename(directory.with_name(f"{_RELEASED_PREFIX}{directory.name}.{secrets.token_hex(4)}"))

    async def _remove_renamed(self) -> None:
        for root in (self._root, self._data / PRIVATE_TREES):
            for directory in [*root.glob(f"*/{_RELEASED_PREFIX}*")]:
                if not await remove_directory_async(directory):
                    log.warning(
                        "session directory could not be removed",
                        action="session.directory_left",
                        directory=str(directory),
                    )

    async def _may_claim_for_cell(self) -> bool:
        """Returns whether a data directory without a cell name is new, or the log knows at least one of its
        sessions.
        """
        found = await asyncio.to_thread(lambda: list(self._directories()))
        if not found or await self._sessions.existing([session_id for _, session_id in found]):
            return True
        log.warning(
            "the database has no session of this data directory, so nothing is removed; check FOOTPLATE_DATABASE_URL",
            action="reaper.other_cell",
            sessions=len(found),
        )
        return False

    async def _belongs_to_cell(self) -> bool:
        file = self._data / CELL_FILE
        if not file.exists():
            return False
        if file.read_text() == await self._sessions.cell():
            return True
        log.warning(
            "the data directory belongs to another cell, so no session directory is removed",
            action="reaper.other_cell",
            file=str(file),
        )
        return False

    def _directories(self) -> Iterator[tuple[str, str]]:
        """Yields organisation and session, each once. Skips directories that are not named like a session."""
        if not self._root.is_dir():
            return
        for organisation in os.scandir(self._root):
            if organisation.is_dir(follow_symlinks=False):
                names = {session_id_of(entry.name) for entry in os.scandir(organisation)}
                yield from ((organisation.name, name) for name in names if name.startswith(f"{ids.SESSION}_"))

    def _has_directory(self, organisation: str, session_id: str) -> bool:
        return any((self._root / directory_name(organisation)).glob(f"{session_id}*"))

    async def _remove_directories(self, sessions: Sequence[tuple[str, str]]) -> int:
        for organisation, session_id in sessions:
            await remove_session_directories(self._root, organisation, session_id)
            log.info("session directories removed", action="reaper.workspace", session=session_id)
        return len(sessions)


def _write_once(file: Path, text: str) -> None:
    """Writes a file atomically, and never overwrites the file of another worker."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_text(text)
    with suppress(FileExistsError):
        file.hardlink_to(new)
    new.unlink()
