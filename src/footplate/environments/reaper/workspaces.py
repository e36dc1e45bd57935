"""Directories of sessions that are no more. The log is the proof: what it knows stays, and all if it does not answer.

A deletion's note stays in the database for an hour at least, so that every host's workers see it in time; a host that
was down compares all that it has with the log when a worker starts. A data directory belongs to one cell, whose name it
keeps: a worker that was pointed to another database by mistake finds none of its sessions there, and removes nothing.
"""

import asyncio
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import structlog

from footplate.domain import ids
from footplate.environments.opening import WORKSPACES, forget, session_of

log = structlog.get_logger(__name__)

CELL: Final = "cell"
"""In the data directory: the file that names its cell."""
_AT_ONCE: Final = 1000


class SessionLog(Protocol):
    async def cell(self) -> str: ...
    async def existing(self, session_ids: Sequence[str]) -> Collection[str]:
        """Those that are there."""

    async def deleted(self) -> Sequence[tuple[str, str]]:
        """Organisation and id of what was deleted of late."""


class Workspaces:
    def __init__(self, data: Path, sessions: SessionLog) -> None:
        self._data = data
        self._root = data / WORKSPACES
        self._sessions = sessions
        self._known_deleted: set[str] = set()

    async def noted(self, in_use: Collection[str]) -> int:
        """Remove what was deleted of late, once each. A session of a living turn is left for the next time."""
        notes = [note for note in await self._sessions.deleted() if note[1] not in in_use]
        new = [note for note in notes if note[1] not in self._known_deleted]
        self._known_deleted = {session_id for _, session_id in notes}
        here = [note for note in new if self._has(*note)]
        return await self._forget(here)

    async def all(self, in_use: Collection[str]) -> int:
        """Compare every directory with the log. Raises if the log does not answer: then nothing is removed."""
        if not (self._data / CELL).exists() and await self._may_be_this_cells():
            _write_once(self._data / CELL, await self._sessions.cell())
        return await self._forget(await self.unknown(in_use))

    async def unknown(self, in_use: Collection[str]) -> list[tuple[str, str]]:
        """Organisation and id of sessions that have a directory here and are not in the log."""
        if not await self._is_of_this_cell():
            return []
        found = await asyncio.to_thread(lambda: list(self._directories()))
        unknown = []
        for start in range(0, len(found), _AT_ONCE):
            batch = found[start : start + _AT_ONCE]
            existing = await self._sessions.existing([session_id for _, session_id in batch])
            unknown += [one for one in batch if one[1] not in existing and one[1] not in in_use]
        return unknown

    async def _may_be_this_cells(self) -> bool:
        """A directory without a name: it is new, or the log knows at least one of the sessions in it."""
        found = await asyncio.to_thread(lambda: list(self._directories()))
        if not found or await self._sessions.existing([session_id for _, session_id in found]):
            return True
        log.warning(
            "the log knows no session of this data directory: none is removed, check FOOTPLATE_DATABASE_URL",
            action="reaper.other_cell",
            sessions=len(found),
        )
        return False

    async def _is_of_this_cell(self) -> bool:
        file = self._data / CELL
        if not file.exists():
            return False
        if file.read_text() == await self._sessions.cell():
            return True
        log.warning(
            "the data directory is another cell's: no session's directory is removed",
            action="reaper.other_cell",
            file=str(file),
        )
        return False

    def _directories(self) -> Iterator[tuple[str, str]]:
        """Organisation and session, each once. What has no session's name is not ours."""
        if not self._root.is_dir():
            return
        for organisation in os.scandir(self._root):
            if organisation.is_dir(follow_symlinks=False):
                names = {session_of(entry.name) for entry in os.scandir(organisation)}
                yield from ((organisation.name, name) for name in names if name.startswith(f"{ids.SESSION}_"))

    def _has(self, organisation: str, session_id: str) -> bool:
        return any((self._root / organisation).glob(f"{session_id}*"))

    async def _forget(self, sessions: Sequence[tuple[str, str]]) -> int:
        for organisation, session_id in sessions:
            await asyncio.to_thread(forget, self._root, organisation, session_id)
            log.info("directories removed", action="reaper.workspace", session=session_id)
        return len(sessions)


def _write_once(file: Path, text: str) -> None:
    """Whole or not at all, and never over what another worker wrote."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_text(text)
    with suppress(FileExistsError):
        file.hardlink_to(new)
    new.unlink()
