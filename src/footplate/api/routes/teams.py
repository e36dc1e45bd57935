"""`/v1/teams`: creates, lists and changes the teams of the organisation. A session can be visible to one team."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import members, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.members import ListTeams, TeamCreate, TeamResponse, TeamUpdate
from footplate.domain.pagination import Page
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/teams", "teams")


@router.post("", response_model=TeamResponse, openapi_extra=describe_request(body=TeamCreate))
async def create_team(request: Request, principal: Caller) -> Response:
    body, raw = await read_body(request, TeamCreate)

    async def work(unit: UnitOfWork) -> ChangeResult:
        team = await unit.create_team(principal, name=body.name, member_ids=body.member_ids)
        return members.serialize_team(team), None

    return await execute_change(request, principal, raw, work)


@router.get("", response_model=response_models.Listing[TeamResponse], openapi_extra=describe_request(query=ListTeams))
async def list_teams(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListTeams)
    read = partial(get_services(request).reads.teams, principal)
    return await pagination.list_newest_first(
        "teams", Page(limit=query.limit), query.page, read, members.serialize_team
    )


@router.get("/{team_id}", response_model=TeamResponse)
async def retrieve_team(request: Request, team_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(members.serialize_team(await get_services(request).reads.team(principal, team_id)))


@router.post("/{team_id}", response_model=TeamResponse, openapi_extra=describe_request(body=TeamUpdate))
async def update_team(request: Request, team_id: str, principal: Caller) -> Response:
    """Adds and removes members. It takes effect within 5 seconds on every replica."""
    body, raw = await read_body(request, TeamUpdate)

    async def work(unit: UnitOfWork) -> ChangeResult:
        team = await unit.update_team(principal, team_id, add=body.add_member_ids, remove=body.remove_member_ids)
        return members.serialize_team(team), None

    return await execute_change(request, principal, raw, work)
