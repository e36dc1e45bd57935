"""`/v1/projects`: creates, lists, updates and archives projects. A project is a repository that sessions work on."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import projects, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.policy import permissions
from footplate.api.wire.projects import ListProjects, ProjectCreate, ProjectUpdate
from footplate.domain.pagination import Page
from footplate.domain.policy.permissions import check_policy_writer
from footplate.domain.ports.api import UnitOfWork
from footplate.domain.projects.project import Project, Trust, normalize_path, resolve_projects_root

router = create_router("/v1/projects", "projects")


@router.post("", response_model=response_models.Project, openapi_extra=describe_request(body=ProjectCreate))
async def create_project(request: Request, principal: Caller) -> Response:
    """Creates a project. The repository is not accessed yet: a worker reads, creates or fetches it when a session
    first needs it.
    """
    body, raw = await read_body(request, ProjectCreate)
    permissions.check_hosts(body.permissions, get_services(request).hook_access)
    path, url = projects.parse_location(body, get_services(request).projects_root, principal.organisation)
    branch = projects.parse_branch(body)
    setup, cached_directories = projects.parse_setup(body)
    stored = permissions.dump_permissions(body.permissions)
    if permissions.rules_differ(stored, {}):
        check_policy_writer(principal, "a project")

    async def work(unit: UnitOfWork) -> ChangeResult:
        project = await unit.create_project(
            principal,
            name=projects.choose_name(body, path, url),
            path=path,
            url=url,
            branch=branch,
            trust=Trust(body.trust),
            metadata=body.metadata,
            permissions=None if body.permissions is None else stored,
            setup=setup,
            cached_directories=cached_directories,
        )
        return projects.serialize_project(project), None

    return await execute_change(request, principal, raw, work)


@router.get(
    "",
    response_model=response_models.Listing[response_models.Project],
    openapi_extra=describe_request(query=ListProjects),
)
async def list_projects(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListProjects)
    services = get_services(request)
    root = services.projects_root
    path = (
        None if query.path is None else normalize_path(query.path, resolve_projects_root(root, principal.organisation))
    )
    page = Page(limit=query.limit, include_archived=query.include_archived)
    read = partial(services.reads.projects, principal, path=path)
    return await pagination.list_newest_first("projects", page, query.page, read, projects.serialize_project)


@router.get("/{project_id}", response_model=response_models.Project)
async def retrieve_project(request: Request, project_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(projects.serialize_project(await get_services(request).reads.project(principal, project_id)))


@router.post(
    "/{project_id}", response_model=response_models.Project, openapi_extra=describe_request(body=ProjectUpdate)
)
async def update_project(request: Request, project_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, ProjectUpdate)
    permissions.check_hosts(body.permissions, get_services(request).hook_access)
    update = projects.make_project_update(body)

    def checked_update(project: Project) -> Project:
        new = update(project)
        if permissions.rules_differ(new.permissions, project.permissions):
            check_policy_writer(principal, "a project")
        return new

    async def work(unit: UnitOfWork) -> ChangeResult:
        return projects.serialize_project(await unit.update_project(principal, project_id, checked_update)), None

    return await execute_change(request, principal, raw, work)


@router.post("/{project_id}/archive", response_model=response_models.Project)
async def archive_project(request: Request, project_id: str, principal: Caller) -> Response:
    """Archives the project: new sessions cannot use it. Existing sessions continue, and the repository does not
    change.
    """
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        return projects.serialize_project(await unit.archive_project(principal, project_id)), None

    return await execute_change(request, principal, raw, work)
