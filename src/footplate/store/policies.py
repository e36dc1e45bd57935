"""Permission rules: the organisation's own, and all that are in force for a session."""

import os
from collections.abc import Sequence

from footplate.domain import audit
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Layer, PolicyUnit, Written
from footplate.domain.principals import Principal
from footplate.domain.project_rules import place_of_path
from footplate.domain.projects import root_of
from footplate.store import audit as trail
from footplate.store.database import SQL, Connection, Database
from footplate.store.records import Row


class Rules:
    """The worker's side."""

    def __init__(self, database: Database, projects_root: str | None = None) -> None:
        """`projects_root`: as `domain.projects.root_of` takes it. A named directory below it is a place."""
        self._database = database
        self._projects_root = projects_root

    async def rules(
        self, organisation: str, session_id: str, *, directory: str | None = None
    ) -> Sequence[tuple[Layer, JsonObject]]:
        place = self._place_of(organisation, directory) if directory is not None else None
        row = await self._database.fetchrow("rules", session_id, organisation, place)
        if row is None:
            raise NotFound("session", session_id)
        return [
            (Layer.ORGANISATION, row["organisation"] or {}),
            *((Layer.PROJECT, permissions) for permissions in row["projects"]),
            (Layer.SESSION, row["session"]),
        ]

    def _place_of(self, organisation: str, directory: str) -> str | None:
        """Of a named directory, with all links followed. One that holds the organisation's projects root is around all
        places. None: it has nothing to do with projects.
        """
        if self._projects_root is None:
            return None
        try:
            root = os.path.realpath(root_of(self._projects_root, organisation))
        except InvalidRequest:
            return None
        named = os.path.realpath(directory)
        if os.path.commonpath([named, root]) == named:
            return place_of_path("")
        path = os.path.relpath(named, root)
        return None if path.split("/")[0] == ".." else place_of_path(path)


class PolicyChanges(PolicyUnit):
    """The part of a unit that writes them."""

    _connection: Connection

    async def set_policy(
        self, principal: Principal, permissions: JsonObject | None, approvals: JsonObject | None = None
    ) -> Written:
        row = await self._connection.fetchrow(
            SQL["set_policy"], principal.organisation, permissions, approvals, principal.id
        )
        assert row is not None
        entry = audit.policy(row["permissions"], row["approvals"])
        await trail.add(self._connection, principal.organisation, entry, principal=principal.id)
        return written(row)


def written(row: Row) -> Written:
    return Written(row["permissions"], row["principal"], row["updated_at"], row["approvals"])
