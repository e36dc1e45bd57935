"""`/v1/session_templates`: templates for new sessions, which belong to the organisation.

A template is validated like a request that creates a session. To use one, send its `session` to `POST /v1/sessions`.
"""

from dataclasses import replace
from functools import partial

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import parse_json, read_empty_body, read_message_body, read_query
from footplate.api.routes.session.sessions import PreparedSession, prepare_session
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.session import session_templates as wire
from footplate.api.wire.session.session_templates import (
    ListSessionTemplates,
    SessionTemplateCreate,
    SessionTemplateResponse,
    SessionTemplateUpdate,
)
from footplate.api.wire.session.sessions import SessionCreate
from footplate.domain.json import JsonObject, as_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs, UnitOfWork
from footplate.domain.sessions.session_templates import SessionTemplateDefinition, StoredSessionTemplate

router = create_router("/v1/session_templates", "session templates")


@router.post("", response_model=SessionTemplateResponse, openapi_extra=describe_request(body=SessionTemplateCreate))
async def create_template(request: Request, principal: Caller) -> Response:
    body, raw = await read_message_body(request, SessionTemplateCreate)
    prepared = await prepare_session(get_services(request), principal, body.session)
    stored = as_object((await parse_json(request, raw)).get("session"))
    definition = _define(body.name, body.description, stored, body.session, prepared)

    async def work(unit: UnitOfWork) -> ChangeResult:
        template = await unit.create_session_template(principal, definition)
        return wire.serialize_template(template), _announce(principal)

    return await execute_change(request, principal, raw, work)


@router.get(
    "",
    response_model=response_models.Listing[SessionTemplateResponse],
    openapi_extra=describe_request(query=ListSessionTemplates),
)
async def list_templates(request: Request, principal: Caller) -> Response:
    """Lists templates, the newest first."""
    query = read_query(request, ListSessionTemplates)
    page = Page(limit=query.limit, include_archived=query.include_archived)
    read = partial(get_services(request).reads.session_templates, principal)
    return await pagination.list_newest_first("session_templates", page, query.page, read, wire.serialize_template)


@router.get("/{template_id}", response_model=SessionTemplateResponse)
async def retrieve_template(request: Request, template_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    template = await get_services(request).reads.session_template(principal, template_id)
    return json_response(wire.serialize_template(template))


@router.post(
    "/{template_id}", response_model=SessionTemplateResponse, openapi_extra=describe_request(body=SessionTemplateUpdate)
)
async def update_template(request: Request, template_id: str, principal: Caller) -> Response:
    body, raw = await read_message_body(request, SessionTemplateUpdate)
    services, sent = get_services(request), body.model_fields_set
    old = await services.reads.session_template(principal, template_id)
    stored = as_object((await parse_json(request, raw)).get("session")) if "session" in sent else old.session
    session = body.session if "session" in sent else SessionCreate.model_validate(old.session)
    prepared = await prepare_session(services, principal, session)

    def change(found: StoredSessionTemplate) -> SessionTemplateDefinition:
        name = body.name if "name" in sent else found.name
        description = body.description if "description" in sent else found.description
        definition = _define(name, description, stored, session, prepared)
        # Another request may have changed the session since it was read.
        return definition if "session" in sent else replace(definition, session=found.session)

    async def work(unit: UnitOfWork) -> ChangeResult:
        template = await unit.update_session_template(principal, template_id, change)
        return wire.serialize_template(template), _announce(principal)

    return await execute_change(request, principal, raw, work)


@router.post("/{template_id}/archive", response_model=SessionTemplateResponse)
async def archive_template(request: Request, template_id: str, principal: Caller) -> Response:
    """Removes a template from the list. Sessions that were created with it stay."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        template = await unit.archive_session_template(principal, template_id)
        return wire.serialize_template(template), _announce(principal)

    return await execute_change(request, principal, raw, work)


def _define(
    name: str, description: str | None, stored: JsonObject, session: SessionCreate, prepared: PreparedSession
) -> SessionTemplateDefinition:
    known = {field: value for field, value in stored.items() if field in session.model_fields_set}
    return SessionTemplateDefinition(
        name=name,
        description=description,
        session=known,
        environment_id=session.environment_id,
        project_ids=prepared.selection.project_ids,
        workspace_id=prepared.selection.workspace_id,
        audience=prepared.audience,
    )


def _announce(principal: Principal) -> AcceptedInputs:
    return AcceptedInputs(organisation=principal.organisation, session_id="", changes_feed=True)
