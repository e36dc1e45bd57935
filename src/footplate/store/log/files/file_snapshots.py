"""Finds the snapshots of a session's files in its log: the current ones at a position, or those with given numbers."""

from collections.abc import Mapping, Sequence
from typing import Final

from footplate.domain.files.snapshots import HOME_TREE, NO_FILES, SCRATCH_TREE, SessionFiles, Snapshot, StoredSnapshot
from footplate.store.database import SQL, Connection, Database
from footplate.store.row_mapping import Row

NEWEST_SEQ: Final = (1 << 63) - 1


def tree_ids(project_ids: Sequence[str]) -> list[str]:
    """Returns the names of the session's working trees."""
    return [*project_ids] or [SCRATCH_TREE]


def restored_tree_ids(project_ids: Sequence[str]) -> list[str]:
    """Returns the names of all trees that a host restores."""
    return [*tree_ids(project_ids), HOME_TREE]


async def load_files_at(
    connection: Connection, session_id: str, trees: Sequence[str], seq: int = NEWEST_SEQ
) -> SessionFiles:
    """Returns the current snapshots at position `seq`, including those that a fork inherits."""
    rows = await connection.fetch(SQL["files_at"], session_id, [*trees], seq)
    return SessionFiles(snapshots_by_tree(rows), tuple(rows[0]["owners"])) if rows else NO_FILES


def snapshots_by_tree(rows: Sequence[Row]) -> Mapping[str, StoredSnapshot]:
    return {
        row["tree"]: StoredSnapshot(
            row["number"],
            load_snapshot(row),
            row["base"],
            tuple(row["left_out"]),
        )
        for row in rows
    }


def load_snapshot(row: Row) -> Snapshot:
    """The only reader of these columns. A column that is omitted here is also missing from the names of packs."""
    return Snapshot(row["files"], row["apart"], tuple(sorted(row["commits"].items())), row["bundles"])


class SnapshotHistory:
    """Loads earlier snapshots of a session's files."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_snapshots(self, session_id: str, tree: str, numbers: Sequence[int]) -> Mapping[int, Snapshot]:
        rows = await self._database.fetch("snapshots_by_number", session_id, tree, [*numbers])
        return {row["number"]: load_snapshot(row) for row in rows}
