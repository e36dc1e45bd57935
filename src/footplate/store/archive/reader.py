"""Reads session archives block by block, so that a whole session never has to fit into memory.

While an archive is read, a longer archive may replace it, and the object of the old archive may be deleted. The reader
then raises `ArchiveReplaced`, and the caller must look up the archive again and retry.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from footplate.domain.errors import Permanent
from footplate.store.archive.format import (
    ArchiveDamaged,
    ArchiveLine,
    Block,
    BlockKind,
    parse_index,
    sha256_digest,
    unpack_lines,
)
from footplate.store.database import SQL, Connection, Database
from footplate.store.object_store import Objects
from footplate.store.row_mapping import Row


class ArchiveReplaced(Exception):
    """The archive's object is missing. The archive's row may name a newer object by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    session_id: str
    organisation: str
    object_key: str
    last_seq: int
    entries: int
    index_at: int
    size: int
    sha256: bytes
    replaced: str | None = None
    pruned: bool = False


class ArchiveReader:
    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects

    async def find_archive(self, session_id: str, connection: Connection | None = None) -> Archive | None:
        if connection is not None:
            return _archive_from_row(await connection.fetchrow(SQL["archive"], session_id))
        return _archive_from_row(await self._database.fetchrow("archive", session_id))

    async def list_blocks(self, archive: Archive) -> list[Block]:
        packed = await self._read_range(archive, archive.index_at, archive.size)
        with _check_intact(archive):
            return parse_index(packed, archive.sha256)

    async def read_packed_block(self, archive: Archive, block: Block) -> bytes:
        """Returns a block's compressed bytes after checking their checksum."""
        packed = await self._read_range(archive, block.at, block.at + block.size)
        with _check_intact(archive):
            if sha256_digest(packed).hex() != block.sha256:
                raise ArchiveDamaged
        return packed

    async def read_lines(
        self, archive: Archive, kind: BlockKind, *, after: int = -1, before: int | None = None, descending: bool = False
    ) -> AsyncIterator[ArchiveLine]:
        """Yields the lines of one kind between the positions `after` and `before`, both exclusive, in either order."""
        blocks = [
            block
            for block in await self.list_blocks(archive)
            if block.kind == kind and block.last > after and (before is None or block.first < before)
        ]
        name = "seq" if kind == "events" else "idx"
        for block in reversed(blocks) if descending else blocks:
            packed = await self._read_range(archive, block.at, block.at + block.size)
            with _check_intact(archive):
                lines = await asyncio.to_thread(unpack_lines, packed, bytes.fromhex(block.sha256))
            for line in reversed(lines) if descending else lines:
                if line[name] > after and (before is None or line[name] < before):
                    yield line

    async def _read_range(self, archive: Archive, start: int, end: int) -> bytes:
        try:
            return await self._objects.read_range(archive.object_key, start, end)
        except FileNotFoundError as error:
            raise ArchiveReplaced from error


class _check_intact:  # noqa: N801 - reads as a statement where it is used
    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, ArchiveDamaged):
            raise Permanent(
                f"The archive of session {self._archive.session_id!r} is damaged: its checksum does not match.",
                help_text=f"Restore the object {self._archive.object_key!r} from a backup of the object store.",
            ) from error


def archive_missing(archive: Archive) -> Permanent:
    return Permanent(
        f"The archive of session {archive.session_id!r} is not in the object store.",
        help_text=f"Check FOOTPLATE_OBJECTS_URL (it must be the same for API and workers), or restore the object "
        f"{archive.object_key!r} from a backup.",
    )


def _archive_from_row(row: Row | None) -> Archive | None:
    return None if row is None else Archive(**dict(row))
