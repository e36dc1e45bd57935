"""Finds the two snapshots that a diff of a session's files compares. Reads only the log, no files."""

from collections.abc import Mapping, Sequence

from footplate.domain.errors import NotFound
from footplate.domain.principals import Principal
from footplate.domain.services import DiffAsked
from footplate.domain.snapshots import SCRATCH, Files, KeptSnapshot, TreeDiff
from footplate.store import projects
from footplate.store.archives import Archives
from footplate.store.database import SQL, Connection, Database
from footplate.store.forks import find_position
from footplate.store.objects import Objects
from footplate.store.records import Row
from footplate.store.snapshots import by_tree, files_at, trees_of

Kept = Mapping[str, KeptSnapshot]


class DiffReads:
    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._archives = Archives(database, objects)

    async def find(self, principal: Principal, session_id: str, request: DiffAsked) -> Sequence[TreeDiff]:
        async with self._database.connection() as connection:
            head = await connection.fetchrow(SQL["files_head"], session_id, principal.organisation)
            if head is None:
                raise NotFound("session", session_id)
            names = _names(head, request.project_id)
            newest = await files_at(connection, session_id, [*names])
            if request.turn_id is not None:
                old, new = await _of_turn(connection, principal, session_id, [*names], request.turn_id)
            else:
                new = (await self._at(connection, head, [*names], request, newest)).kept
                old = {}
                if request.old is not None:
                    seq = await find_position(connection, self._archives, head, request.old, field="from")
                    old = (await files_at(connection, session_id, [*names], seq)).kept
        return [
            TreeDiff(
                organisation=principal.organisation,
                session_id=session_id,
                owners=newest.owners,
                tree=tree,
                name=name,
                beside=tree != SCRATCH and tree != head["project_ids"][0],
                old=old.get(tree),
                new=new.get(tree),
            )
            for tree, name in names.items()
        ]

    async def _at(
        self, connection: Connection, head: Row, trees: Sequence[str], request: DiffAsked, newest: Files
    ) -> Files:
        if request.new.event_id is None and request.new.position is None:
            return newest
        seq = await find_position(connection, self._archives, head, request.new, field="to")
        return await files_at(connection, head["id"], trees, seq)


async def _of_turn(
    connection: Connection, principal: Principal, session_id: str, trees: Sequence[str], turn_id: str
) -> tuple[Kept, Kept]:
    """Returns the snapshots before and after a turn; for a running turn, the newest one so far."""
    turn = await connection.fetchrow(SQL["turn"], session_id, principal.organisation, turn_id)
    if turn is None:
        raise NotFound("turn", turn_id)
    before = (await files_at(connection, session_id, trees, turn["first_seq"])).kept
    rows = await connection.fetch(SQL["files_of_turn"], session_id, [*trees], turn["first_seq"], turn_id)
    old = {**before, **by_tree([row for row in rows if row["begins"]])}
    return old, {**old, **by_tree([row for row in rows if not row["begins"]])}


def _names(head: Row, project_id: str | None) -> dict[str, str]:
    """Returns the display names of the session's trees, or of the one tree of `project_id`."""
    names = {tree: str(head["bases"].get(tree, {}).get("name") or tree) for tree in trees_of(head["project_ids"])}
    if project_id is None:
        return names
    return {project_id: names[projects.worked_on(head, project_id)]}
