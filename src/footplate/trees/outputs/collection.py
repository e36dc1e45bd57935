"""Stores the files that an agent leaves in its output directory, and restores the directory on another host.

Files are compared with the log by their content. A record beside the host's git directories has the status of each file
at a time when no process of the session was running: a file with the same status is not read again. The record is
written after the log, so a crash in between only costs time.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

import stamina
import structlog

from footplate import failpoints
from footplate.domain import ids
from footplate.domain.errors import NotFound, Unavailable
from footplate.domain.files.session_outputs import (
    OutputBytes,
    OutputChanges,
    OutputFile,
    OutputLimits,
    SessionOutputs,
    shorten_omitted,
)
from footplate.domain.ports.engine import OutputCollector, OutputDirectories
from footplate.trees.checkout import private_dir_path
from footplate.trees.outputs.directory import (
    RECORD_NAME,
    DirectoryScan,
    FileStatus,
    KnownFile,
    OutputDirectory,
    file_status,
    write_all,
)

log = structlog.get_logger(__name__)

FindRoom = Callable[[str, str], Awaitable[int | None]]
"""Returns how many more bytes the organisation of a session may store. None: no limit."""

_CHUNK: Final = 1 << 20
_UPLOAD_TIMEOUT: Final = 30.0
"""Seconds to wait for an object store that does not respond."""
_CONCURRENT_UPLOADS: Final = 4
_MAX_ENTRIES_PER_FILE: Final = 10
"""A scan ends after this many entries for each file that a session may have."""


@dataclass(frozen=True, slots=True)
class _Uploader:
    files: OutputBytes
    organisation: str
    directory: OutputDirectory
    max_bytes: int

    async def upload(self, path: str) -> OutputFile | None:
        """Stores a file under a new id. None: it is gone, or has become too large."""
        async for attempt in stamina.retry_context(
            on=Unavailable, timeout=_UPLOAD_TIMEOUT, attempts=None, wait_max=1.0
        ):
            with attempt:
                content = await _Content.open(self.directory, path, self.max_bytes)
                if content is None:
                    return None
                try:
                    file_id = ids.new_id(ids.FILE)
                    await self.files.store(self.organisation, file_id, content.chunks())
                finally:
                    content.close()
                if content.size > self.max_bytes:
                    return None
                return OutputFile(path=path, file_id=file_id, size_bytes=content.size, sha256=content.sha256)
        raise AssertionError  # the loop above returns or raises

    async def hash(self, path: str) -> str | None:
        content = await _Content.open(self.directory, path, self.max_bytes)
        if content is None:
            return None
        try:
            async for _ in content.chunks():
                pass
        finally:
            content.close()
        return content.sha256


class _Content:
    """Reads a file once, with its size and hash. A file that grows meanwhile is read only up to the limit."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self.size = 0

    @classmethod
    async def open(cls, directory: OutputDirectory, path: str, max_bytes: int) -> Self | None:
        """Returns None if there is no such file any more, or if the agent has made it unreadable."""
        try:
            descriptor = await asyncio.to_thread(directory.open_file, path)
        except PermissionError:
            return None
        return None if descriptor is None else cls(descriptor, max_bytes)

    async def chunks(self) -> AsyncIterator[bytes]:
        while self.size <= self._max_bytes and (chunk := await asyncio.to_thread(os.read, self._descriptor, _CHUNK)):
            self._hash.update(chunk)
            self.size += len(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class _NextState:
    outputs: SessionOutputs
    known: dict[str, KnownFile]
    changes: OutputChanges
    collected: dict[str, FileStatus]


class TurnOutputCollector(OutputCollector):
    def __init__(
        self,
        directory: OutputDirectory,
        uploader: _Uploader,
        outputs: SessionOutputs,
        limits: OutputLimits,
        find_room: Callable[[], Awaitable[int | None]],
    ) -> None:
        self._directory = directory
        self._uploader = uploader
        self._outputs = outputs
        """According to the log."""
        self._limits = limits
        self._find_room = find_room
        self._known: dict[str, KnownFile] | None = None
        """As in the record. None: it was not read yet."""
        self._collected: dict[str, FileStatus] = {}
        """The status of the files that were stored while processes of the turn were running. A process may have mapped
        a file into memory, and then changes it without changing its status; so the final collection reads it again.
        """
        self._next: _NextState | None = None
        """The state after the last changes, if they are committed."""

    async def collect(self, *, is_final: bool) -> OutputChanges | None:
        if self._known is None:
            self._known = await asyncio.to_thread(self._directory.load_record) or {}
        scan = await asyncio.to_thread(self._directory.scan, self._limits.max_files * _MAX_ENTRIES_PER_FILE)
        unchanged = {path for path, status in scan.files.items() if self._is_unchanged(path, status, is_final=is_final)}
        current = {path: file for path, file in self._outputs.files.items() if path in unchanged}
        chosen, omitted = await self._choose_files(scan, unchanged, current)
        stored = await self._store_files(chosen)
        current |= stored
        omitted += [f"{path}: it could not be read" for path in chosen if path not in stored]
        lines = shorten_omitted([*scan.omitted, *omitted])
        added = [file for path, file in current.items() if file != self._outputs.files.get(path)]
        removed = [file.file_id for path, file in self._outputs.files.items() if current.get(path) != file]
        known = {
            path: self._describe(path, status, current.get(path), is_final=is_final)
            for path, status in scan.files.items()
        }
        changes = OutputChanges(added=added, removed=removed, omitted=lines)
        statuses = {path: file_status(scan.files[path]) for path in current}
        self._next = _NextState(SessionOutputs(current, lines), known, changes, {} if is_final else statuses)
        has_new_lines = lines != tuple(self._outputs.omitted)
        for line in lines if has_new_lines else ():
            log.warning("an output was not stored", action="outputs.omitted", reason=line)
        if added or removed or has_new_lines:
            await failpoints.hit("outputs_stored")
            return changes
        if is_final and known != self._known:
            await self.mark_committed()
        return None

    def refuse_added(self, reason: str) -> OutputChanges:
        assert self._next is not None
        refused = {file.path: f"{file.path}: {reason}" for file in self._next.changes.added}
        for line in refused.values():
            log.warning("an output was not stored", action="outputs.omitted", reason=line)
        lines = shorten_omitted([*self._next.outputs.omitted, *refused.values()])
        kept = {path: file for path, file in self._next.outputs.files.items() if path not in refused}
        self._next = _NextState(
            SessionOutputs(kept, lines),
            {path: replace(one, sha256=None) if path in refused else one for path, one in self._next.known.items()},
            replace(self._next.changes, added=(), omitted=lines),
            {path: status for path, status in self._next.collected.items() if path not in refused},
        )
        return self._next.changes

    async def mark_committed(self) -> None:
        if self._next is not None:
            new, self._next = self._next, None
            self._outputs, self._known, self._collected = new.outputs, new.known, new.collected
            await asyncio.to_thread(self._directory.save_record, new.known)

    def _is_unchanged(self, path: str, status: os.stat_result, *, is_final: bool) -> bool:
        """Whether nothing needs to be done for a file. This includes an unchanged file that the log does not have,
        because a client deleted it.
        """
        assert self._known is not None
        known, output = self._known.get(path), self._outputs.files.get(path)
        if not is_final and output is not None and self._collected.get(path) == file_status(status):
            return True
        return (
            known is not None
            and known.sha256 is not None
            and known.status == file_status(status)
            and (output is None or output.sha256 == known.sha256)
        )

    async def _choose_files(
        self, scan: DirectoryScan, unchanged: set[str], current: Mapping[str, OutputFile]
    ) -> tuple[list[str], list[str]]:
        """Returns the files to store, and those that the limits exclude. Files that are already stored come first."""
        candidates = sorted(scan.files.keys() - unchanged, key=lambda path: (path not in self._outputs.files, path))
        if not candidates:
            return [], []
        room = await self._find_room()
        limits, count, size = self._limits, len(current), sum(file.size_bytes for file in current.values())
        chosen: list[str] = []
        omitted: list[str] = []
        for path in candidates:
            file_size = scan.files[path].st_size
            before = self._outputs.files.get(path)
            growth = file_size if before is None else max(file_size - before.size_bytes, 0)
            if file_size > limits.max_file_bytes:
                omitted.append(f"{path}: it has more than {limits.max_file_bytes} bytes")
            elif count >= limits.max_files:
                omitted.append(f"{path}: the session already has {limits.max_files} outputs")
            elif size + file_size > limits.max_bytes:
                omitted.append(f"{path}: the outputs of the session have more than {limits.max_bytes} bytes")
            elif room is not None and growth > room:
                omitted.append(f"{path}: the limit on stored bytes is reached")
            else:
                chosen.append(path)
                count, size = count + 1, size + file_size
                room = None if room is None else room - growth
        return chosen, omitted

    async def _store_files(self, paths: Sequence[str]) -> Mapping[str, OutputFile]:
        slots = asyncio.Semaphore(_CONCURRENT_UPLOADS)
        stored: dict[str, OutputFile] = {}

        async def store(path: str) -> None:
            async with slots:
                output = self._outputs.files.get(path)
                if output is not None and await self._uploader.hash(path) == output.sha256:
                    stored[path] = output
                elif (found := await self._uploader.upload(path)) is not None:
                    stored[path] = found

        try:
            async with asyncio.TaskGroup() as group:
                for path in paths:
                    group.create_task(store(path))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return stored

    def _describe(self, path: str, status: os.stat_result, output: OutputFile | None, *, is_final: bool) -> KnownFile:
        assert self._known is not None
        before, sha256 = self._known.get(path), None if output is None else output.sha256
        if before is not None and before.status == file_status(status):
            deleted_by_client = output is None and path not in self._outputs.files
            return before if deleted_by_client else KnownFile(sha256, before.status)
        return KnownFile(sha256, file_status(status) if is_final or output is None else ())


class HostOutputDirectories(OutputDirectories):
    def __init__(self, data: Path, files: OutputBytes, limits: OutputLimits, find_room: FindRoom) -> None:
        self._data = data.resolve()
        self._files = files
        self._limits = limits
        self._find_room = find_room

    async def restore(self, organisation: str, session_id: str, directory: Path, outputs: SessionOutputs) -> None:
        place = self._locate(organisation, session_id, directory)
        known = await asyncio.to_thread(place.load_record)
        if known is None and not outputs.files:
            return  # no output was ever stored
        known = known or {}
        scan = await asyncio.to_thread(place.scan, self._limits.max_files * _MAX_ENTRIES_PER_FILE)
        kept = {
            path for path, status in scan.files.items() if _may_stay(known.get(path), status, outputs.files.get(path))
        }
        missing = [file for path, file in outputs.files.items() if path not in kept]
        if not missing and kept == scan.files.keys():
            return
        await asyncio.to_thread(place.remove_all_except, kept)
        restored = {path: one for path, one in known.items() if path in kept}
        for file in missing:
            if await self._restore_file(organisation, place, file):
                restored[file.path] = KnownFile(file.sha256, await asyncio.to_thread(place.status_of, file.path))
        await asyncio.to_thread(place.save_record, restored)
        log.info("outputs restored", action="outputs.restored", session=session_id, files=len(missing))

    def open_collector(
        self, organisation: str, session_id: str, directory: Path, outputs: SessionOutputs
    ) -> OutputCollector:
        place = self._locate(organisation, session_id, directory)

        async def find_room() -> int | None:
            return await self._find_room(organisation, session_id)

        uploader = _Uploader(self._files, organisation, place, self._limits.max_file_bytes)
        return TurnOutputCollector(place, uploader, outputs, self._limits, find_room)

    def _locate(self, organisation: str, session_id: str, directory: Path) -> OutputDirectory:
        return OutputDirectory(directory, private_dir_path(self._data, organisation, session_id) / RECORD_NAME)

    async def _restore_file(self, organisation: str, place: OutputDirectory, file: OutputFile) -> bool:
        """Returns False if a client has deleted the file since the turn was claimed."""
        descriptor = await asyncio.to_thread(place.create_file, file.path)
        try:
            async for piece in self._files.read_parts(organisation, file.file_id, file.size_bytes):
                await asyncio.to_thread(write_all, descriptor, piece)
        except NotFound:
            log.warning("an output has no content any more", action="outputs.no_content", file=file.file_id)
            await asyncio.to_thread(place.remove_file, file.path)
            return False
        finally:
            os.close(descriptor)
        return True


def _may_stay(known: KnownFile | None, status: os.stat_result, output: OutputFile | None) -> bool:
    """Whether a file on this host has the content that the log records. A file that was never stored stays too."""
    if known is None or known.status != file_status(status):
        return False
    return known.sha256 == (None if output is None else output.sha256)
