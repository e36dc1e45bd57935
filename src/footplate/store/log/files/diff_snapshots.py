"""Finds the two file snapshots that a diff request compares. This module reads only the log, not the files."""

from collections.abc import Mapping, Sequence

from footplate.domain.errors import NotFound
from footplate.domain.files.snapshots import SCRATCH_TREE, SessionFiles, StoredSnapshot, TreeDiff
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import DiffRequest
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import SQL, Connection, Database
from footplate.store.log.files.file_snapshots import load_files_at, snapshots_by_tree, tree_ids
from footplate.store.log.fork_creation import find_position
from footplate.store.object_store import Objects
from footplate.store.resources import projects
from footplate.store.row_mapping import Row

SnapshotsByTree = Mapping[str, StoredSnapshot]


class DiffSnapshots:
    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._archives = ArchiveReader(database, objects)

    async def find_diffs(self, principal: Principal, session_id: str, request: DiffRequest) -> Sequence[TreeDiff]:
        async with self._database.connection() as connection:
            head = await connection.fetchrow(SQL["files_head"], session_id, principal.organisation)
            if head is None:
                raise NotFound("session", session_id)
            names = _tree_names(head, request.project_id)
            newest = await load_files_at(connection, session_id, [*names])
            if request.turn_id is not None:
                old, new = await _snapshots_around_turn(connection, principal, session_id, [*names], request.turn_id)
            else:
                new = (await self._files_at_end(connection, head, [*names], request, newest)).snapshots
                old = dict[str, StoredSnapshot]()
                if request.old is not None:
                    seq = await find_position(connection, self._archives, head, request.old, field_prefix="from")
                    old = (await load_files_at(connection, session_id, [*names], seq)).snapshots
        return [
            TreeDiff(
                organisation=principal.organisation,
                session_id=session_id,
                ancestors=newest.ancestors,
                tree=tree,
                name=name,
                is_additional=tree != SCRATCH_TREE and tree != head["project_ids"][0],
                old=old.get(tree),
                new=new.get(tree),
            )
            for tree, name in names.items()
        ]

    async def _files_at_end(
        self, connection: Connection, head: Row, trees: Sequence[str], request: DiffRequest, newest: SessionFiles
    ) -> SessionFiles:
        if request.new.event_id is None and request.new.position is None:
            return newest
        seq = await find_position(connection, self._archives, head, request.new, field_prefix="to")
        return await load_files_at(connection, head["id"], trees, seq)


async def _snapshots_around_turn(
    connection: Connection, principal: Principal, session_id: str, trees: Sequence[str], turn_id: str
) -> tuple[SnapshotsByTree, SnapshotsByTree]:
    """Returns the snapshots before and after a turn; for a running turn, the newest one so far."""
    turn = await connection.fetchrow(SQL["turn"], session_id, principal.organisation, turn_id)
    if turn is None:
        raise NotFound("turn", turn_id)
    before = (await load_files_at(connection, session_id, trees, turn["first_seq"])).snapshots
    rows = await connection.fetch(SQL["files_of_turn"], session_id, [*trees], turn["first_seq"], turn_id)
    old = {**before, **snapshots_by_tree([row for row in rows if row["begins"]])}
    return old, {**old, **snapshots_by_tree([row for row in rows if not row["begins"]])}


def _tree_names(head: Row, project_id: str | None) -> dict[str, str]:
    """Returns the display names of the session's trees, or of the one tree of `project_id`."""
    names = {tree: str(head["bases"].get(tree, {}).get("name") or tree) for tree in tree_ids(head["project_ids"])}
    if project_id is None:
        return names
    return {project_id: names[projects.check_session_project(head, project_id)]}
