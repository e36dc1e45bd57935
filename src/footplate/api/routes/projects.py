"""`/v1/projects`: the repositories that sessions work on."""

from fastapi import Request
from starlette.responses import Response

from footplate.api import cursors
from footplate.api.auth import Caller
from footplate.api.changes import Changed, change
from footplate.api.openapi import describe_request
from footplate.api.replies import list_response, json_response
from footplate.api.requests import read_body, read_nothing, read_query
from footplate.api.routing import router_of
from footplate.api.services import get_services
from footplate.api.wire import answers, permissions, projects
from footplate.api.wire.lists import NoParameters
from footplate.api.wire.projects import ListProjects, ProjectCreate, ProjectUpdate
from footplate.domain.pages import Page
from footplate.domain.permissions import check_writer
from footplate.domain.projects import Project, Trust, path_of, root_of
from footplate.domain.services import Unit

router = router_of("/v1/projects", "projects")


@router.post("", response_model=answers.Project, openapi_extra=describe_request(body=ProjectCreate))
async def create_project(request: Request, principal: Caller) -> Response:
    """Creates a project. The repository is read, created or fetched later, by the worker of the first session that
    needs it.
    """
    body, raw = await read_body(request, ProjectCreate)
    permissions.check_hosts(body.permissions, get_services(request).hook_access)
    path, url = projects.place_of(body, get_services(request).projects_root, principal.organisation)
    branch = projects.branch_for(body)
    stored = permissions.stored(body.permissions)
    if permissions.differ(stored, {}):
        check_writer(principal, "a project")

    async def work(unit: Unit) -> Changed:
        project = await unit.create_project(
            principal,
            name=projects.name_for(body, path, url),
            path=path,
            url=url,
            branch=branch,
            trust=Trust(body.trust),
            metadata=body.metadata,
            permissions=None if body.permissions is None else stored,
        )
        return projects.answer(project), None

    return await change(request, principal, raw, work)


@router.get("", response_model=answers.Listing[answers.Project], openapi_extra=describe_request(query=ListProjects))
async def list_projects(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListProjects)
    services = get_services(request)
    root = services.projects_root
    path = None if query.path is None else path_of(query.path, root_of(root, principal.organisation))
    cursor = cursors.decode_row_cursor("projects", query.page, "desc")
    page = Page(limit=query.limit + 1, after=cursor.position if cursor else None, include_archived=query.include_archived)
    rows = await services.reads.projects(principal, page, path=path)
    page_rows, page_cursors = cursors.cut_page(
        "projects", rows, lambda row: (row.created_at, row.id), limit=query.limit, order="desc", cursor=cursor
    )
    return list_response([projects.answer(row) for row in page_rows], next_page=page_cursors.next_page)


@router.get("/{project_id}", response_model=answers.Project)
async def retrieve_project(request: Request, project_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(projects.answer(await get_services(request).reads.project(principal, project_id)))


@router.post("/{project_id}", response_model=answers.Project, openapi_extra=describe_request(body=ProjectUpdate))
async def update_project(request: Request, project_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, ProjectUpdate)
    permissions.check_hosts(body.permissions, get_services(request).hook_access)
    update = projects.change_of_project(body)

    def checked_update(project: Project) -> Project:
        new = update(project)
        if permissions.differ(new.permissions, project.permissions):
            check_writer(principal, "a project")
        return new

    async def work(unit: Unit) -> Changed:
        return projects.answer(await unit.update_project(principal, project_id, checked_update)), None

    return await change(request, principal, raw, work)


@router.post("/{project_id}/archive", response_model=answers.Project)
async def archive_project(request: Request, project_id: str, principal: Caller) -> Response:
    """Archives the project: new sessions cannot use it. Existing sessions continue, and the repository does not
    change.
    """
    raw = await read_nothing(request)

    async def work(unit: Unit) -> Changed:
        return projects.answer(await unit.archive_project(principal, project_id)), None

    return await change(request, principal, raw, work)
