"""Stores templates for new sessions, and which sessions members have pinned."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import asyncpg

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.projects.project import ProjectSelection
from footplate.domain.sessions import session_templates
from footplate.domain.sessions.session_templates import (
    PinUnit,
    SessionTemplateDefinition,
    SessionTemplateUnit,
    StoredSessionTemplate,
    TooManyTemplates,
)
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.resources import members, projects
from footplate.store.resources.deployment_runs import check_environment
from footplate.store.row_mapping import Row


class SessionTemplateUnitOfWork(SessionTemplateUnit, PinUnit):
    """The methods of a unit of work that change templates and pins."""

    _connection: Connection

    async def create_session_template(
        self, principal: Principal, definition: SessionTemplateDefinition
    ) -> StoredSessionTemplate:
        await self._connection.execute(SQL["lock_limit"], f"session_templates/{principal.organisation}")
        count = await self._connection.fetchval(SQL["count_session_templates"], principal.organisation)
        if count >= session_templates.MAX_TEMPLATES:
            raise TooManyTemplates
        await self._check_template(principal, definition)
        with _unique_name(definition.name):
            row = await self._connection.fetchrow(
                *bind(
                    "insert_session_template",
                    id=ids.new_id(ids.SESSION_TEMPLATE),
                    organisation=principal.organisation,
                    name=definition.name,
                    description=definition.description,
                    session=clean_object(definition.session),
                    principal=principal.id,
                )
            )
        return await self._announce_template(row, "created")

    async def update_session_template(
        self,
        principal: Principal,
        template_id: str,
        change: Callable[[StoredSessionTemplate], SessionTemplateDefinition],
    ) -> StoredSessionTemplate:
        found = await self._lock_template(principal, template_id)
        if found.archived_at is not None:
            raise InvalidRequest(f"Template {template_id!r} is archived.", help_text="Create a new template.")
        definition = change(found)
        await self._check_template(principal, definition)
        if (definition.name, definition.description, definition.session) == (
            *(found.name, found.description, found.session),
        ):
            return found
        with _unique_name(definition.name):
            row = await self._connection.fetchrow(
                SQL["update_session_template"],
                template_id,
                definition.name,
                definition.description,
                clean_object(definition.session),
            )
        return await self._announce_template(row, "updated")

    async def archive_session_template(self, principal: Principal, template_id: str) -> StoredSessionTemplate:
        found = await self._lock_template(principal, template_id)
        if found.archived_at is not None:
            return found
        row = await self._connection.fetchrow(SQL["archive_session_template"], template_id)
        return await self._announce_template(row, "archived")

    async def pin_session(self, principal: Principal, session_id: str) -> bool:
        row = await self._connection.fetchrow(SQL["pin_session"], principal.id, session_id, principal.organisation)
        return row is not None and await self._announce_pin(principal, session_id, is_pinned=True)

    async def unpin_session(self, principal: Principal, session_id: str) -> bool:
        row = await self._connection.fetchrow(SQL["unpin_session"], principal.id, session_id)
        return row is not None and await self._announce_pin(principal, session_id, is_pinned=False)

    async def _lock_template(self, principal: Principal, template_id: str) -> StoredSessionTemplate:
        row = await self._connection.fetchrow(SQL["lock_session_template"], template_id, principal.organisation)
        if row is None:
            raise NotFound("session template", template_id)
        return load_template(row)

    async def _check_template(self, principal: Principal, definition: SessionTemplateDefinition) -> None:
        """Raises unless a session could be created now."""
        await check_environment(self._connection, principal, definition.environment_id)
        selection = ProjectSelection(tuple(definition.project_ids), definition.workspace_id)
        await projects.choose_projects(self._connection, principal, selection)
        await members.check_audience(self._connection, principal, definition.audience)

    async def _announce_template(self, row: Row | None, change: str) -> StoredSessionTemplate:
        assert row is not None
        template = load_template(row)
        body: JsonObject = {"session_template_id": template.id, "change": change}
        event_type, event_id = session_templates.TEMPLATE_CHANGED, ids.new_id(ids.EVENT)
        await self._connection.execute(
            SQL["add_organisation_change_to_feed"], template.organisation, template.id, event_type, event_id, body
        )
        return template

    async def _announce_pin(self, principal: Principal, session_id: str, *, is_pinned: bool) -> bool:
        body: JsonObject = {"member_id": principal.id, "pinned_session_id": session_id, "is_pinned": is_pinned}
        await self._connection.execute(
            SQL["add_member_change_to_feed"],
            *(principal.organisation, principal.id, session_templates.PIN_CHANGED, ids.new_id(ids.EVENT), body),
        )
        return True


async def read_template(database: Database, principal: Principal, template_id: str) -> StoredSessionTemplate:
    row = await database.fetchrow("session_template", template_id, principal.organisation)
    if row is None:
        raise NotFound("session template", template_id)
    return load_template(row)


async def find_pinned_sessions(database: Database, principal: Principal, session_ids: Sequence[str]) -> frozenset[str]:
    rows = await database.fetch("pinned_sessions", principal.id, [*session_ids])
    return frozenset(row["session_id"] for row in rows)


def load_template(row: Row) -> StoredSessionTemplate:
    return StoredSessionTemplate(
        id=row["id"],
        organisation=row["organisation"],
        name=row["name"],
        description=row["description"],
        session=row["session"],
        created_by=row["principal"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        archived_at=row["archived_at"],
    )


@contextmanager
def _unique_name(name: str) -> Iterator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise Conflict(
            f"A session template named {name!r} already exists.", help_text="Choose another name."
        ) from error
