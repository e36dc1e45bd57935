"""Reads from the log which snapshot of each of a session's trees is current at a position."""

from collections.abc import Mapping, Sequence
from typing import Final

from footplate.domain.snapshots import NO_FILES, SCRATCH, Files, KeptSnapshot, Snapshot
from footplate.store.database import SQL, Connection
from footplate.store.records import Row

NEWEST: Final = (1 << 63) - 1


def trees_of(project_ids: Sequence[str]) -> list[str]:
    return [*project_ids] or [SCRATCH]


async def files_at(connection: Connection, session_id: str, trees: Sequence[str], seq: int = NEWEST) -> Files:
    """Returns the current snapshots at position `seq`, including those that a fork inherits."""
    rows = await connection.fetch(SQL["files_at"], session_id, [*trees], seq)
    return Files(by_tree(rows), tuple(rows[0]["owners"])) if rows else NO_FILES


def by_tree(rows: Sequence[Row]) -> Mapping[str, KeptSnapshot]:
    return {
        row["tree"]: KeptSnapshot(
            row["number"],
            snapshot_of(row),
            row["base"],
            tuple(row["left_out"]),
        )
        for row in rows
    }


def snapshot_of(row: Row) -> Snapshot:
    """The only reader of these columns. A column that is omitted here is also missing from the names of packs."""
    return Snapshot(row["files"], row["apart"], tuple(sorted(row["commits"].items())), row["bundles"])
