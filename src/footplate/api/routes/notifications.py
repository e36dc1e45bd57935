"""`/v1/notification_settings` and `/v1/push_subscriptions`: the caller's notifications, in browsers and as a whole.

A caller reads and changes only its own notifications, whatever its roles are.
"""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller, extract_secret
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_query
from footplate.api.routes.sign_in.browser_sessions import describe_browser
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import notifications as wire
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.notifications import (
    DeletedPushSubscription,
    NotificationSettingsResponse,
    NotificationSettingsUpdate,
    PushSubscriptionCreate,
    PushSubscriptionResponse,
    PushTestResponse,
)
from footplate.domain.ports.api import UnitOfWork
from footplate.domain.sessions.notifications import NewPushSubscription, NotificationSettings

router = create_router("", "notifications")


@router.get("/v1/notification_settings", response_model=NotificationSettingsResponse)
async def retrieve_settings(request: Request, principal: Caller) -> Response:
    """Returns whether and when the caller receives notifications, and the key with which a browser subscribes."""
    read_query(request, NoParameters)
    services = get_services(request)
    settings = await services.reads.notification_settings(principal)
    return json_response(wire.serialize_settings(settings, (await services.push_keys.load()).public))


@router.post(
    "/v1/notification_settings",
    response_model=NotificationSettingsResponse,
    openapi_extra=describe_request(body=NotificationSettingsUpdate),
)
async def update_settings(request: Request, principal: Caller) -> Response:
    """Changes whether and when the caller receives notifications."""
    body, raw = await read_body(request, NotificationSettingsUpdate)
    services = get_services(request)
    quiet = None if body.quiet_hours is None else body.quiet_hours.to_domain()
    if quiet is not None:
        quiet.check()
    public_key = (await services.push_keys.load()).public

    def change(old: NotificationSettings) -> NotificationSettings:
        return NotificationSettings(
            body.enabled if "enabled" in body.model_fields_set else old.is_enabled,
            quiet if "quiet_hours" in body.model_fields_set else old.quiet_hours,
        )

    async def work(unit: UnitOfWork) -> ChangeResult:
        settings = await unit.update_notification_settings(principal, change)
        return wire.serialize_settings(settings, public_key), None

    response = await execute_change(request, principal, raw, work)
    services.webhooks.endpoints_changed(principal.organisation)
    return response


@router.get("/v1/push_subscriptions", response_model=response_models.Listing[PushSubscriptionResponse])
async def list_subscriptions(request: Request, principal: Caller) -> Response:
    """Lists the browsers in which the caller receives notifications, the newest first."""
    read_query(request, NoParameters)
    found = await get_services(request).reads.push_subscriptions(principal)
    return list_response([wire.serialize_subscription(each) for each in found], next_page=None)


@router.post(
    "/v1/push_subscriptions",
    response_model=PushSubscriptionResponse,
    openapi_extra=describe_request(body=PushSubscriptionCreate),
)
async def save_subscription(request: Request, principal: Caller) -> Response:
    """Subscribes a browser, or renews its subscription: the one with the same endpoint. It receives what is added to
    the inbox from now on.
    """
    body, raw = await read_body(request, PushSubscriptionCreate)
    services = get_services(request)
    services.webhook_access.check_url(body.endpoint, "endpoint")
    profile = await services.browser_sessions.load_profile(principal, extract_secret(request))
    new = NewPushSubscription(
        url=body.endpoint,
        p256dh=body.keys.p256dh,
        auth=body.keys.auth,
        user_agent=describe_browser(request).user_agent,
        api_key_id=profile.key_id if profile.session_id is None else None,
        browser_session_id=profile.session_id,
    )

    async def work(unit: UnitOfWork) -> ChangeResult:
        return wire.serialize_subscription(await unit.save_push_subscription(principal, new)), None

    response = await execute_change(request, principal, raw, work)
    services.webhooks.endpoints_changed(principal.organisation)
    return response


@router.delete("/v1/push_subscriptions/{subscription_id}", response_model=DeletedPushSubscription)
async def delete_subscription(request: Request, subscription_id: str, principal: Caller) -> Response:
    """Ends the notifications in a browser. Nothing is sent to it any more."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        await unit.delete_push_subscription(principal, subscription_id)
        return {"id": subscription_id, "type": "push_subscription_deleted"}, None

    return await execute_change(request, principal, raw, work)


@router.post("/v1/push_subscriptions/{subscription_id}/test", response_model=PushTestResponse)
async def test_subscription(request: Request, subscription_id: str, principal: Caller) -> Response:
    """Sends a notification that only tests the browser, also in quiet hours."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        delivery = await unit.test_push_subscription(principal, subscription_id)
        return {"id": delivery.id, "type": "push_test"}, None

    response = await execute_change(request, principal, raw, work)
    get_services(request).webhooks.endpoints_changed(principal.organisation)
    return response
