"""`/v1/agents`: creates, lists, updates and archives agents. Agents are versioned, and they are never deleted."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent import agents, multiagent
from footplate.api.wire.agent.agents import AgentCreate, AgentUpdate
from footplate.api.wire.agent.server_toolsets import check_installed
from footplate.api.wire.agent.tools import check_search_available
from footplate.api.wire.agent_and_environment_queries import ChooseVersion, ListAgents, ListVersions
from footplate.api.wire.json_responses import json_response, list_response
from footplate.domain.agents.agents_and_config import Agent
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/agents", "agents")


@router.post("", response_model=response_models.Agent, openapi_extra=describe_request(body=AgentCreate))
async def create_agent(request: Request, principal: Caller) -> Response:
    body, raw = await read_body(request, AgentCreate)
    agents.check_harness(body, get_services(request).harnesses)
    if "model" in body.model_fields_set:
        agents.check_model(body.model, get_services(request).connections.list_connections(principal.organisation))
    check_search_available(body.tools, available=get_services(request).has_search)
    check_installed(body.server_toolsets, get_services(request).toolsets)
    members = await _load_members(get_services(request), principal, body)
    definition = agents.build_definition(body, multiagent.build_stored_references(members))
    multiagent.check_definition(definition, members, get_services(request).default_harness)

    async def work(unit: UnitOfWork) -> ChangeResult:
        agent = await unit.create_agent(principal, name=body.name, definition=definition, metadata=body.metadata)
        return agents.serialize_agent(agent), None

    return await execute_change(request, principal, raw, work, audit_action="agent.create")


async def _load_members(
    services: ApiServices, principal: Principal, body: AgentCreate | AgentUpdate
) -> list[Agent] | None:
    """Loads the subagents in their versions. Reads happen before the transaction opens, as for a session's agent."""
    if body.multiagent is None:
        return None
    members = multiagent.list_members(body.multiagent)
    return [await services.reads.agent(principal, *member) for member in members]


@router.get(
    "",
    response_model=response_models.Listing[response_models.Agent],
    openapi_extra=describe_request(query=ListAgents),
)
async def list_agents(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListAgents)
    page = Page(
        limit=query.limit,
        created_gte=query.created_at_gte,
        created_lte=query.created_at_lte,
        include_archived=query.include_archived,
    )
    read = partial(get_services(request).reads.agents, principal)
    return await pagination.list_newest_first("agents", page, query.page, read, agents.serialize_agent)


@router.get("/{agent_id}", response_model=response_models.Agent, openapi_extra=describe_request(query=ChooseVersion))
async def retrieve_agent(request: Request, agent_id: str, principal: Caller) -> Response:
    query = read_query(request, ChooseVersion)
    return json_response(
        agents.serialize_agent(await get_services(request).reads.agent(principal, agent_id, query.version))
    )


@router.post("/{agent_id}", response_model=response_models.Agent, openapi_extra=describe_request(body=AgentUpdate))
async def update_agent(request: Request, agent_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, AgentUpdate)
    agents.check_harness(body, get_services(request).harnesses)
    if "model" in body.model_fields_set:
        agents.check_model(body.model, get_services(request).connections.list_connections(principal.organisation))
    check_search_available(body.tools, available=get_services(request).has_search)
    check_installed(body.server_toolsets, get_services(request).toolsets)
    members = await _load_members(get_services(request), principal, body)
    update = agents.make_agent_update(body, members, default_harness=get_services(request).default_harness)

    async def work(unit: UnitOfWork) -> ChangeResult:
        agent = await unit.update_agent(principal, agent_id, expected_version=body.version, change=update)
        return agents.serialize_agent(agent), None

    return await execute_change(request, principal, raw, work, audit_action="agent.update")


@router.post("/{agent_id}/archive", response_model=response_models.Agent)
async def archive_agent(request: Request, agent_id: str, principal: Caller) -> Response:
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        return agents.serialize_agent(await unit.archive_agent(principal, agent_id)), None

    return await execute_change(request, principal, raw, work, audit_action="agent.archive")


@router.get(
    "/{agent_id}/versions",
    response_model=response_models.Listing[response_models.Agent],
    openapi_extra=describe_request(query=ListVersions),
)
async def list_versions(request: Request, agent_id: str, principal: Caller) -> Response:
    """Lists the versions of an agent, newest first."""
    query = read_query(request, ListVersions)
    cursor = pagination.decode_number_cursor("versions", query.page, "desc")
    rows = await get_services(request).reads.agent_versions(
        principal, agent_id, limit=query.limit + 1, before_version=cursor[1] if cursor else None
    )
    page_rows = rows[: query.limit]
    has_more = len(rows) > query.limit
    next_page = pagination.encode_number_cursor("versions", "desc", page_rows[-1].version) if has_more else None
    return list_response([agents.serialize_agent(row) for row in page_rows], next_page=next_page)
