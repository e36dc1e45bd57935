"""Permission rules: the organisation's own, and all that are in force for a session."""

from collections.abc import Sequence

from footplate.domain import audit
from footplate.domain.errors import NotFound
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Layer, PolicyUnit, Written
from footplate.domain.principals import Principal
from footplate.store import audit as trail
from footplate.store.database import SQL, Connection, Database
from footplate.store.records import Row


class Rules:
    """The worker's side."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rules(self, organisation: str, session_id: str) -> Sequence[tuple[Layer, JsonObject]]:
        row = await self._database.fetchrow("rules", session_id, organisation)
        if row is None:
            raise NotFound("session", session_id)
        return [
            (Layer.ORGANISATION, row["organisation"] or {}),
            *((Layer.PROJECT, permissions) for permissions in row["projects"]),
            (Layer.SESSION, row["session"]),
        ]


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
