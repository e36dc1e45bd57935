"""Wire models of projects and workspaces: request bodies, list filters and responses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.policy.permissions import Permissions, dump_permissions, serialize_permissions
from footplate.api.wire.request_base import (
    NOT_NULLABLE,
    Body,
    Id,
    Metadata,
    MetadataPatch,
    Parameters,
    Text,
    merge_metadata,
    optional_timestamp,
    timestamp,
)
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.projects.project import (
    MAX_PROJECTS,
    NAME_PATTERN,
    Project,
    ProjectSelection,
    Trust,
    Workspace,
    check_branch,
    check_url,
    derive_name,
    normalize_path,
    read_base_commits,
    read_subdirectory,
    resolve_projects_root,
)
from footplate.domain.projects.setup import (
    MAX_CACHED_DIRECTORIES,
    MAX_COMMAND_CHARACTERS,
    check_cached_directories,
    check_command,
)

Name = Annotated[str, StringConstraints(pattern=rf"^{NAME_PATTERN.pattern}$", max_length=64)]
Location = Annotated[Text, StringConstraints(min_length=1, max_length=2048)]
TrustName = Literal["nothing", "instructions", "all"]
Ids = Annotated[list[Id], Field(max_length=MAX_PROJECTS)]
Setup = Annotated[
    Text,
    Field(
        max_length=MAX_COMMAND_CHARACTERS,
        description="Command that prepares each session's tree. It runs once in each tree and must be repeatable.",
    ),
]
CachedDirectories = Annotated[
    list[Text],
    Field(
        max_length=MAX_CACHED_DIRECTORIES,
        description="Ignored directories that the setup leaves and that are cached. Default: common names, such as "
        "node_modules and .venv. An empty list: none.",
    ),
]
OrderedIds = Annotated[Ids, Field(description="The order matters: the first project is the working directory.")]


class ProjectCreate(Body):
    """Requires either a path or a URL."""

    path: Annotated[
        Location | None,
        Field(
            description="A path below the server's projects root. A repository is created on first use if none exists."
        ),
    ] = None
    url: Annotated[Location | None, Field(description="Repository that workers fetch when a session needs it.")] = None
    name: Annotated[Name | None, Field(description="Default: derived from the path or the URL.")] = None
    branch: Annotated[
        Location | None,
        Field(description="Branch that sessions start from. Default: the branch checked out in the repository."),
    ] = None
    trust: Annotated[
        TrustName, Field(description="Which of the project's own files may configure an agent's harness.")
    ] = "nothing"
    metadata: Metadata = Field(default_factory=dict)
    permissions: Permissions | None = None
    setup: Setup | None = None
    cached_directories: CachedDirectories | None = None


class ProjectUpdate(Body):
    """Omitted fields keep their values. The location of the repository cannot be changed."""

    name: Name = NOT_NULLABLE
    branch: Location | None = None
    trust: TrustName = NOT_NULLABLE
    metadata: MetadataPatch | None = None
    permissions: Permissions | None = None
    setup: Setup | None = None
    cached_directories: CachedDirectories | None = None


class WorkspaceCreate(Body):
    name: Name
    project_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_PROJECTS)]
    metadata: Metadata = Field(default_factory=dict)


class WorkspaceUpdate(Body):
    """Existing sessions keep the projects that they started with."""

    name: Name = NOT_NULLABLE
    project_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_PROJECTS)] = NOT_NULLABLE
    metadata: MetadataPatch | None = None


class ListProjects(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    include_archived: bool = False
    path: Annotated[Location | None, Field(description="Only the project at this path.")] = None


class ListWorkspaces(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    include_archived: bool = False


def parse_location(body: ProjectCreate, root: str, organisation: str) -> tuple[str | None, str | None]:
    """Returns the path and the URL, one of which is None."""
    if (body.path is None) == (body.url is None):
        raise InvalidRequest(
            "path: a project requires either a path or a url", field="path", help_text="Send exactly one of the two."
        )
    if body.path is not None:
        return normalize_path(body.path, resolve_projects_root(root, organisation)), None
    return None, check_url(body.url or "")


def choose_name(body: ProjectCreate, path: str | None, url: str | None) -> str:
    return body.name or derive_name(path or url or "")


def parse_branch(body: ProjectCreate | ProjectUpdate) -> str | None:
    return None if body.branch is None else check_branch(body.branch)


def parse_setup(body: ProjectCreate | ProjectUpdate) -> tuple[str | None, Sequence[str] | None]:
    """Returns the setup command and the cached directories."""
    return (
        None if body.setup is None else check_command(body.setup),
        None if body.cached_directories is None else check_cached_directories(body.cached_directories),
    )


def make_project_update(body: ProjectUpdate) -> Callable[[Project], Project]:
    sent_fields = body.model_fields_set
    branch = parse_branch(body)
    setup, cached_directories = parse_setup(body)

    def change(project: Project) -> Project:
        return replace(
            project,
            name=body.name if "name" in sent_fields else project.name,
            branch=branch if "branch" in sent_fields else project.branch,
            trust=Trust(body.trust) if "trust" in sent_fields else project.trust,
            metadata=merge_metadata(project.metadata, body.metadata or {}),
            permissions=dump_permissions(body.permissions) if "permissions" in sent_fields else project.permissions,
            setup=setup if "setup" in sent_fields else project.setup,
            cached_directories=cached_directories
            if "cached_directories" in sent_fields
            else project.cached_directories,
        )

    return change


def make_workspace_update(body: WorkspaceUpdate) -> Callable[[Workspace], Workspace]:
    sent_fields = body.model_fields_set

    def change(workspace: Workspace) -> Workspace:
        return replace(
            workspace,
            name=body.name if "name" in sent_fields else workspace.name,
            project_ids=body.project_ids if "project_ids" in sent_fields else workspace.project_ids,
            metadata=merge_metadata(workspace.metadata, body.metadata or {}),
        )

    return change


def parse_project_choice(
    project_ids: list[str] | None, workspace_id: str | None, context: Mapping[str, Json]
) -> ProjectSelection:
    if project_ids and workspace_id is not None:
        raise InvalidRequest(
            "workspace_id: cannot be combined with project_ids",
            field="workspace_id",
            help_text="Send one of the two, or neither for a session without a project.",
        )
    if (project_ids or workspace_id is not None) and "directory" in context:
        raise InvalidRequest(
            "context.directory: cannot be combined with projects",
            field="context.directory",
            help_text="Send either a project (`project_ids` or `workspace_id`) or `context.directory`, not both.",
        )
    if project_ids or workspace_id is not None:
        read_subdirectory(context)
        read_base_commits(context)
    return ProjectSelection(project_ids or (), workspace_id)


def serialize_project(project: Project) -> JsonObject:
    return {
        "id": project.id,
        "type": "project",
        "name": project.name,
        "path": project.path,
        "url": project.url,
        "branch": project.branch,
        "trust": project.trust.value,
        "permissions": serialize_permissions(project.permissions),
        "setup": project.setup,
        "cached_directories": None if project.cached_directories is None else [*project.cached_directories],
        "metadata": {**project.metadata},
        "created_at": timestamp(project.created_at),
        "updated_at": timestamp(project.updated_at),
        "archived_at": optional_timestamp(project.archived_at),
    }


def serialize_workspace(workspace: Workspace) -> JsonObject:
    return {
        "id": workspace.id,
        "type": "workspace",
        "name": workspace.name,
        "project_ids": [*workspace.project_ids],
        "metadata": {**workspace.metadata},
        "created_at": timestamp(workspace.created_at),
        "updated_at": timestamp(workspace.updated_at),
        "archived_at": optional_timestamp(workspace.archived_at),
    }
