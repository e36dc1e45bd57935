"""Writes the archive of a session: the unchanged blocks of its previous archive, and the rows written since then.

Rows of the log never change, so they are read in pages without a database snapshot. The written object is read back and
verified before it is used.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from footplate import failpoints
from footplate.domain import ids
from footplate.store.archive.format import ArchiveEncoder, BlockKind, pack_lines, sha256_digest, split_into_blocks
from footplate.store.archive.reader import Archive, ArchiveReader
from footplate.store.database import SQL, Connection
from footplate.store.object_store import Objects

_PAGE_ROWS: Final = 500


class RowsMissing(Exception):
    """A row is missing: the session was deleted, or the tables were changed from outside Footplate."""


@dataclass(frozen=True, slots=True)
class ArchiveExtent:
    """The part of a session that goes into its archive."""

    organisation: str
    session_id: str
    last_seq: int
    entries: int
    inherited_seq: int = 0
    """For a fork: the last inherited position. Inherited rows belong to other sessions and are not archived with it."""
    inherited_entries: int = 0


def archive_folder(organisation: str, session_id: str) -> str:
    return f"{organisation}/{session_id}/archive"


class ArchiveWriter:
    def __init__(self, archives: ArchiveReader, objects: Objects) -> None:
        self._archives = archives
        self._objects = objects

    async def write_archive(self, connection: Connection, extent: ArchiveExtent, old: Archive | None) -> Archive:
        """Writes a new object under a unique key and verifies it."""
        key = f"{archive_folder(extent.organisation, extent.session_id)}/{ids.new_id('arch')}.jsonl.gz"
        layout = ArchiveEncoder()
        index = b""

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal index
            yield layout.encode_header(extent.organisation, extent.session_id)
            if old is not None:
                for block in await self._archives.list_blocks(old):
                    packed = await self._archives.read_packed_block(old, block)
                    yield layout.encode_block(block.kind, block.first, block.last, packed)
            async for chunk in _encode_rows(connection, layout, extent, old):
                yield chunk
            await failpoints.hit("archive_writing")
            index = layout.encode_index()
            yield index

        await self._objects.write_object(key, chunks())
        archive = Archive(
            organisation=extent.organisation,
            session_id=extent.session_id,
            object_key=key,
            last_seq=extent.last_seq,
            entries=extent.entries,
            index_at=layout.size - len(index),
            size=layout.size,
            sha256=sha256_digest(index),
        )
        for block in await self._archives.list_blocks(archive):
            await self._archives.read_packed_block(archive, block)
        return archive


async def _encode_rows(
    connection: Connection, layout: ArchiveEncoder, extent: ArchiveExtent, old: Archive | None
) -> AsyncIterator[bytes]:
    ranges: tuple[tuple[BlockKind, int, int], ...] = (
        ("events", old.last_seq if old else extent.inherited_seq, extent.last_seq),
        ("entries", (old.entries if old else extent.inherited_entries) - 1, extent.entries - 1),
    )
    for kind, start, last in ranges:
        after = start
        while after < last:
            rows = await connection.fetch(SQL[f"archive_{kind}"], extent.session_id, after, last, _PAGE_ROWS)
            if not rows or rows[-1]["place"] != after + len(rows):
                raise RowsMissing(f"{kind} of {extent.session_id} after {after}")
            for lines in split_into_blocks([row["line"] for row in rows]):
                packed = await asyncio.to_thread(pack_lines, lines)
                yield layout.encode_block(kind, after + 1, after + len(lines), packed)
                after += len(lines)
