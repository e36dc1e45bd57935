"""`/v1/session_batches`: creates, lists, cancels and repeats batches of background sessions, and lists results."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_batch_body, read_body, read_empty_body, read_query
from footplate.api.requests.route_permissions import check_delivery_steps
from footplate.api.requests.shell_modes import check_shell_modes, environment_by_id, modes_of_steps
from footplate.api.routes.files import check_input_references
from footplate.api.routes.session.sessions import load_agent_snapshot
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.policy import permissions
from footplate.api.wire.projects import parse_project_choice
from footplate.api.wire.session import batches
from footplate.api.wire.session.batches import (
    BatchCreate,
    BatchJob,
    BatchResponse,
    JobResponse,
    JobResultResponse,
    ListBatches,
    ListJobs,
    ListResults,
    RetryBatch,
)
from footplate.api.wire.session.sessions import AgentChoice
from footplate.api.wire.visibility import parse_audience
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs, Input, UnitOfWork
from footplate.domain.sessions import events
from footplate.domain.sessions.batches import BatchDefinition, BatchPriority, CreatedBatch, JobDefinition
from footplate.domain.sessions.turns import SessionToWake

router = create_router("/v1/session_batches", "session_batches")


@router.post("", response_model=BatchResponse, openapi_extra=describe_request(body=BatchCreate))
async def create_batch(request: Request, principal: Caller) -> Response:
    """Creates a background session for each request, all of them or none. Each session ends with its work."""
    body, raw = await read_batch_body(request, BatchCreate)
    definition = BatchDefinition(
        jobs=await _define_jobs(get_services(request), principal, body.requests),
        name=body.name,
        priority=BatchPriority(body.priority),
        max_running=body.max_running,
        audience=parse_audience(body.visibility, body.team_id),
    )

    async def work(unit: UnitOfWork) -> ChangeResult:
        return _announce_batch(await unit.create_batch(principal, definition))

    has_rules = any(job.permissions for job in body.requests)
    return await execute_change(request, principal, raw, work, audit_action="batch.create" if has_rules else None)


async def _define_jobs(services: ApiServices, principal: Principal, jobs: list[BatchJob]) -> list[JobDefinition]:
    agents: dict[str, JsonObject] = {}
    """Each choice of an agent is resolved once."""
    defined = []
    for job in jobs:
        key = _agent_key(job.agent)
        if key not in agents:
            agents[key] = await load_agent_snapshot(services, principal, job.agent)
        context = job.context or {}
        services.named_roots.check_context(principal.organisation, context)
        selection = parse_project_choice(job.project_ids, job.workspace_id, context)
        defined.append(
            JobDefinition(
                custom_id=job.custom_id,
                agent=agents[key],
                environment_id=job.environment_id,
                content=job.content,
                steps=[(step.to_definition(), step.overrides_of_turn) for step in job.steps or ()],
                title=job.title,
                metadata=job.metadata,
                context=context,
                project_ids=selection.project_ids,
                workspace_id=selection.workspace_id,
                permissions=permissions.dump_permissions(job.permissions),
            )
        )
    modes: dict[str, list[tuple[str, Json]]] = {}
    for job_definition in defined:
        in_environment = modes.setdefault(job_definition.environment_id, [])
        in_environment += modes_of_steps(job_definition.agent, job_definition.steps)
    for environment_id, requested in modes.items():
        await check_shell_modes(services, requested, environment_by_id(services, principal, environment_id))
    check_delivery_steps(principal, [step for job in defined for step, _ in job.steps])
    contents = [job.content for job in defined]
    contents += [content for job in defined for step, _ in job.steps for content in step.contents]
    sent = [Input(type=events.USER_MESSAGE, body={"content": [*content]}) for content in contents if content]
    await check_input_references(services, principal, sent)
    return defined


def _agent_key(choice: AgentChoice) -> str:
    return choice if isinstance(choice, str) else choice.model_dump_json(exclude_unset=True)


def _announce_batch(created: CreatedBatch) -> ChangeResult:
    organisation = created.batch.organisation
    accepted = AcceptedInputs(
        organisation=organisation,
        session_id=created.session_ids[0],
        changes_feed=True,
        ends_when_idle=True,
        to_wake=[
            SessionToWake(organisation, session_id, created.batch.priority.engine_priority)
            for session_id in created.session_ids
        ],
    )
    return batches.serialize_batch(created.batch), accepted


@router.get(
    "", response_model=response_models.Listing[BatchResponse], openapi_extra=describe_request(query=ListBatches)
)
async def list_batches(request: Request, principal: Caller) -> Response:
    """Lists batches, the newest first."""
    query = read_query(request, ListBatches)
    reads = get_services(request).reads
    return await pagination.list_newest_first(
        "session_batches",
        Page(limit=query.limit, include_archived=True),
        query.page,
        lambda page: reads.batches(principal, page),
        batches.serialize_batch,
    )


@router.get("/{batch_id}", response_model=BatchResponse)
async def retrieve_batch(request: Request, batch_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(batches.serialize_batch(await get_services(request).reads.batch(principal, batch_id)))


@router.get(
    "/{batch_id}/jobs",
    response_model=response_models.Listing[JobResponse],
    openapi_extra=describe_request(query=ListJobs),
)
async def list_jobs(request: Request, batch_id: str, principal: Caller) -> Response:
    """Lists jobs in the order of the request, ended or not."""
    query = read_query(request, ListJobs)
    cursor = pagination.decode_number_cursor("batch_jobs", query.page, "asc")
    rows = await get_services(request).reads.jobs(
        principal,
        batch_id,
        states=query.parsed_states,
        custom_id=query.custom_id,
        limit=query.limit + 1,
        after=cursor[1] if cursor else None,
    )
    page = rows[: query.limit]
    next_page = (
        pagination.encode_number_cursor("batch_jobs", "asc", page[-1].index) if len(rows) > query.limit else None
    )
    return list_response([batches.serialize_job(row) for row in page], next_page=next_page)


@router.get(
    "/{batch_id}/results",
    response_model=response_models.Listing[JobResultResponse],
    openapi_extra=describe_request(query=ListResults),
)
async def list_results(request: Request, batch_id: str, principal: Caller) -> Response:
    """Lists the results of ended jobs, in the order in which they ended. New results are always the last ones."""
    query = read_query(request, ListResults)
    cursor = pagination.decode_number_cursor("batch_results", query.page, "asc")
    rows = await get_services(request).reads.job_results(
        principal,
        batch_id,
        states=query.parsed_outcomes,
        limit=query.limit + 1,
        after=cursor[1] if cursor else query.after or 0,
    )
    page = rows[: query.limit]
    next_page = None
    if len(rows) > query.limit:
        next_page = pagination.encode_number_cursor("batch_results", "asc", page[-1].number or 0)
    return list_response([batches.serialize_job_result(row) for row in page], next_page=next_page)


@router.post("/{batch_id}/cancel", response_model=BatchResponse)
async def cancel_batch(request: Request, batch_id: str, principal: Caller) -> Response:
    """Cancels the jobs that have not ended. Results of ended jobs stay."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        batch = await unit.cancel_batch(principal, batch_id)
        accepted = AcceptedInputs(organisation=principal.organisation, session_id="", cancelled_group=batch_id)
        return batches.serialize_batch(batch), accepted

    return await execute_change(request, principal, raw, work)


@router.post("/{batch_id}/retry", response_model=BatchResponse, openapi_extra=describe_request(body=RetryBatch))
async def retry_batch(request: Request, batch_id: str, principal: Caller) -> Response:
    """Creates a batch that repeats failed jobs, with the same `custom_id`s, in new sessions."""
    body, raw = await read_body(request, RetryBatch)

    async def work(unit: UnitOfWork) -> ChangeResult:
        check_context = partial(get_services(request).named_roots.check_context, principal.organisation)
        return _announce_batch(await unit.retry_batch(principal, batch_id, body.states, check_context=check_context))

    return await execute_change(request, principal, raw, work, audit_action="batch.retry")
