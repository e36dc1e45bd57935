"""Stores the permission rules of an organisation, and loads all rules that apply to a session."""

import os
from collections.abc import Sequence

from footplate.domain import audit
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.permissions import ExpectedPolicy, Layer, OrganisationPolicy, PolicyUnit
from footplate.domain.projects.location_permission_rules import path_location
from footplate.domain.projects.project import resolve_projects_root
from footplate.store.database import Connection, Database, bind
from footplate.store.resources import audit_trail as trail
from footplate.store.row_mapping import Row


class SessionRuleLoader:
    """Loads the rules that apply to a session, for workers."""

    def __init__(self, database: Database, projects_root: str | None = None) -> None:
        """`projects_root`: as for `resolve_projects_root`. A user-specified directory below it has project rules."""
        self._database = database
        self._projects_root = projects_root

    async def rules(
        self, organisation: str, session_id: str, *, directory: str | None = None
    ) -> Sequence[tuple[Layer, JsonObject]]:
        location = self._project_location(organisation, directory) if directory is not None else None
        row = await self._database.fetchrow("rules", session_id, organisation, location)
        if row is None:
            raise NotFound("session", session_id)
        return [
            (Layer.ORGANISATION, row["organisation"] or {}),
            *((Layer.PROJECT, permissions) for permissions in row["projects"]),
            (Layer.SESSION, row["session"]),
        ]

    def _project_location(self, organisation: str, directory: str) -> str | None:
        """Returns the project location of a user-specified directory, with all links resolved. A directory that
        contains the organisation's projects root covers all locations. Returns None for a directory outside the root.
        """
        if self._projects_root is None:
            return None
        try:
            root = os.path.realpath(resolve_projects_root(self._projects_root, organisation))
        except InvalidRequest:
            return None
        resolved = os.path.realpath(directory)
        if os.path.commonpath([resolved, root]) == resolved:
            return path_location("")
        path = os.path.relpath(resolved, root)
        return None if path.split("/")[0] == ".." else path_location(path)


class PolicyUnitOfWork(PolicyUnit):
    """The methods of a unit of work that change the organisation's policy."""

    _connection: Connection

    async def set_policy(
        self,
        principal: Principal,
        permissions: JsonObject | None,
        approvals: JsonObject | None = None,
        *,
        expected: ExpectedPolicy | None = None,
    ) -> OrganisationPolicy:
        row = await self._connection.fetchrow(
            *bind(
                "set_policy",
                organisation=principal.organisation,
                permissions=permissions,
                approvals=approvals,
                principal=principal.id,
                is_conditional=expected is not None,
                expected_time=None if expected is None else expected.updated_at,
            )
        )
        if row is None:
            raise Conflict(
                "The organisation's policy was changed after you read it.",
                help_text="Retrieve the policy, apply your change to it, and send its updated_at.",
                field="expected_updated_at",
            )
        entry = audit.build_policy_entry(row["permissions"], row["approvals"])
        await trail.add_entry(self._connection, principal.organisation, entry, principal=principal.id)
        return load_policy(row)


def load_policy(row: Row) -> OrganisationPolicy:
    return OrganisationPolicy(row["permissions"], row["principal"], row["updated_at"], row["approvals"])
