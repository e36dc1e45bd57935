"""`/v1/sessions`: creates, lists, updates, ends, archives and deletes sessions. A session is a conversation with an
agent, with its own working tree and its own copy of the agent's definition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_message_body, read_query
from footplate.api.requests.shell_modes import EnvironmentLoader, check_shell_modes, environment_by_id
from footplate.api.routes.files import check_input_references
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import files_and_resources, response_models
from footplate.api.wire.agent import agents, multiagent
from footplate.api.wire.agent.server_toolsets import check_installed
from footplate.api.wire.agent.tools import check_search_available
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.environments import check_stored_config
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.policy import permissions
from footplate.api.wire.projects import parse_project_choice
from footplate.api.wire.session import sessions
from footplate.api.wire.session.events import to_inputs
from footplate.api.wire.session.sessions import (
    AgentChoice,
    AgentWithOverrides,
    ListSessions,
    SessionCreate,
    SessionEndRequest,
    SessionParameters,
    SessionUpdate,
)
from footplate.api.wire.visibility import parse_audience
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience
from footplate.domain.pagination import Order
from footplate.domain.ports.api import AcceptedInputs, Input, UnitOfWork
from footplate.domain.projects.project import ProjectSelection
from footplate.domain.sessions.turns import Mode

router = create_router("/v1/sessions", "sessions")


@router.post("", response_model=response_models.Session, openapi_extra=describe_request(body=SessionCreate))
async def create_session(request: Request, principal: Caller) -> Response:
    body, raw = await read_message_body(request, SessionCreate)
    # Read before the transaction opens: a request that holds a database connection must not wait for a second one.
    prepared = await prepare_session(get_services(request), principal, body)
    agent, resources = prepared.agent, prepared.resources

    async def work(unit: UnitOfWork) -> ChangeResult:
        session, accepted = await unit.create_session(
            principal,
            agent=agent,
            environment_id=body.environment_id,
            title=body.title,
            metadata=body.metadata,
            context=body.context or {},
            inputs=prepared.inputs,
            mode=Mode(body.mode),
            selection=prepared.selection,
            permissions=permissions.dump_permissions(body.permissions),
            audience=prepared.audience,
            ends_when_done=body.ends_when_done,
            backend=body.backend,
        )
        if resources:
            stored_resources = await unit.change_resources(principal, session.id, lambda _: resources)
            session = replace(session, resources=stored_resources)
        prewarms = can_prewarm(get_services(request), agent)
        # A workflow that stays open finds the warm harness again at the next turn.
        accepted = replace(accepted, prepare=prewarms, ends_when_idle=not prewarms or body.ends_when_done)
        return sessions.serialize_session(session), accepted

    return await execute_change(
        request, principal, raw, work, audit_action="session.create" if body.permissions else None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSession:
    """A request for a new session, checked as far as possible without the transaction that creates it."""

    agent: JsonObject
    inputs: Sequence[Input]
    resources: Sequence[JsonObject]
    audience: Audience
    selection: ProjectSelection


async def prepare_session(services: ApiServices, principal: Principal, body: SessionCreate) -> PreparedSession:
    """Checks the body of a request for a new session. Templates are checked in the same way."""
    environment = environment_by_id(services, principal, body.environment_id, backend=body.backend)
    agent = await load_agent_snapshot(services, principal, body.agent, environment)
    inputs = to_inputs(body.initial_events)
    await check_input_references(services, principal, inputs, environment)
    requested_files = [(await services.reads.file(principal, one.file_id), one) for one in body.resources or ()]
    resources = files_and_resources.add_resources(
        (), [files_and_resources.build_resource(file, one) for file, one in requested_files]
    )
    services.named_roots.check_context(principal.organisation, body.context or {})
    if body.backend is not None:
        check_stored_config(await environment(), services.backends, field_name="backend")
    return PreparedSession(
        agent=agent,
        inputs=inputs,
        resources=resources,
        audience=parse_audience(body.visibility, body.team_id),
        selection=parse_project_choice(body.project_ids, body.workspace_id, body.context or {}),
    )


def can_prewarm(services: ApiServices, agent: JsonObject) -> bool:
    """Returns whether workers can prewarm a new session of this agent before its first turn."""
    return (agent.get("harness") or services.default_harness) in services.prewarmed_harnesses


async def load_agent_snapshot(
    services: ApiServices, principal: Principal, choice: AgentChoice, load_environment: EnvironmentLoader | None = None
) -> JsonObject:
    """Returns the agent as a session stores it. `load_environment` loads the configuration of the environment that its
    shell mode must suit.
    """
    if isinstance(choice, str):
        agent = await services.reads.agent(principal, choice)
    else:
        agent = await services.reads.agent(principal, choice.id, choice.version)
    if agent.archived_at is not None:
        raise InvalidRequest(f"agent: {agent.id} is archived", field="agent", help_text="Choose another agent.")
    if not isinstance(choice, AgentWithOverrides):
        snapshot = agents.snapshot_agent(agent, {})
    else:
        agents.check_harness(choice, services.harnesses, where="agent.")
        if "model" in choice.model_fields_set:
            connections = services.connections.list_connections(principal.organisation)
            agents.check_model(choice.model, connections, where="agent.")
        check_search_available(choice.tools, available=services.has_search, where="agent.")
        check_installed(choice.server_toolsets, services.toolsets, where="agent.")
        snapshot = agents.snapshot_agent(agent, agents.normalise_definition_fields(choice))
    await check_shell_modes(services, [("agent.shell_mode", snapshot.get("shell_mode"))], load_environment)
    return await _embed_subagents(services, principal, snapshot)


async def _embed_subagents(services: ApiServices, principal: Principal, snapshot: JsonObject) -> JsonObject:
    """Adds the current definition of each subagent to the snapshot."""
    references = multiagent.read_stored_references(snapshot)
    if not references:
        return snapshot
    members = [await services.reads.agent(principal, *reference) for reference in references]
    multiagent.check_definition(snapshot, members, services.default_harness, where="agent.")
    return {
        **snapshot,
        "multiagent": multiagent.embed_members([agents.snapshot_agent(member, {}) for member in members]),
    }


@router.get("", response_model=response_models.SessionListing, openapi_extra=describe_request(query=ListSessions))
async def list_sessions(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListSessions)
    cursor = pagination.decode_row_cursor("sessions", query.page, query.order)
    order: Order = cursor.order if cursor else query.order or "desc"
    page = query.to_page(limit=query.limit + 1, order=order)
    if cursor:
        page = replace(page, before=cursor.position) if cursor.backwards else replace(page, after=cursor.position)
    services = get_services(request)
    session_filter = query.to_filter(default_harness=services.default_harness)
    rows = await services.reads.sessions(principal, page, session_filter)
    page_rows, page_cursors = pagination.cut_page(
        "sessions", rows, lambda row: (row.created_at, row.id), limit=query.limit, order=order, cursor=cursor
    )
    pinned = await get_services(request).reads.find_pinned_sessions(principal, [row.id for row in page_rows])
    return json_response(
        {
            "data": [{**sessions.serialize_session(row), "is_pinned": row.id in pinned} for row in page_rows],
            "next_page": page_cursors.next_page,
            "prev_page": page_cursors.prev_page,
        }
    )


@router.get(
    "/counts", response_model=response_models.SessionCounts, openapi_extra=describe_request(query=SessionParameters)
)
async def count_sessions(request: Request, principal: Caller) -> Response:
    """Returns the number of sessions in each state, with the filters of the list."""
    query = read_query(request, SessionParameters)
    services = get_services(request)
    session_filter = query.to_filter(default_harness=services.default_harness)
    counts = await services.reads.count_sessions(principal, query.to_page(limit=0), session_filter)
    return json_response(sessions.serialize_session_counts(counts))


@router.get("/{session_id}", response_model=response_models.Session)
async def retrieve_session(request: Request, session_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(sessions.serialize_session(await get_services(request).reads.session(principal, session_id)))


@router.get("/{session_id}/usage", response_model=response_models.TotalUsage)
async def retrieve_usage(request: Request, session_id: str, principal: Caller) -> Response:
    """Returns the tokens and the cost of a session and of all sessions that it and its children have started."""
    read_query(request, NoParameters)
    total = await get_services(request).reads.total_usage(principal, session_id)
    return json_response(sessions.serialize_total_usage(session_id, total))


@router.post(
    "/{session_id}", response_model=response_models.Session, openapi_extra=describe_request(body=SessionUpdate)
)
async def update_session(request: Request, session_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, SessionUpdate)
    if "agent" in body.model_fields_set:
        check_search_available(body.agent.tools, available=get_services(request).has_search, where="agent.")
        check_installed(body.agent.server_toolsets, get_services(request).toolsets, where="agent.")

    async def work(unit: UnitOfWork) -> ChangeResult:
        session, accepted = await unit.update_session(principal, session_id, sessions.make_session_update(body))
        return sessions.serialize_session(session), accepted

    affects_rules = bool({"agent", "permissions", "visibility", "team_id", "owner_id"} & body.model_fields_set)
    return await execute_change(request, principal, raw, work, audit_action="session.update" if affects_rules else None)


@router.put("/{session_id}/pin", response_model=response_models.SessionPin)
async def pin_session(request: Request, session_id: str, principal: Caller) -> Response:
    """Pins a session for the caller. Repeating it has no effect."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.pin_session(principal, session_id)
        return _serialize_pin(session_id, is_pinned=True), _announce_pin(principal, session_id)

    return await execute_change(request, principal, raw, work)


@router.delete("/{session_id}/pin", response_model=response_models.SessionPin)
async def unpin_session(request: Request, session_id: str, principal: Caller) -> Response:
    """Unpins a session for the caller. Repeating it has no effect."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.unpin_session(principal, session_id)
        return _serialize_pin(session_id, is_pinned=False), _announce_pin(principal, session_id)

    return await execute_change(request, principal, raw, work)


def _serialize_pin(session_id: str, *, is_pinned: bool) -> JsonObject:
    return {"type": "session_pin", "session_id": session_id, "is_pinned": is_pinned}


def _announce_pin(principal: Principal, session_id: str) -> AcceptedInputs:
    return AcceptedInputs(organisation=principal.organisation, session_id=session_id, changes_feed=True)


@router.post(
    "/{session_id}/end", response_model=response_models.Session, openapi_extra=describe_request(body=SessionEndRequest)
)
async def end_session(request: Request, session_id: str, principal: Caller) -> Response:
    body, raw = await read_body(request, SessionEndRequest)

    async def work(unit: UnitOfWork) -> ChangeResult:
        session, accepted = await unit.end_session(principal, session_id, body.to_end(principal.id))
        return sessions.serialize_session(session), accepted

    return await execute_change(request, principal, raw, work)


@router.post("/{session_id}/archive", response_model=response_models.Session)
async def archive_session(request: Request, session_id: str, principal: Caller) -> Response:
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        session, accepted = await unit.archive_session(principal, session_id)
        return sessions.serialize_session(session), accepted

    return await execute_change(request, principal, raw, work)


@router.delete("/{session_id}", response_model=response_models.Deleted)
async def delete_session(request: Request, session_id: str, principal: Caller) -> Response:
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        accepted = await unit.delete_session(principal, session_id)
        return {"id": session_id, "type": "session_deleted"}, accepted

    return await execute_change(request, principal, raw, work)
