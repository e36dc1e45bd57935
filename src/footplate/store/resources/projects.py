"""Stores projects and workspaces (ordered lists of projects), and loads the projects of a session."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from typing import Any

import asyncpg

from footplate.domain import ids
from footplate.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.projects.location_permission_rules import (
    build_change_entry,
    check_archiving,
    check_creation,
    check_update,
    project_location,
)
from footplate.domain.projects.project import (
    MAX_PROJECTS,
    BaseCommit,
    Project,
    ProjectSelection,
    ProjectUnit,
    SessionProject,
    Trust,
    Workspace,
)
from footplate.store.database import SQL, Connection, bind
from footplate.store.resources.audit_trail import AuditUnitOfWork
from footplate.store.row_mapping import Row

_DUPLICATE_MESSAGES = {
    "projects_named": "A project named {name!r} already exists.",
    "projects_placed": "A project at this path already exists.",
    "workspaces_named": "A workspace named {name!r} already exists.",
}


def load_project(row: Row) -> Project:
    values: dict[str, Any] = {field.name: row[field.name] for field in fields(Project)}
    values["trust"] = Trust(row["trust"])
    return Project(**values)


def load_workspace(row: Row) -> Workspace:
    return Workspace(**{field.name: row[field.name] for field in fields(Workspace)})


class ProjectUnitOfWork(AuditUnitOfWork, ProjectUnit):
    """The methods of a unit of work that change projects and workspaces."""

    _connection: Connection

    async def create_project(
        self,
        principal: Principal,
        *,
        name: str,
        path: str | None,
        url: str | None,
        branch: str | None,
        trust: Trust,
        metadata: dict[str, str],
        permissions: JsonObject | None = None,
        setup: str | None = None,
        cached_directories: Sequence[str] | None = None,
    ) -> Project:
        location = project_location(path, url)
        rules = await self._lock_location(principal, location)
        check_creation(principal, rules)
        async with _unique_name(name):
            row = await self._connection.fetchrow(
                *bind(
                    "insert_project",
                    id=ids.new_id(ids.PROJECT),
                    organisation=principal.organisation,
                    name=name,
                    path=path,
                    url=url,
                    branch=branch,
                    trust=trust,
                    metadata=metadata,
                    permissions=rules,
                    place=location,
                    setup=setup,
                    cached_directories=cached_directories,
                )
            )
        new = load_project(_ensure_found(row, "project", ""))
        if permissions is not None:
            new = await self._set_rules(new, location, permissions)
        await self.record(principal, build_change_entry("create", new))
        return new

    async def update_project(
        self, principal: Principal, project_id: str, change: Callable[[Project], Project]
    ) -> Project:
        old = await self._lock_project(principal, project_id)
        _ensure_not_archived("project", old)
        new = change(old)
        check_update(principal, old, new)
        async with _unique_name(new.name):
            row = await self._connection.fetchrow(
                *bind(
                    "update_project",
                    id=project_id,
                    name=new.name,
                    branch=new.branch,
                    trust=new.trust,
                    metadata=new.metadata,
                    setup=new.setup,
                    cached_directories=new.cached_directories,
                )
            )
        stored = load_project(_ensure_found(row, "project", project_id))
        if new.permissions != old.permissions:
            stored = await self._set_rules(stored, project_location(old.path, old.url), new.permissions)
        await self.record(principal, build_change_entry("update", stored, old))
        return stored

    async def archive_project(self, principal: Principal, project_id: str) -> Project:
        old = await self._lock_project(principal, project_id)
        check_archiving(principal, old)
        row = await self._connection.fetchrow(SQL["archive_project"], project_id, principal.organisation)
        new = load_project(_ensure_found(row, "project", project_id))
        await self._connection.execute(SQL["remove_caches_of_project"], project_id)
        await self.record(principal, build_change_entry("archive", new, old))
        return new

    async def _lock_project(self, principal: Principal, project_id: str) -> Project:
        """Locks the project and its location, because changes to other projects there also write its rules."""
        row = await self._connection.fetchrow(SQL["project"], project_id, principal.organisation)
        found = load_project(_ensure_found(row, "project", project_id))
        await self._lock_location(principal, project_location(found.path, found.url))
        row = await self._connection.fetchrow(SQL["lock_project"], project_id, principal.organisation)
        return load_project(_ensure_found(row, "project", project_id))

    async def _lock_location(self, principal: Principal, location: str) -> JsonObject:
        """Locks the location (path or URL) and returns its rules."""
        await self._connection.execute(SQL["lock_place"], principal.organisation, location)
        row = await self._connection.fetchrow(SQL["rules_of_place"], principal.organisation, location)
        return {} if row is None else row["permissions"]

    async def _set_rules(self, project: Project, location: str, permissions: JsonObject) -> Project:
        await self._connection.execute(SQL["set_rules_of_place"], project.organisation, location, permissions)
        return replace(project, permissions=permissions)

    async def create_workspace(
        self, principal: Principal, *, name: str, project_ids: Sequence[str], metadata: dict[str, str]
    ) -> Workspace:
        await check_usable(self._connection, principal, project_ids)
        async with _unique_name(name):
            row = await self._connection.fetchrow(
                SQL["insert_workspace"],
                ids.new_id(ids.WORKSPACE),
                principal.organisation,
                name,
                list(project_ids),
                metadata,
            )
        return load_workspace(_ensure_found(row, "workspace", ""))

    async def update_workspace(
        self, principal: Principal, workspace_id: str, change: Callable[[Workspace], Workspace]
    ) -> Workspace:
        row = await self._connection.fetchrow(SQL["lock_workspace"], workspace_id, principal.organisation)
        old = load_workspace(_ensure_found(row, "workspace", workspace_id))
        _ensure_not_archived("workspace", old)
        new = change(old)
        if new.project_ids != old.project_ids:
            await check_usable(self._connection, principal, new.project_ids)
        async with _unique_name(new.name):
            row = await self._connection.fetchrow(
                SQL["update_workspace"], workspace_id, new.name, list(new.project_ids), new.metadata
            )
        return load_workspace(_ensure_found(row, "workspace", workspace_id))

    async def archive_workspace(self, principal: Principal, workspace_id: str) -> Workspace:
        row = await self._connection.fetchrow(SQL["archive_workspace"], workspace_id, principal.organisation)
        return load_workspace(_ensure_found(row, "workspace", workspace_id))


async def choose_projects(connection: Connection, principal: Principal, choice: ProjectSelection) -> Sequence[str]:
    """Returns the project ids of a new session in order, and checks that they are usable."""
    if choice.workspace_id is None:
        await check_usable(connection, principal, choice.project_ids)
        check_in_scope(principal, choice.project_ids)
        return choice.project_ids
    row = await connection.fetchrow(SQL["workspace"], choice.workspace_id, principal.organisation)
    found = load_workspace(_ensure_found(row, "workspace", choice.workspace_id))
    _ensure_not_archived("workspace", found)
    await check_usable(connection, principal, found.project_ids)
    check_in_scope(principal, found.project_ids)
    return found.project_ids


def check_in_scope(principal: Principal, project_ids: Sequence[str]) -> None:
    """Raises unless the session works only in projects that the principal's key is restricted to."""
    if principal.project_ids is None:
        return
    for project_id in project_ids:
        if project_id not in principal.project_ids:
            raise NotFound("project", project_id)
    if not project_ids:
        raise Forbidden(
            "This API key is restricted to projects, and the session has no project.",
            help_text="Name one of its projects in project_ids, or use another key.",
        )


async def check_usable(connection: Connection, principal: Principal, project_ids: Sequence[str]) -> None:
    """Raises if a project does not exist in the organisation or is archived, or if the list is too long or has
    duplicates.
    """
    if not project_ids:
        return
    if len(set(project_ids)) != len(project_ids) or len(project_ids) > MAX_PROJECTS:
        raise InvalidRequest(
            f"project_ids: must have at most {MAX_PROJECTS} projects, without duplicates",
            field="project_ids",
            help_text="Remove duplicates, or send fewer projects.",
        )
    rows = await connection.fetch(SQL["projects_of"], list(project_ids), principal.organisation)
    found = {row["id"]: load_project(row) for row in rows}
    for project_id in project_ids:
        if project_id not in found:
            raise NotFound("project", project_id)
        _ensure_not_archived("project", found[project_id])


async def load_session_projects(
    connection: Connection, organisation: str, project_ids: Sequence[str], bases: Mapping[str, JsonObject]
) -> tuple[SessionProject, ...]:
    """Returns the session's projects for a turn: their current state, with the bases that the session started from."""
    if not project_ids:
        return ()
    rows = await connection.fetch(SQL["projects_of"], list(project_ids), organisation)
    found = {row["id"]: row for row in rows}
    return tuple(
        session_project(found[project_id], BaseCommit.load(bases.get(project_id))) for project_id in project_ids
    )


def session_project(row: Row, base: BaseCommit | None) -> SessionProject:
    return SessionProject(
        id=row["id"],
        name=row["name"] if base is None else base.name,
        trust=Trust(row["trust"]),
        path=row["path"],
        url=row["url"],
        branch=row["branch"],
        base=base,
        setup=row["setup"],
        cached_directories=None if row["cached_directories"] is None else tuple(row["cached_directories"]),
    )


def check_session_project(session: Row, project_id: str) -> str:
    """Returns `project_id`. Raises `InvalidRequest` if it is not one of the session's projects."""
    if project_id not in session["project_ids"]:
        raise InvalidRequest(
            f"project_id: {project_id!r} is not a project of session {session['id']!r}",
            field="project_id",
            help_text="Use one of the session's `project_ids`.",
        )
    return project_id


def _ensure_not_archived(noun: str, found: Project | Workspace) -> None:
    if found.archived_at is not None:
        raise InvalidRequest(f"{noun.capitalize()} {found.id!r} is archived.", help_text=f"Choose another {noun}.")


def _ensure_found(row: Row | None, noun: str, item_id: str) -> Row:
    if row is None:
        raise NotFound(noun, item_id)
    return row


@asynccontextmanager
async def _unique_name(name: str) -> AsyncIterator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        message = _DUPLICATE_MESSAGES.get(str(error.constraint_name), "This name already exists.")
        raise Conflict(message.format(name=name), help_text="Use the existing one, or choose another name.") from error
