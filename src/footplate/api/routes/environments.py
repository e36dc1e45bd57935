"""`/v1/environments`: creates, lists, updates, archives and deletes environments. An environment defines where an
agent's commands run and what they can access.
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
from footplate.api.wire import environments, response_models
from footplate.api.wire.agent_and_environment_queries import ListEnvironments, NoParameters
from footplate.api.wire.environments import EnvironmentCreate, EnvironmentUpdate
from footplate.api.wire.json_responses import json_response
from footplate.domain.pagination import Page
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/environments", "environments")


@router.post("", response_model=response_models.Environment, openapi_extra=describe_request(body=EnvironmentCreate))
async def create_environment(request: Request, principal: Caller) -> Response:
    body, raw = await read_body(request, EnvironmentCreate)
    config = environments.build_config(body.config, get_services(request).backends)

    async def work(unit: UnitOfWork) -> ChangeResult:
        record = await unit.create_environment(
            principal,
            name=body.name,
            description=body.description,
            config=config,
            metadata=body.metadata,
        )
        return environments.serialize_environment(record), None

    return await execute_change(request, principal, raw, work, audit_action="environment.create")


@router.get(
    "",
    response_model=response_models.Listing[response_models.Environment],
    openapi_extra=describe_request(query=ListEnvironments),
)
async def list_environments(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListEnvironments)
    page = Page(limit=query.limit, include_archived=query.include_archived)
    read = partial(get_services(request).reads.environments, principal)
    return await pagination.list_newest_first(
        "environments", page, query.page, read, environments.serialize_environment
    )


@router.get("/{environment_id}", response_model=response_models.Environment)
async def retrieve_environment(request: Request, environment_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(
        environments.serialize_environment(await get_services(request).reads.environment(principal, environment_id))
    )


@router.post(
    "/{environment_id}",
    response_model=response_models.Environment,
    openapi_extra=describe_request(body=EnvironmentUpdate),
)
async def update_environment(request: Request, environment_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, EnvironmentUpdate)
    backends = get_services(request).backends

    async def work(unit: UnitOfWork) -> ChangeResult:
        record = await unit.update_environment(
            principal, environment_id, environments.make_environment_update(body, backends)
        )
        return environments.serialize_environment(record), None

    return await execute_change(request, principal, raw, work, audit_action="environment.update")


@router.post("/{environment_id}/archive", response_model=response_models.Environment)
async def archive_environment(request: Request, environment_id: str, principal: Caller) -> Response:
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        return environments.serialize_environment(await unit.archive_environment(principal, environment_id)), None

    return await execute_change(request, principal, raw, work, audit_action="environment.archive")


@router.delete("/{environment_id}", response_model=response_models.Deleted)
async def delete_environment(request: Request, environment_id: str, principal: Caller) -> Response:
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.delete_environment(principal, environment_id)
        return {"id": environment_id, "type": "environment_deleted"}, None

    return await execute_change(request, principal, raw, work, audit_action="environment.delete")
