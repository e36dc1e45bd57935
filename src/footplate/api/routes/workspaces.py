"""`/v1/workspaces`: creates, lists, updates and archives workspaces. A workspace is an ordered list of projects, and a
session can be created with all of them.
"""

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
from footplate.api.wire.projects import ListWorkspaces, WorkspaceCreate, WorkspaceUpdate
from footplate.domain.pagination import Page
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/workspaces", "workspaces")


@router.post("", response_model=response_models.Workspace, openapi_extra=describe_request(body=WorkspaceCreate))
async def create_workspace(request: Request, principal: Caller) -> Response:
    body, raw = await read_body(request, WorkspaceCreate)

    async def work(unit: UnitOfWork) -> ChangeResult:
        workspace = await unit.create_workspace(
            principal, name=body.name, project_ids=body.project_ids, metadata=body.metadata
        )
        return projects.serialize_workspace(workspace), None

    return await execute_change(request, principal, raw, work, audit_action="workspace.create")


@router.get(
    "",
    response_model=response_models.Listing[response_models.Workspace],
    openapi_extra=describe_request(query=ListWorkspaces),
)
async def list_workspaces(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListWorkspaces)
    page = Page(limit=query.limit, include_archived=query.include_archived)
    read = partial(get_services(request).reads.workspaces, principal)
    return await pagination.list_newest_first("workspaces", page, query.page, read, projects.serialize_workspace)


@router.get("/{workspace_id}", response_model=response_models.Workspace)
async def retrieve_workspace(request: Request, workspace_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(
        projects.serialize_workspace(await get_services(request).reads.workspace(principal, workspace_id))
    )


@router.post(
    "/{workspace_id}",
    response_model=response_models.Workspace,
    openapi_extra=describe_request(body=WorkspaceUpdate),
)
async def update_workspace(request: Request, workspace_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, WorkspaceUpdate)

    async def work(unit: UnitOfWork) -> ChangeResult:
        changed = await unit.update_workspace(principal, workspace_id, projects.make_workspace_update(body))
        return projects.serialize_workspace(changed), None

    return await execute_change(request, principal, raw, work, audit_action="workspace.update")


@router.post("/{workspace_id}/archive", response_model=response_models.Workspace)
async def archive_workspace(request: Request, workspace_id: str, principal: Caller) -> Response:
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        return projects.serialize_workspace(await unit.archive_workspace(principal, workspace_id)), None

    return await execute_change(request, principal, raw, work, audit_action="workspace.archive")
