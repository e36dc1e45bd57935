"""Finds the work that a session can deliver (merge, push or bundle) and records deliveries. Reads no files."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from footplate.domain.errors import Conflict, InvalidRequest, NotFound, Refused
from footplate.domain.leaving import Departure, DepartureAsked, NothingToLeave, Step, message_of
from footplate.domain.principals import Principal
from footplate.domain.projects import Base, SessionProject
from footplate.domain.snapshots import KeptSnapshot, TreeDiff
from footplate.store import projects
from footplate.store.database import SQL, Connection, Database
from footplate.store.records import Row
from footplate.store.snapshots import files_at, snapshot_of


class Departures:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, principal: Principal, session_id: str, request: DepartureAsked) -> Departure:
        async with self._database.connection() as connection:
            head = await connection.fetchrow(SQL["leaving_head"], session_id, principal.organisation)
            if head is None:
                raise NotFound("session", session_id)
            project_id = _chosen(head, request.project_id)
            if request.writes and head["status"] != "idle":
                raise Conflict(
                    f"Session {session_id} is running a turn, so its files may still change.",
                    help_text="Wait until the session is idle, or interrupt it. Its work so far is kept.",
                )
            files = await files_at(connection, session_id, [project_id])
            snapshot = files.kept.get(project_id)
            if snapshot is None:
                raise NothingToLeave(
                    f"Session {session_id} has not changed any files.",
                    help_text="Try again after a turn that changes files.",
                )
            project = await _project(connection, principal, head, project_id)
            steps = await _steps(connection, head, project_id, snapshot, request.message)
        return Departure(
            files=TreeDiff(
                organisation=principal.organisation,
                session_id=session_id,
                owners=files.owners,
                tree=project_id,
                name=project.name,
                beside=project_id != head["project_ids"][0],
                old=None,
                new=snapshot,
            ),
            project=project,
            steps=steps,
        )

    @asynccontextmanager
    async def leaving(self, delivery: Departure) -> AsyncGenerator[Departure, None]:
        """Records the delivery in the log before the work is delivered, so that it is known if this process dies. If
        the delivery is refused, the record is removed, and the next one may use another commit message.
        """
        recorded, first = await self._depart(delivery)
        try:
            yield recorded
        except Refused:
            if first:
                newest = recorded.steps[-1]
                await self._database.fetch("stay", recorded.session_id, recorded.project.id, newest.seq, newest.message)
            raise
        await self._depart(recorded)  # a concurrent, refused delivery may have removed the record

    async def _depart(self, delivery: Departure) -> tuple[Departure, bool]:
        *before, newest = delivery.steps
        row = await self._database.fetchrow(
            "depart", delivery.session_id, newest.session_id, delivery.project.id, newest.seq, newest.message
        )
        if row is None:
            raise NotFound("session", delivery.session_id)
        return replace(delivery, steps=(*before, replace(newest, message=row["departed"]))), row["first"]


async def _steps(
    connection: Connection, head: Row, tree: str, kept: KeptSnapshot, message: str | None
) -> Sequence[Step]:
    rows = await connection.fetch(SQL["departures"], head["id"], tree, kept.number, kept.snapshot.tree)
    now = rows[-1]["seq"]
    return tuple(
        Step(
            session_id=row["session_id"],
            seq=row["seq"],
            snapshot=snapshot_of(row),
            taken_at=row["created_at"],
            message=row["departed"] or message_of(head["id"], message, head["title"]),
        )
        for row in rows
        if row["departed"] is not None or row["seq"] == now
    )


async def _project(connection: Connection, principal: Principal, head: Row, project_id: str) -> SessionProject:
    rows = await connection.fetch(SQL["projects_of"], [project_id], principal.organisation)
    if not rows:
        raise NotFound("project", project_id)
    given = projects.given(rows[0], Base.load(head["bases"].get(project_id)))
    return replace(given, name=rows[0]["name"])  # the current name, not the one at the session's start


def _chosen(head: Row, project_id: str | None) -> str:
    ids: list[str] = head["project_ids"]
    if not ids:
        raise NothingToLeave(
            f"Session {head['id']} has no project, so there is no branch for its files.",
            help_text="Use `footplate diff` to get a patch, or `footplate apply` to write the files into a checkout.",
        )
    if project_id is None and len(ids) > 1:
        raise InvalidRequest(
            f"project_id: required, because session {head['id']} has {len(ids)} projects",
            field="project_id",
            help_text=f"Choose one of {', '.join(ids)}.",
        )
    return ids[0] if project_id is None else projects.worked_on(head, project_id)
