"""`/v1/triggers`: signed requests of other systems start sessions, or add steps to one.

`POST /v1/triggers/{trigger_id}` receives deliveries and needs no API key, so changes of a trigger have the path
`/v1/triggers/{trigger_id}/update`.
"""

import hashlib
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from fastapi import APIRouter, Request
from starlette.responses import Response

from footplate import failpoints
from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.errors import DeliveryFailed
from footplate.api.openapi import NO_AUTHENTICATION, describe_request
from footplate.api.requests.delivery_signature import ID_HEADER, InvalidSignature, read_signature, verify_signature
from footplate.api.requests.idempotency import ChangeResult, ResponseThenNotify, execute_change
from footplate.api.requests.parsing import (
    parse_json,
    read_body,
    read_bytes,
    read_empty_body,
    read_message_body,
    read_query,
)
from footplate.api.requests.route_permissions import check_delivery_steps
from footplate.api.requests.shell_modes import (
    check_shell_modes,
    environment_by_id,
    environment_of_session,
    modes_of_steps,
)
from footplate.api.routes.files import check_input_references
from footplate.api.routes.session.sessions import load_agent_snapshot
from footplate.api.routing import SignedRoute, create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.policy import permissions
from footplate.api.wire.projects import parse_project_choice
from footplate.api.wire.request_base import merge_metadata
from footplate.api.wire.session import triggers as wire
from footplate.api.wire.session.triggers import (
    ListTriggerDeliveries,
    ListTriggers,
    NewTriggerResponse,
    TriggerCreate,
    TriggerDeliveryResponse,
    TriggerReceiptResponse,
    TriggerResponse,
    TriggerUpdate,
)
from footplate.api.wire.visibility import parse_audience
from footplate.api.wire.webhooks import SecretRotation
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.network.request_limits import setting_name
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import Input, UnitOfWork
from footplate.domain.sessions import events, triggers
from footplate.domain.sessions.deployments import SessionTemplate
from footplate.domain.sessions.triggers import DeliveryOutcome, SignedDelivery, Trigger, TriggerDefinition
from footplate.gate.shell.step_references import check_command

log = structlog.get_logger(__name__)

_SESSION_FIELDS: Final = (
    *("agent", "environment_id", "title", "project_ids", "workspace_id", "context", "permissions", "ends_when_done"),
)
"""Fields that only a trigger that creates sessions has."""
_triggers = create_router("/v1/triggers", "triggers")
_deliveries = create_router("/v1/triggers", "triggers", SignedRoute)
router = APIRouter()


@_deliveries.post("/{trigger_id}", response_model=TriggerReceiptResponse, openapi_extra=NO_AUTHENTICATION)
async def receive_delivery(request: Request, trigger_id: str) -> Response:
    """Receives a delivery: any JSON object, signed according to Standard Webhooks with the secret of the trigger. It
    starts a session or adds steps. A delivery whose `webhook-id` was received before has no further effect, and gets
    the same response. This route needs no API key.
    """
    read_query(request, NoParameters)
    services = get_services(request)
    signature = read_signature(request.headers)
    raw = await read_bytes(request, services.limits.trigger_bytes, setting_name("trigger_bytes"))
    keys = await services.reads.trigger_keys(trigger_id)
    verify_signature(raw, signature, None if keys is None else keys.secrets)
    assert keys is not None
    if keys.principal is not None:
        await services.limit_guard.check_request(keys.principal)
    signed = SignedDelivery(
        trigger_id=trigger_id,
        delivery_id=signature[ID_HEADER],
        body_hash=hashlib.sha256(raw).digest(),
        payload=await parse_json(request, raw),
    )
    # The transaction itself finds out in whose name the delivery acts.
    unknown = Principal(keys.organisation, "", "", frozenset())
    check_context = partial(services.named_roots.check_context, keys.organisation)
    try:
        async with services.units.unit(unknown, None) as unit:
            delivery, accepted = await unit.process_trigger_delivery(
                keys.organisation, signed, check_context=check_context
            )
            await failpoints.hit("before_trigger_commit")
    except NotFound as error:  # archived since its keys were read
        raise InvalidSignature from error
    await failpoints.hit("after_trigger_commit")
    log.info(
        "delivery to a trigger",
        action="trigger.delivered",
        trigger=trigger_id,
        delivery=delivery.id,
        outcome=delivery.outcome.value,
        session=delivery.session_id,
    )
    if delivery.outcome is DeliveryOutcome.FAILED:
        raise DeliveryFailed
    return ResponseThenNotify(json_response(wire.serialize_receipt(delivery)), request, None, accepted)


@_triggers.post("", response_model=NewTriggerResponse, openapi_extra=describe_request(body=TriggerCreate))
async def create_trigger(request: Request, principal: Caller) -> Response:
    """Creates a trigger. The response contains its secret, which cannot be read again."""
    body, _ = await read_message_body(request, TriggerCreate)
    read_query(request, NoParameters)
    services = get_services(request)
    if body.session_id is not None:
        _refuse_session_fields(body)
        await services.reads.check_session_visible(principal, body.session_id)
    elif body.agent is None or body.environment_id is None:
        raise InvalidRequest(
            "agent: a trigger needs an agent and an environment_id, or the session_id of an existing session",
            field="agent",
        )
    context = body.context or {}
    selection = parse_project_choice(body.project_ids, body.workspace_id, context)
    definition = TriggerDefinition(
        name=body.name,
        session_id=body.session_id,
        environment_id=body.environment_id,
        title=body.title,
        condition=body.condition,
        max_per_minute=body.max_per_minute,
        description=body.description,
        metadata=body.metadata,
        audience=parse_audience(body.visibility, body.team_id),
        template=SessionTemplate(
            agent={} if body.agent is None else await load_agent_snapshot(services, principal, body.agent),
            steps=[(step.to_definition(), step.overrides_of_turn) for step in body.steps],
            context=context,
            project_ids=selection.project_ids,
            workspace_id=selection.workspace_id,
            permissions=permissions.dump_permissions(body.permissions),
            ends_when_done=body.ends_when_done,
        ),
    )
    await _check_definition(services, principal, definition)
    async with services.units.unit(principal, None) as unit:
        trigger, secret = await unit.create_trigger(principal, definition)
    return json_response({**wire.serialize_trigger(trigger), "secret": secret})


@_triggers.get(
    "", response_model=response_models.Listing[TriggerResponse], openapi_extra=describe_request(query=ListTriggers)
)
async def list_triggers(request: Request, principal: Caller) -> Response:
    """Lists triggers, the newest first."""
    query = read_query(request, ListTriggers)
    page = Page(limit=query.limit, include_archived=query.include_archived)
    read = partial(get_services(request).reads.triggers, principal)
    return await pagination.list_newest_first("triggers", page, query.page, read, wire.serialize_trigger)


@_triggers.get("/{trigger_id}", response_model=TriggerResponse)
async def retrieve_trigger(request: Request, trigger_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(wire.serialize_trigger(await get_services(request).reads.trigger(principal, trigger_id)))


@_triggers.post(
    "/{trigger_id}/update", response_model=TriggerResponse, openapi_extra=describe_request(body=TriggerUpdate)
)
async def update_trigger(request: Request, trigger_id: str, principal: Caller) -> Response:
    """Changes a trigger, or pauses or resumes it. From then on, its deliveries act in the name of the caller."""
    body, raw = await read_message_body(request, TriggerUpdate)
    services, sent = get_services(request), body.model_fields_set
    agent = await load_agent_snapshot(services, principal, body.agent) if "agent" in sent else None
    change = partial(_change_definition, body, agent)
    await _check_definition(services, principal, change(await services.reads.trigger(principal, trigger_id)))

    async def work(unit: UnitOfWork) -> ChangeResult:
        return wire.serialize_trigger(await unit.update_trigger(principal, trigger_id, change)), None

    return await execute_change(request, principal, raw, work)


@_triggers.post("/{trigger_id}/archive", response_model=TriggerResponse)
async def archive_trigger(request: Request, trigger_id: str, principal: Caller) -> Response:
    """Ends a trigger for good. Its sessions and deliveries stay."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        return wire.serialize_trigger(await unit.archive_trigger(principal, trigger_id)), None

    return await execute_change(request, principal, raw, work)


@_triggers.post(
    "/{trigger_id}/rotate_secret",
    response_model=NewTriggerResponse,
    openapi_extra=describe_request(body=SecretRotation),
)
async def rotate_secret(request: Request, trigger_id: str, principal: Caller) -> Response:
    """Replaces the secret. The response contains the new one. Until the overlap ends, both are valid."""
    body, _ = await read_body(request, SecretRotation)
    read_query(request, NoParameters)
    async with get_services(request).units.unit(principal, None) as unit:
        trigger, secret = await unit.rotate_trigger_secret(
            principal, trigger_id, overlap=timedelta(seconds=body.overlap_seconds)
        )
    return json_response({**wire.serialize_trigger(trigger), "secret": secret})


@_triggers.get(
    "/{trigger_id}/deliveries",
    response_model=response_models.Listing[TriggerDeliveryResponse],
    openapi_extra=describe_request(query=ListTriggerDeliveries),
)
async def list_deliveries(request: Request, trigger_id: str, principal: Caller) -> Response:
    """Lists the deliveries of the last days, the newest first."""
    query = read_query(request, ListTriggerDeliveries)
    outcome = None if query.outcome is None else DeliveryOutcome(query.outcome)
    read = partial(get_services(request).reads.trigger_deliveries, principal, trigger_id, outcome=outcome)
    return await pagination.list_newest_first(
        "trigger_deliveries", Page(limit=query.limit), query.page, read, wire.serialize_delivery
    )


router.routes.extend([*_triggers.routes, *_deliveries.routes])


def _change_definition(body: TriggerUpdate, agent: JsonObject | None, trigger: Trigger) -> TriggerDefinition:
    sent, old = body.model_fields_set, trigger.definition
    if old.session_id is not None:
        _refuse_session_fields(body)
    audience = old.audience
    if {"visibility", "team_id"} & sent:
        audience = parse_audience(body.visibility if "visibility" in sent else audience.visibility, body.team_id)
    return replace(
        old,
        name=body.name if "name" in sent else old.name,
        environment_id=body.environment_id if "environment_id" in sent else old.environment_id,
        title=body.title if "title" in sent else old.title,
        condition=body.condition if "condition" in sent else old.condition,
        max_per_minute=body.max_per_minute if "max_per_minute" in sent else old.max_per_minute,
        description=(body.description or None) if "description" in sent else old.description,
        metadata=merge_metadata(old.metadata, body.metadata or {}),
        audience=audience,
        is_paused=body.paused if "paused" in sent else old.is_paused,
        template=_change_template(body, agent, old.template),
    )


def _change_template(body: TriggerUpdate, agent: JsonObject | None, old: SessionTemplate) -> SessionTemplate:
    sent = body.model_fields_set
    context = (body.context or {}) if "context" in sent else old.context
    chosen: tuple[list[str] | None, str | None] = ([*old.project_ids], old.workspace_id)
    if {"project_ids", "workspace_id"} & sent:
        chosen = (body.project_ids, body.workspace_id)
    selection = parse_project_choice(*chosen, context)
    return replace(
        old,
        agent=old.agent if agent is None else agent,
        steps=[(step.to_definition(), step.overrides_of_turn) for step in body.steps] if "steps" in sent else old.steps,
        context=context,
        project_ids=selection.project_ids,
        workspace_id=selection.workspace_id,
        permissions=permissions.dump_permissions(body.permissions) if "permissions" in sent else old.permissions,
        ends_when_done=body.ends_when_done if "ends_when_done" in sent else old.ends_when_done,
    )


def _refuse_session_fields(body: TriggerCreate | TriggerUpdate) -> None:
    sent = [name for name in _SESSION_FIELDS if name in body.model_fields_set and getattr(body, name) is not None]
    if sent:
        raise InvalidRequest(
            f"{sent[0]}: cannot be combined with session_id, because no session is created",
            field=sent[0],
            help_text="Create another trigger, without session_id.",
        )


async def _check_definition(services: ApiServices, principal: Principal, definition: TriggerDefinition) -> None:
    """Raises unless a delivery could act now. Each delivery checks it again."""
    triggers.check_definition(definition, partial(check_command, with_payload=True))
    template = definition.template
    check_delivery_steps(principal, [step for step, _ in template.steps])
    environment = (
        environment_of_session(services, principal, definition.session_id)
        if definition.session_id is not None
        else environment_by_id(services, principal, definition.environment_id or "")
    )
    await check_shell_modes(services, modes_of_steps(template.agent, template.steps), environment)
    services.named_roots.check_context(principal.organisation, template.context)
    contents = [content for step, _ in template.steps for content in step.contents]
    sent = [Input(type=events.USER_MESSAGE, body={"content": [*content]}) for content in contents]
    await check_input_references(services, principal, sent)
