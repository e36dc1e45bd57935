"""`/v1/deployments` and `/v1/deployment_runs`: start sessions by a schedule or on request, and list the runs."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_empty_body, read_message_body, read_query
from footplate.api.requests.route_permissions import check_delivery_steps
from footplate.api.requests.shell_modes import check_shell_modes, environment_by_id, modes_of_steps
from footplate.api.routes.files import check_input_references
from footplate.api.routes.session.sessions import load_agent_snapshot
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import files_and_resources, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.files_and_resources import FileResourceParams
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.policy import permissions
from footplate.api.wire.projects import parse_project_choice
from footplate.api.wire.request_base import merge_metadata
from footplate.api.wire.session import deployments
from footplate.api.wire.session.deployments import (
    DeploymentCreate,
    DeploymentResponse,
    DeploymentRunResponse,
    DeploymentUpdate,
    ListDeployments,
    ListRuns,
    PreviewRuns,
    SchedulePreviewResponse,
)
from footplate.api.wire.visibility import parse_audience
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs, Input, UnitOfWork
from footplate.domain.sessions import events
from footplate.domain.sessions.deployments import (
    Deployment,
    DeploymentDefinition,
    DeploymentFilter,
    OverlapPolicy,
    RunFilter,
    SessionTemplate,
)

_deployments = create_router("/v1/deployments", "deployments")
_runs = create_router("/v1/deployment_runs", "deployment_runs")
router = APIRouter()


@_deployments.post("", response_model=DeploymentResponse, openapi_extra=describe_request(body=DeploymentCreate))
async def create_deployment(request: Request, principal: Caller) -> Response:
    """Creates a deployment. With a schedule, it starts a session at each of its times."""
    body, raw = await read_message_body(request, DeploymentCreate)
    services = get_services(request)
    context = body.context or {}
    selection = parse_project_choice(body.project_ids, body.workspace_id, context)
    template = SessionTemplate(
        agent=await load_agent_snapshot(services, principal, body.agent),
        messages=[event.to_body() for event in body.initial_events],
        steps=[(step.to_definition(), step.overrides_of_turn) for step in body.steps or ()],
        resources=await _build_resources(services, principal, body.resources),
        context=context,
        project_ids=selection.project_ids,
        workspace_id=selection.workspace_id,
        permissions=permissions.dump_permissions(body.permissions),
        ends_when_done=body.ends_when_done,
    )
    await _check_template(services, principal, template, body.environment_id)
    definition = DeploymentDefinition(
        name=body.name,
        environment_id=body.environment_id,
        template=template,
        description=body.description,
        metadata=body.metadata,
        schedule=None if body.schedule is None else body.schedule.to_schedule(),
        overlap_policy=OverlapPolicy(body.overlap_policy),
        catch_up_seconds=body.catch_up_seconds,
        audience=parse_audience(body.visibility, body.team_id),
    )
    return await _change(
        request,
        principal,
        raw,
        lambda unit: unit.create_deployment(principal, definition),
        audit_action="deployment.create" if body.permissions else None,
    )


@_deployments.get(
    "",
    response_model=response_models.Listing[DeploymentResponse],
    openapi_extra=describe_request(query=ListDeployments),
)
async def list_deployments(request: Request, principal: Caller) -> Response:
    """Lists deployments, the newest first."""
    query = read_query(request, ListDeployments)
    if query.status is not None and query.include_archived:
        raise InvalidRequest(
            "include_archived: cannot be combined with status", field="include_archived", help_text="Send one of them."
        )
    reads = get_services(request).reads
    where = DeploymentFilter(
        agent_id=query.agent_id, is_paused=None if query.status is None else query.status == "paused"
    )
    return await pagination.list_newest_first(
        "deployments",
        Page(
            limit=query.limit,
            include_archived=query.include_archived,
            created_gte=query.created_at_gte,
            created_lte=query.created_at_lte,
        ),
        query.page,
        lambda page: reads.deployments(principal, page, where),
        deployments.serialize_deployment,
    )


@_deployments.get(
    "/upcoming_runs", response_model=SchedulePreviewResponse, openapi_extra=describe_request(query=PreviewRuns)
)
async def preview_runs(request: Request, principal: Caller) -> Response:  # noqa: ARG001 - requires a key
    """Returns the next times of a schedule that does not exist yet, or refuses its expression or time zone."""
    schedule = read_query(request, PreviewRuns).to_schedule()
    return json_response(deployments.serialize_preview(schedule))


@_deployments.get("/{deployment_id}", response_model=DeploymentResponse)
async def retrieve_deployment(request: Request, deployment_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    found = await get_services(request).reads.deployment(principal, deployment_id)
    return json_response(deployments.serialize_deployment(found))


@_deployments.post(
    "/{deployment_id}", response_model=DeploymentResponse, openapi_extra=describe_request(body=DeploymentUpdate)
)
async def update_deployment(request: Request, deployment_id: str, principal: Caller) -> Response:
    """Changes a deployment. From then on, its schedule runs in the name of the caller."""
    body, raw = await read_message_body(request, DeploymentUpdate)
    services, sent = get_services(request), body.model_fields_set
    agent = await load_agent_snapshot(services, principal, body.agent) if "agent" in sent else None
    resources = await _build_resources(services, principal, body.resources)
    schedule = None if body.schedule is None else body.schedule.to_schedule()
    old = await services.reads.deployment(principal, deployment_id)
    await _check_template(
        services,
        principal,
        _change_template(old.definition.template, body, agent, resources),
        body.environment_id if "environment_id" in sent and body.environment_id else old.definition.environment_id,
    )

    def change(found: Deployment) -> DeploymentDefinition:
        definition = found.definition
        audience = definition.audience
        if {"visibility", "team_id"} & sent:
            audience = parse_audience(body.visibility if "visibility" in sent else audience.visibility, body.team_id)
        return replace(
            definition,
            name=body.name if "name" in sent else definition.name,
            environment_id=body.environment_id if "environment_id" in sent else definition.environment_id,
            template=_change_template(definition.template, body, agent, resources),
            description=(body.description or None) if "description" in sent else definition.description,
            metadata=merge_metadata(definition.metadata, body.metadata or {}),
            schedule=schedule if "schedule" in sent else definition.schedule,
            overlap_policy=OverlapPolicy(body.overlap_policy)
            if "overlap_policy" in sent
            else definition.overlap_policy,
            catch_up_seconds=body.catch_up_seconds if "catch_up_seconds" in sent else definition.catch_up_seconds,
            audience=audience,
        )

    affects_rules = bool({"agent", "permissions", "visibility", "team_id"} & sent)
    return await _change(
        request,
        principal,
        raw,
        lambda unit: unit.update_deployment(principal, deployment_id, change),
        audit_action="deployment.update" if affects_rules else None,
    )


@_deployments.post("/{deployment_id}/pause", response_model=DeploymentResponse)
async def pause_deployment(request: Request, deployment_id: str, principal: Caller) -> Response:
    """Pauses the schedule. Clients can still start runs."""
    raw = await read_empty_body(request)
    return await _change(request, principal, raw, lambda unit: unit.pause_deployment(principal, deployment_id))


@_deployments.post("/{deployment_id}/unpause", response_model=DeploymentResponse)
async def unpause_deployment(request: Request, deployment_id: str, principal: Caller) -> Response:
    """Resumes the schedule, in the name of the caller. Times that have passed are not made up for."""
    raw = await read_empty_body(request)
    return await _change(request, principal, raw, lambda unit: unit.unpause_deployment(principal, deployment_id))


@_deployments.post("/{deployment_id}/archive", response_model=DeploymentResponse)
async def archive_deployment(request: Request, deployment_id: str, principal: Caller) -> Response:
    """Ends the schedule for good. Sessions and runs stay."""
    raw = await read_empty_body(request)
    return await _change(request, principal, raw, lambda unit: unit.archive_deployment(principal, deployment_id))


@_deployments.post("/{deployment_id}/run", response_model=DeploymentRunResponse)
async def run_deployment(request: Request, deployment_id: str, principal: Caller) -> Response:
    """Starts a run now, in the name of the caller, also if the schedule is paused or an earlier run still works."""
    raw = await read_empty_body(request)
    check_context = partial(get_services(request).named_roots.check_context, principal.organisation)

    async def work(unit: UnitOfWork) -> ChangeResult:
        run, accepted = await unit.run_deployment(principal, deployment_id, check_context=check_context)
        created = accepted[-1] if accepted else _announce_change(principal)
        return deployments.serialize_run(run), created

    return await execute_change(request, principal, raw, work)


@_runs.get(
    "", response_model=response_models.Listing[DeploymentRunResponse], openapi_extra=describe_request(query=ListRuns)
)
async def list_runs(request: Request, principal: Caller) -> Response:
    """Lists runs, the newest first."""
    query = read_query(request, ListRuns)
    reads = get_services(request).reads
    where = RunFilter(
        deployment_id=query.deployment_id,
        has_error=query.has_error,
        is_scheduled=None if query.trigger_type is None else query.trigger_type == "schedule",
    )
    return await pagination.list_newest_first(
        "deployment_runs",
        Page(
            limit=query.limit,
            include_archived=True,
            created_gt=query.created_at_gt,
            created_gte=query.created_at_gte,
            created_lt=query.created_at_lt,
            created_lte=query.created_at_lte,
        ),
        query.page,
        lambda page: reads.deployment_runs(principal, page, where),
        deployments.serialize_run,
    )


@_runs.get("/{deployment_run_id}", response_model=DeploymentRunResponse)
async def retrieve_run(request: Request, deployment_run_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    found = await get_services(request).reads.deployment_run(principal, deployment_run_id)
    return json_response(deployments.serialize_run(found))


router.routes.extend([*_deployments.routes, *_runs.routes])


async def _change(
    request: Request,
    principal: Principal,
    raw: bytes,
    change: Callable[[UnitOfWork], Awaitable[Deployment]],
    *,
    audit_action: str | None = None,
) -> Response:
    """Changes a deployment. Its schedule in Temporal is updated after the response, or by the sweep if that fails."""

    async def work(unit: UnitOfWork) -> ChangeResult:
        changed = await change(unit)
        return deployments.serialize_deployment(changed), _announce_change(principal, changed.id)

    return await execute_change(request, principal, raw, work, audit_action=audit_action)


def _announce_change(principal: Principal, deployment_id: str | None = None) -> AcceptedInputs:
    """Notifies the readers of the feed, and updates the schedule of a changed deployment in Temporal."""
    return AcceptedInputs(
        organisation=principal.organisation, session_id="", changes_feed=True, changed_deployment=deployment_id
    )


def _change_template(
    old: SessionTemplate, body: DeploymentUpdate, agent: JsonObject | None, resources: list[JsonObject]
) -> SessionTemplate:
    sent = body.model_fields_set
    context = (body.context or {}) if "context" in sent else old.context
    chosen: tuple[list[str] | None, str | None] = ([*old.project_ids], old.workspace_id)
    if {"project_ids", "workspace_id"} & sent:
        chosen = (body.project_ids, body.workspace_id)
    selection = parse_project_choice(*chosen, context)
    steps = [(step.to_definition(), step.overrides_of_turn) for step in body.steps or ()]
    return replace(
        old,
        agent=old.agent if agent is None else agent,
        messages=[event.to_body() for event in body.initial_events] if "initial_events" in sent else old.messages,
        steps=steps if "steps" in sent else old.steps,
        resources=resources if "resources" in sent else old.resources,
        context=context,
        project_ids=selection.project_ids,
        workspace_id=selection.workspace_id,
        permissions=permissions.dump_permissions(body.permissions) if "permissions" in sent else old.permissions,
        ends_when_done=body.ends_when_done if "ends_when_done" in sent else old.ends_when_done,
    )


async def _build_resources(
    services: ApiServices, principal: Principal, requested: list[FileResourceParams] | None
) -> list[JsonObject]:
    found = [(await services.reads.file(principal, one.file_id), one) for one in requested or ()]
    return [
        *files_and_resources.add_resources((), [files_and_resources.build_resource(file, one) for file, one in found])
    ]


async def _check_template(
    services: ApiServices, principal: Principal, template: SessionTemplate, environment_id: str
) -> None:
    """Raises unless sessions could be created now. Each run checks it again."""
    if not template.messages and not template.steps:
        raise InvalidRequest(
            "initial_events: must have at least one event, unless there are steps",
            field="initial_events",
            help_text="Add a `user.message`, or steps.",
        )
    check_delivery_steps(principal, [step for step, _ in template.steps])
    modes = modes_of_steps(template.agent, template.steps)
    await check_shell_modes(services, modes, environment_by_id(services, principal, environment_id))
    services.named_roots.check_context(principal.organisation, template.context)
    contents: list[Json] = [body["content"] for body in template.messages]
    contents.extend([*content] for step, _ in template.steps for content in step.contents)
    sent = [Input(type=events.USER_MESSAGE, body={"content": content}) for content in contents]
    await check_input_references(services, principal, sent)
