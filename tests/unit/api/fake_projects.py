"""In-memory fakes of projects and workspaces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from footplate.domain import ids
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.projects.location_permission_rules import (
    check_archiving,
    check_creation,
    check_update,
    project_location,
)
from footplate.domain.projects.project import Project, ProjectSelection, Trust, Workspace


@dataclass
class ProjectWorld:
    projects: dict[str, Project] = field(default_factory=dict)
    workspaces: dict[str, Workspace] = field(default_factory=dict)

    def project(self, principal: Principal, project_id: str) -> Project:
        found = self.projects.get(project_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("project", project_id)
        return found

    def workspace(self, principal: Principal, workspace_id: str) -> Workspace:
        found = self.workspaces.get(workspace_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("workspace", workspace_id)
        return found

    def select_projects(self, principal: Principal, choice: ProjectSelection) -> Sequence[str]:
        asked = choice.project_ids
        if choice.workspace_id is not None:
            asked = self.workspace(principal, choice.workspace_id).project_ids
        return [self.project(principal, project_id).id for project_id in asked]


class HasProjects(Protocol):
    projects: ProjectWorld

    def now(self) -> datetime: ...


class FakeProjectUnit:
    def __init__(self, world: HasProjects) -> None:
        self._clock = world
        self._projects = world.projects

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
        if any(known.name == name and known.archived_at is None for known in self._projects.projects.values()):
            raise Conflict(f"There is a project named {name!r} already.")
        location = project_location(path, url)
        before = [one for one in self._projects.projects.values() if project_location(one.path, one.url) == location]
        rules = before[-1].permissions if before else {}
        check_creation(principal, rules)
        now = self._clock.now()
        project = Project(
            id=ids.new_id(ids.PROJECT),
            organisation=principal.organisation,
            name=name,
            path=path,
            url=url,
            branch=branch,
            trust=trust,
            metadata=metadata,
            created_at=now,
            updated_at=now,
            permissions=rules if permissions is None else permissions,
            setup=setup,
            cached_directories=cached_directories,
        )
        self._projects.projects[project.id] = project
        return project

    async def update_project(
        self, principal: Principal, project_id: str, change: Callable[[Project], Project]
    ) -> Project:
        old = self._projects.project(principal, project_id)
        project = change(old)
        check_update(principal, old, project)
        self._projects.projects[project.id] = project
        return project

    async def archive_project(self, principal: Principal, project_id: str) -> Project:
        now = self._clock.now()
        check_archiving(principal, self._projects.project(principal, project_id))
        return await self.update_project(principal, project_id, lambda old: replace(old, archived_at=now))

    async def create_workspace(
        self, principal: Principal, *, name: str, project_ids: Sequence[str], metadata: dict[str, str]
    ) -> Workspace:
        now = self._clock.now()
        workspace = Workspace(
            id=ids.new_id(ids.WORKSPACE),
            organisation=principal.organisation,
            name=name,
            project_ids=self._projects.select_projects(principal, ProjectSelection(project_ids)),
            metadata=metadata,
            created_at=now,
            updated_at=now,
        )
        self._projects.workspaces[workspace.id] = workspace
        return workspace

    async def update_workspace(
        self, principal: Principal, workspace_id: str, change: Callable[[Workspace], Workspace]
    ) -> Workspace:
        workspace = change(self._projects.workspace(principal, workspace_id))
        self._projects.workspaces[workspace.id] = workspace
        return workspace

    async def archive_workspace(self, principal: Principal, workspace_id: str) -> Workspace:
        now = self._clock.now()
        return await self.update_workspace(principal, workspace_id, lambda old: replace(old, archived_at=now))
