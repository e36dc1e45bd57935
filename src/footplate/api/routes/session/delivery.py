"""`/v1/sessions/{id}/merge`, `…/push` and `…/bundle`: deliver a session's work as git commits.

Deliveries do not run in a database transaction, because git may take a while and merges wait for each other. Retries
are safe: the same files give the same commit, and a branch that already has the commit does not change.
"""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.streams.resource_stream_response import stream_resource
from footplate.api.wire import response_models
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.session import delivery
from footplate.api.wire.session.delivery import BUNDLE_MEDIA_TYPE, ReadBundle, SessionMerge, SessionPush
from footplate.domain.files.delivery import DeliveryRequest, MergeConflict
from footplate.domain.json import as_objects
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.sessions.inbox import ConflictingMerge

router = create_router("/v1/sessions/{session_id}", "sessions")


@router.post("/merge", response_model=response_models.SessionLeft, openapi_extra=describe_request(body=SessionMerge))
async def merge_session(request: Request, session_id: str, principal: Caller) -> Response:
    """Merges the session's work into a branch of the project's repository. Merges into the same branch run one at a
    time. A merge either completes or changes nothing. A conflict is in the inbox until a merge into the branch succeeds
    or the session runs again.
    """
    body, _ = await read_body(request, SessionMerge)
    service = get_services(request).delivery
    options, target = delivery.parse_merge(body)
    delivery_request = await service.find_delivery(principal.organisation, session_id, options)
    project_id = delivery_request.project.id
    try:
        result = await service.merge(principal.name, delivery_request, target)
    except MergeConflict as error:
        files = as_objects(error.fields["conflicts"])
        conflict = ConflictingMerge(branch=error.branch, message=error.message, files=files)
        async with get_services(request).units.unit(principal, None) as unit:
            await unit.record_merge_conflict(principal, session_id, project_id, conflict)
        await _announce(request, principal, session_id)
        raise
    async with get_services(request).units.unit(principal, None) as unit:
        is_resolved = await unit.remove_merge_conflict(session_id, project_id, result.branch)
    if is_resolved:
        await _announce(request, principal, session_id)
    return json_response(delivery.serialize_delivery(delivery_request, result))


async def _announce(request: Request, principal: Principal, session_id: str) -> None:
    changed = AcceptedInputs(organisation=principal.organisation, session_id=session_id, changes_feed=True)
    await get_services(request).notifier.notify_accepted(changed)


@router.post("/push", response_model=response_models.SessionLeft, openapi_extra=describe_request(body=SessionPush))
async def push_session(request: Request, session_id: str, principal: Caller) -> Response:
    """Pushes the session's work as a new branch to the project's repository."""
    body, _ = await read_body(request, SessionPush)
    service = get_services(request).delivery
    options, target = delivery.parse_push(body)
    delivery_request = await service.find_delivery(principal.organisation, session_id, options)
    return json_response(
        delivery.serialize_delivery(delivery_request, await service.push(principal.name, delivery_request, target))
    )


@router.get(
    "/bundle", responses={200: {"content": {BUNDLE_MEDIA_TYPE: {}}}}, openapi_extra=describe_request(query=ReadBundle)
)
async def read_bundle(request: Request, session_id: str, principal: Caller) -> Response:
    """Returns the session's commits as a git bundle. You can fetch it into any repository that has the base commit."""
    query = read_query(request, ReadBundle)
    service = get_services(request).delivery
    delivery_request = await service.find_delivery(
        principal.organisation, session_id, DeliveryRequest(project_id=query.project_id, writes=False)
    )
    return await stream_resource(service.bundle(delivery_request), media_type=BUNDLE_MEDIA_TYPE)
