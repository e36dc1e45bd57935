"""`/v1/environments`: configurations of the environments in which commands run."""

from fastapi import Request
from starlette.responses import Response

from footplate.api import cursors
from footplate.api.auth import Asking
from footplate.api.changes import Changed, change
from footplate.api.openapi import takes
from footplate.api.replies import listing, reply
from footplate.api.requests import read_body, read_nothing, read_query
from footplate.api.routing import router_of
from footplate.api.services import services_of
from footplate.api.wire import answers, environments
from footplate.api.wire.environments import EnvironmentCreate, EnvironmentUpdate
from footplate.api.wire.lists import ListEnvironments, NoParameters
from footplate.domain.pages import Page
from footplate.domain.services import Unit

router = router_of("/v1/environments", "environments")


@router.post("", response_model=answers.Environment, openapi_extra=takes(body=EnvironmentCreate))
async def create_environment(request: Request, principal: Asking) -> Response:
    body, raw = await read_body(request, EnvironmentCreate)
    config = environments.configuration(body.config, services_of(request).backend)

    async def work(unit: Unit) -> Changed:
        record = await unit.create_environment(
            principal,
            name=body.name,
            description=body.description,
            config=config,
            metadata=body.metadata,
        )
        return environments.answer(record), None

    return await change(request, principal, raw, work, audited="environment.create")


@router.get("", response_model=answers.Listing[answers.Environment], openapi_extra=takes(query=ListEnvironments))
async def list_environments(request: Request, principal: Asking) -> Response:
    query = read_query(request, ListEnvironments)
    cursor = cursors.read_row("environments", query.page, "desc")
    page = Page(
        limit=query.limit + 1,
        after=cursor.place if cursor else None,
        include_archived=query.include_archived,
    )
    rows = await services_of(request).reads.environments(principal, page)
    kept, around = cursors.cut(
        "environments", rows, lambda row: (row.created_at, row.id), limit=query.limit, order="desc", cursor=cursor
    )
    return listing([environments.answer(row) for row in kept], next_page=around.next_page)


@router.get("/{environment_id}", response_model=answers.Environment)
async def retrieve_environment(request: Request, environment_id: str, principal: Asking) -> Response:
    read_query(request, NoParameters)
    return reply(environments.answer(await services_of(request).reads.environment(principal, environment_id)))


@router.post("/{environment_id}", response_model=answers.Environment, openapi_extra=takes(body=EnvironmentUpdate))
async def update_environment(request: Request, environment_id: str, principal: Asking) -> Response:
    body, raw = await read_body(request, EnvironmentUpdate)
    backend = services_of(request).backend

    async def work(unit: Unit) -> Changed:
        record = await unit.update_environment(principal, environment_id, environments.change_of(body, backend))
        return environments.answer(record), None

    return await change(request, principal, raw, work, audited="environment.update")


@router.post("/{environment_id}/archive", response_model=answers.Environment)
async def archive_environment(request: Request, environment_id: str, principal: Asking) -> Response:
    raw = await read_nothing(request)

    async def work(unit: Unit) -> Changed:
        return environments.answer(await unit.archive_environment(principal, environment_id)), None

    return await change(request, principal, raw, work, audited="environment.archive")


@router.delete("/{environment_id}", response_model=answers.Deleted)
async def delete_environment(request: Request, environment_id: str, principal: Asking) -> Response:
    raw = await read_nothing(request)

    async def work(unit: Unit) -> Changed:
        await unit.delete_environment(principal, environment_id)
        return {"id": environment_id, "type": "environment_deleted"}, None

    return await change(request, principal, raw, work, audited="environment.delete")
