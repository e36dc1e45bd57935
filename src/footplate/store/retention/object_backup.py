"""Copies all objects of one store into another: a backup, or the restore of one.

A copy only adds: objects that the source has deleted stay in the target, so a backup directory serves every database
backup that was taken while it was in use. Objects are not changed once they are written, except for a few that are
written again under the same key; these are newer than their copy.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from footplate.domain.files.object_gc import StoredObject
from footplate.store.object_store import Objects
from footplate.store.retention.object_gc import CELL_OBJECT, OtherCell

_CONCURRENT_COPIES: Final = 16


@dataclass(slots=True)
class CopyReport:
    copied: int = 0
    copied_bytes: int = 0
    present: int = 0
    """Objects that the target already had."""


async def copy_objects(source: Objects, target: Objects) -> CopyReport:
    """Copies what the target does not have. Can be interrupted and repeated at any time."""
    await _check_cells(source, target)
    report = CopyReport()
    async for batch in source.list_all():
        for start in range(0, len(batch), _CONCURRENT_COPIES):
            some = batch[start : start + _CONCURRENT_COPIES]
            await asyncio.gather(*(_copy_missing(source, target, stored, report) for stored in some))
    return report


async def _copy_missing(source: Objects, target: Objects, stored: StoredObject, report: CopyReport) -> None:
    present = await target.find(stored.key)
    if present is not None and _is_copy(present, stored):
        report.present += 1
    elif await source.copy_object(stored.key, target):
        report.copied += 1
        report.copied_bytes += stored.size


def _is_copy(present: StoredObject, stored: StoredObject) -> bool:
    written_at = stored.written_at
    if not present.written_at.microsecond:  # The target counts in seconds, as S3 does.
        written_at = written_at.replace(microsecond=0)
    return present.size == stored.size and present.written_at >= written_at


async def _check_cells(source: Objects, target: Objects) -> None:
    names = [await _read_cell(objects) for objects in (source, target)]
    if None not in names and names[0] != names[1]:
        raise OtherCell(
            "The directory and the object store belong to different cells.",
            help_text="Choose another directory, or correct FOOTPLATE_OBJECTS_URL.",
        )


async def _read_cell(objects: Objects) -> bytes | None:
    try:
        return b"".join([piece async for piece in objects.read_chunks(CELL_OBJECT)])
    except FileNotFoundError:
        return None
