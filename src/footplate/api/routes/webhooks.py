"""`/v1/webhook_endpoints`: manages the URLs that receive the events of sessions, and the deliveries to them.

An endpoint for all sessions needs the role `admin`. An endpoint for one session can be managed by everyone who can
control the session. A response that contains a secret is not stored for retries.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
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
from footplate.api.wire import response_models, webhooks
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.webhooks import (
    DeletedWebhookEndpointResponse,
    ListWebhookDeliveries,
    ListWebhookEndpoints,
    NewWebhookEndpointResponse,
    SecretRotation,
    WebhookDeliveryResponse,
    WebhookEndpointCreate,
    WebhookEndpointResponse,
    WebhookEndpointUpdate,
)
from footplate.domain.organisations.roles import Permission, check_permission
from footplate.domain.organisations.webhooks import DeliveryStatus, WebhookEndpoint, WebhookFormat
from footplate.domain.pagination import Page
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/webhook_endpoints", "webhook_endpoints")


@router.post("", response_model=NewWebhookEndpointResponse, openapi_extra=describe_request(body=WebhookEndpointCreate))
async def create_endpoint(request: Request, principal: Caller) -> Response:
    """Creates an endpoint, which receives the events from now on. The response contains its secret, which cannot be
    read again.
    """
    body, _ = await read_body(request, WebhookEndpointCreate)
    read_query(request, NoParameters)
    services = get_services(request)
    if body.session_id is None:
        check_permission(principal, Permission.MANAGE_MEMBERS)
    else:
        await services.reads.check_session_visible(principal, body.session_id)
    services.webhook_access.check_url(body.url)
    webhooks.check_event_types(body.event_types)
    async with services.units.unit(principal, None) as unit:
        endpoint, secret = await unit.create_webhook_endpoint(
            principal,
            url=body.url,
            session_id=body.session_id,
            description=body.description,
            types=body.event_types,
            webhook_format=WebhookFormat(body.format),
            ordered=body.ordered,
        )
    services.webhooks.endpoints_changed(principal.organisation)
    return json_response({**webhooks.serialize_endpoint(endpoint), "secret": secret})


@router.get(
    "",
    response_model=response_models.Listing[WebhookEndpointResponse],
    openapi_extra=describe_request(query=ListWebhookEndpoints),
)
async def list_endpoints(request: Request, principal: Caller) -> Response:
    """Lists the endpoints of the sessions that the caller can see. Administrators see all endpoints."""
    query = read_query(request, ListWebhookEndpoints)
    read = partial(get_services(request).reads.webhook_endpoints, principal, session_id=query.session_id)
    return await pagination.list_newest_first(
        "webhook_endpoints", Page(limit=query.limit), query.page, read, webhooks.serialize_endpoint
    )


@router.get("/{endpoint_id}", response_model=WebhookEndpointResponse)
async def retrieve_endpoint(request: Request, endpoint_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    found = await get_services(request).reads.webhook_endpoint(principal, endpoint_id)
    return json_response(webhooks.serialize_endpoint(found))


@router.post(
    "/{endpoint_id}",
    response_model=WebhookEndpointResponse,
    openapi_extra=describe_request(body=WebhookEndpointUpdate),
)
async def update_endpoint(request: Request, endpoint_id: str, principal: Caller) -> Response:
    """Changes an endpoint, or disables or enables it. Deliveries that are pending use the new values."""
    body, raw = await read_body(request, WebhookEndpointUpdate)
    services = get_services(request)
    if "url" in body.model_fields_set:
        services.webhook_access.check_url(body.url)
    if "event_types" in body.model_fields_set:
        webhooks.check_event_types(body.event_types)

    async def work(unit: UnitOfWork) -> ChangeResult:
        endpoint = await unit.update_webhook_endpoint(principal, endpoint_id, partial(_apply_update, body))
        return webhooks.serialize_endpoint(endpoint), None

    response = await execute_change(request, principal, raw, work)
    services.webhooks.endpoints_changed(principal.organisation)
    return response


def _apply_update(body: WebhookEndpointUpdate, endpoint: WebhookEndpoint) -> WebhookEndpoint:
    sent = body.model_fields_set
    is_disabled = body.disabled if "disabled" in sent else endpoint.disabled_at is not None
    return replace(
        endpoint,
        url=body.url if "url" in sent else endpoint.url,
        description=body.description if "description" in sent else endpoint.description,
        types=body.event_types if "event_types" in sent else endpoint.types,
        format=WebhookFormat(body.format) if "format" in sent else endpoint.format,
        ordered=body.ordered if "ordered" in sent else endpoint.ordered,
        disabled_at=datetime.now(UTC) if is_disabled else None,
    )


@router.delete("/{endpoint_id}", response_model=DeletedWebhookEndpointResponse)
async def delete_endpoint(request: Request, endpoint_id: str, principal: Caller) -> Response:
    """Deletes an endpoint with its deliveries. Those that are pending are not sent any more."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.delete_webhook_endpoint(principal, endpoint_id)
        return {"id": endpoint_id, "type": "webhook_endpoint_deleted"}, None

    return await execute_change(request, principal, raw, work)


@router.post(
    "/{endpoint_id}/rotate_secret",
    response_model=NewWebhookEndpointResponse,
    openapi_extra=describe_request(body=SecretRotation),
)
async def rotate_secret(request: Request, endpoint_id: str, principal: Caller) -> Response:
    """Replaces the secret. The response contains the new one. Until the overlap ends, both secrets sign each event."""
    body, _ = await read_body(request, SecretRotation)
    read_query(request, NoParameters)
    async with get_services(request).units.unit(principal, None) as unit:
        endpoint, secret = await unit.rotate_webhook_secret(
            principal, endpoint_id, overlap=timedelta(seconds=body.overlap_seconds)
        )
    return json_response({**webhooks.serialize_endpoint(endpoint), "secret": secret})


@router.post("/{endpoint_id}/test", response_model=WebhookDeliveryResponse)
async def test_endpoint(request: Request, endpoint_id: str, principal: Caller) -> Response:
    """Sends an event of the type `webhook.test`. The response is its delivery, which is still pending."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        return webhooks.serialize_delivery(await unit.test_webhook_endpoint(principal, endpoint_id)), None

    response = await execute_change(request, principal, raw, work)
    get_services(request).webhooks.endpoints_changed(principal.organisation)
    return response


@router.get(
    "/{endpoint_id}/deliveries",
    response_model=response_models.Listing[WebhookDeliveryResponse],
    openapi_extra=describe_request(query=ListWebhookDeliveries),
)
async def list_deliveries(request: Request, endpoint_id: str, principal: Caller) -> Response:
    """Lists the deliveries of the last days, newest first."""
    query = read_query(request, ListWebhookDeliveries)
    status = None if query.status is None else DeliveryStatus(query.status)
    read = partial(get_services(request).reads.webhook_deliveries, principal, endpoint_id, status=status)
    return await pagination.list_newest_first(
        "webhook_deliveries", Page(limit=query.limit), query.page, read, webhooks.serialize_delivery
    )


@router.get("/{endpoint_id}/deliveries/{delivery_id}", response_model=WebhookDeliveryResponse)
async def retrieve_delivery(request: Request, endpoint_id: str, delivery_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    found = await get_services(request).reads.webhook_delivery(principal, endpoint_id, delivery_id)
    return json_response(webhooks.serialize_delivery(found))


@router.post("/{endpoint_id}/deliveries/{delivery_id}/replay", response_model=WebhookDeliveryResponse)
async def replay_delivery(request: Request, endpoint_id: str, delivery_id: str, principal: Caller) -> Response:
    """Sends a delivery again, with the same `webhook-id`, whether it was delivered or has failed."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        delivery = await unit.replay_webhook_delivery(principal, endpoint_id, delivery_id)
        return webhooks.serialize_delivery(delivery), None

    response = await execute_change(request, principal, raw, work)
    get_services(request).webhooks.endpoints_changed(principal.organisation)
    return response
