"""`/v1/members`: creates, lists, changes and disables the people and service accounts of the organisation."""

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
from footplate.api.wire.members import ListMembers, MemberCreate, MemberResponse, MemberUpdate
from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.organisations.principals import PrincipalKind
from footplate.domain.organisations.roles import Permission, permissions_of
from footplate.domain.pagination import Page
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/members", "members")


@router.post("", response_model=MemberResponse, openapi_extra=describe_request(body=MemberCreate))
async def create_member(request: Request, principal: Caller) -> Response:
    body, raw = await read_body(request, MemberCreate)

    async def work(unit: UnitOfWork) -> ChangeResult:
        member = await unit.create_member(principal, kind=PrincipalKind(body.kind), name=body.name, roles=body.roles)
        return members.serialize_member(member), None

    return await execute_change(request, principal, raw, work)


@router.get(
    "", response_model=response_models.Listing[MemberResponse], openapi_extra=describe_request(query=ListMembers)
)
async def list_members(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListMembers)
    page = Page(limit=query.limit, include_archived=query.include_archived)
    read = partial(get_services(request).reads.members, principal)
    return await pagination.list_newest_first("members", page, query.page, read, members.serialize_member)


@router.get("/{member_id}", response_model=MemberResponse)
async def retrieve_member(request: Request, member_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(members.serialize_member(await get_services(request).reads.member(principal, member_id)))


@router.post("/{member_id}", response_model=MemberResponse, openapi_extra=describe_request(body=MemberUpdate))
async def update_member(request: Request, member_id: str, principal: Caller) -> Response:
    """Changes the roles of a member, or disables or enables it. It takes effect within 5 seconds on every replica.

    A disabled member can be named again with a successor, to hand over its work later.
    """
    body, raw = await read_body(request, MemberUpdate)
    roles = body.roles if "roles" in body.model_fields_set else None
    disabled = body.disabled if "disabled" in body.model_fields_set else None
    successor_id = body.successor_id if "successor_id" in body.model_fields_set else None
    if successor_id is not None and (not disabled or successor_id == member_id):
        raise InvalidRequest(
            "successor_id: must be another member, together with disabled: true",
            field="successor_id",
            help_text="To hand over single sessions, change their owner_id.",
        )
    loses_role = roles is not None and Permission.MANAGE_MEMBERS not in permissions_of(roles)
    if member_id == principal.id and (disabled or loses_role):
        raise Conflict(
            "You cannot disable yourself or give up the role 'admin'.",
            help_text="Ask another administrator to do it, so that the organisation keeps one.",
        )

    async def work(unit: UnitOfWork) -> ChangeResult:
        member = await unit.update_member(
            principal, member_id, roles=roles, disabled=disabled, successor_id=successor_id
        )
        return members.serialize_member(member), None

    return await execute_change(request, principal, raw, work)
