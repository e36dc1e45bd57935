"""`/v1/api_keys`: creates, lists, rotates and revokes the API keys of the organisation.

A response that contains a secret is not stored for retries, so no secret is in the database. A repeated request to
create a key fails, because the name is taken.
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
from footplate.api.wire import members, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.members import ApiKeyCreate, ApiKeyResponse, ListMembers, NewApiKeyResponse
from footplate.domain.pagination import Page
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/api_keys", "api_keys")


@router.post("", response_model=NewApiKeyResponse, openapi_extra=describe_request(body=ApiKeyCreate))
async def create_key(request: Request, principal: Caller) -> Response:
    """Creates a key. The response contains its secret, which cannot be read again."""
    body, _ = await read_body(request, ApiKeyCreate)
    read_query(request, NoParameters)
    async with get_services(request).units.unit(principal, None) as unit:
        key, secret = await unit.create_api_key(
            principal,
            name=body.name,
            member_id=body.member_id,
            roles=body.roles,
            expires_at=body.expires_at,
            project_ids=body.project_ids,
        )
    return json_response({**members.serialize_key(key), "secret": secret})


@router.get(
    "", response_model=response_models.Listing[ApiKeyResponse], openapi_extra=describe_request(query=ListMembers)
)
async def list_keys(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListMembers)
    page = Page(limit=query.limit, include_archived=query.include_archived)
    read = partial(get_services(request).reads.api_keys, principal)
    return await pagination.list_newest_first("api_keys", page, query.page, read, members.serialize_key)


@router.get("/{key_id}", response_model=ApiKeyResponse)
async def retrieve_key(request: Request, key_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(members.serialize_key(await get_services(request).reads.api_key(principal, key_id)))


@router.post("/{key_id}/revoke", response_model=ApiKeyResponse)
async def revoke_key(request: Request, key_id: str, principal: Caller) -> Response:
    """Revokes a key. It stops working within 5 seconds on every replica, and its open streams end."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        return members.serialize_key(await unit.revoke_api_key(principal, key_id)), None

    return await execute_change(request, principal, raw, work)


@router.post("/{key_id}/rotate", response_model=NewApiKeyResponse)
async def rotate_key(request: Request, key_id: str, principal: Caller) -> Response:
    """Replaces the secret of a key. The response contains the new one. The old one stops working within 5 seconds."""
    await read_empty_body(request)
    read_query(request, NoParameters)
    async with get_services(request).units.unit(principal, None) as unit:
        key, secret = await unit.rotate_api_key(principal, key_id)
    return json_response({**members.serialize_key(key), "secret": secret})
