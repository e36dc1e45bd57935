"""Finds the work that a session can deliver (merge, push or bundle), and records deliveries.

This module uses only the database. `trees.delivery` handles the files.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from footplate.domain.errors import Conflict, Fenced, InvalidRequest, NotFound, Refused
from footplate.domain.files.delivery import (
    Delivery,
    DeliveryRequest,
    DeliveryStep,
    NothingToDeliver,
    build_commit_message,
)
from footplate.domain.files.snapshots import StoredSnapshot, TreeDiff
from footplate.domain.projects.project import BaseCommit, SessionProject
from footplate.store.database import SQL, Connection, Database
from footplate.store.log.files.file_snapshots import load_files_at, load_snapshot
from footplate.store.resources import projects
from footplate.store.row_mapping import Row


class Deliveries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_delivery(self, organisation: str, session_id: str, request: DeliveryRequest) -> Delivery:
        async with self._database.connection() as connection:
            head = await connection.fetchrow(SQL["leaving_head"], session_id, organisation)
            if head is None:
                raise NotFound("session", session_id)
            if request.epoch is not None and head["epoch"] != request.epoch:
                raise Fenced(f"Another worker holds session {session_id}.")
            project_id = _choose_project(head, request.project_id)
            if request.writes and request.epoch is None and head["status"] not in {"idle", "terminated"}:
                raise Conflict(
                    f"Session {session_id} is running a turn, so its files may still change.",
                    help_text="Wait until the session is idle, or interrupt it. Its work so far is kept.",
                )
            files = await load_files_at(connection, session_id, [project_id])
            snapshot = files.snapshots.get(project_id)
            if snapshot is None:
                raise NothingToDeliver(
                    f"Session {session_id} has not changed any files.",
                    help_text="Try again after a turn that changes files.",
                )
            project = await _load_project(connection, organisation, head, project_id)
            steps = await _load_steps(connection, head, project_id, snapshot, request.message)
        return Delivery(
            diff=TreeDiff(
                organisation=organisation,
                session_id=session_id,
                ancestors=files.ancestors,
                tree=project_id,
                name=project.name,
                is_additional=project_id != head["project_ids"][0],
                old=None,
                new=snapshot,
            ),
            project=project,
            steps=steps,
        )

    @asynccontextmanager
    async def record_delivery(self, delivery: Delivery) -> AsyncGenerator[Delivery, None]:
        """Records the delivery in the log before the work is delivered, so that it is known if this process dies. If
        the delivery is refused, the record is removed, and the next one may use another commit message.
        """
        recorded, first = await self._insert_record(delivery)
        try:
            yield recorded
        except Refused:
            if first:
                newest = recorded.steps[-1]
                await self._database.fetch("stay", recorded.session_id, recorded.project.id, newest.seq, newest.message)
            raise
        await self._insert_record(recorded)  # a concurrent, refused delivery may have removed the record

    async def _insert_record(self, delivery: Delivery) -> tuple[Delivery, bool]:
        *before, newest = delivery.steps
        row = await self._database.fetchrow(
            "depart", delivery.session_id, newest.session_id, delivery.project.id, newest.seq, newest.message
        )
        if row is None:
            raise NotFound("session", delivery.session_id)
        return replace(delivery, steps=(*before, replace(newest, message=row["departed"]))), row["first"]


async def _load_steps(
    connection: Connection, head: Row, tree: str, snapshot: StoredSnapshot, message: str | None
) -> Sequence[DeliveryStep]:
    rows = await connection.fetch(SQL["departures"], head["id"], tree, snapshot.number, snapshot.snapshot.tree)
    newest_seq = rows[-1]["seq"]
    return tuple(
        DeliveryStep(
            session_id=row["session_id"],
            seq=row["seq"],
            snapshot=load_snapshot(row),
            taken_at=row["created_at"],
            message=row["departed"] or build_commit_message(head["id"], message, head["title"]),
        )
        for row in rows
        if row["departed"] is not None or row["seq"] == newest_seq
    )


async def _load_project(connection: Connection, organisation: str, head: Row, project_id: str) -> SessionProject:
    rows = await connection.fetch(SQL["projects_of"], [project_id], organisation)
    if not rows:
        raise NotFound("project", project_id)
    project = projects.session_project(rows[0], BaseCommit.load(head["bases"].get(project_id)))
    return replace(project, name=rows[0]["name"])  # the current name, not the one at the session's start


def _choose_project(head: Row, project_id: str | None) -> str:
    ids: list[str] = head["project_ids"]
    if not ids:
        raise NothingToDeliver(
            f"Session {head['id']} has no project, so its work cannot be delivered as a branch.",
            help_text="Use `footplate diff` to get a patch, or `footplate apply` to write the files into a checkout.",
        )
    if project_id is None and len(ids) > 1:
        raise InvalidRequest(
            f"project_id: required, because session {head['id']} has {len(ids)} projects",
            field="project_id",
            help_text=f"Choose one of {', '.join(ids)}.",
        )
    return ids[0] if project_id is None else projects.check_session_project(head, project_id)
