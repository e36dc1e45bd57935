"""Executes a change in one database transaction, and only once, even if the client retries the request.

A retry has the same `Idempotency-Key` header, or the SDK's retry count and the same path and body. It receives the
stored response of the first attempt. If the request has no key, the stored response is deleted once the client has
received it, and an identical later request is treated as a new request.

Other components are notified after the response was sent; if the process dies before that, a periodic scan (the sweep)
wakes the session.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from footplate import failpoints
from footplate.api.requests.parsing import parse_attempt, read_query
from footplate.api.service_container import get_services
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.domain import audit
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs, Notifier, StoredResponse, UnitOfWork

ChangeResult = tuple[JsonObject, AcceptedInputs | None]
"""The response body, and the accepted change to announce after the commit."""

_AUDITED_FIELDS: Final = ("version", "project_ids", "permissions", "visibility", "team_id", "owner")
"""Fields of a changed object that the audit trail records: those that decide which rules apply, and who can see it."""

log = structlog.get_logger(__name__)


async def execute_change(
    request: Request,
    principal: Principal,
    raw: bytes,
    work: Callable[[UnitOfWork], Awaitable[ChangeResult]],
    *,
    audit_action: str | None = None,
) -> Response:
    """Executes `work` in a transaction, stores its response, and notifies other components. A retry receives the
    response of the first attempt.

    Changes that can affect which rules apply to a session name their action for the audit trail.
    """
    read_query(request, NoParameters)
    attempt = parse_attempt(request, raw)
    async with get_services(request).units.unit(principal, attempt) as unit:
        if unit.stored_response is not None:
            return ResponseThenNotify(
                json_response(unit.stored_response.body, status=unit.stored_response.status), request, unit.response_id
            )
        body, accepted = await work(unit)
        if audit_action is not None:
            details = {name: body[name] for name in _AUDITED_FIELDS if body.get(name)}
            await unit.record(principal, audit.build_change_entry(audit_action, str(body["id"]), details))
        if attempt is not None:
            await unit.store_response(StoredResponse(200, body))
    await failpoints.hit("before_answer")
    return ResponseThenNotify(json_response(body), request, unit.response_id, accepted)


class ResponseThenNotify(Response):
    """Sends a response. Then deletes its stored copy, if the client was still connected, and announces the accepted
    change.
    """

    def __init__(
        self, response: Response, request: Request, response_id: int | None, accepted: AcceptedInputs | None = None
    ) -> None:
        super().__init__()
        self._response = response
        self._request = request
        self._response_id = response_id
        self._accepted = accepted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = get_services(self._request)
        delivered = self._response_id is not None and not await self._request.is_disconnected()
        try:
            await self._response(scope, receive, send)
        finally:
            async with asyncio.TaskGroup() as group:
                if self._response_id is not None and delivered:
                    group.create_task(services.units.discard_response(self._response_id))
                if self._accepted is not None:
                    group.create_task(_notify(services.notifier, self._accepted))


async def _notify(notifier: Notifier, accepted: AcceptedInputs) -> None:
    """Announces a committed change. A failure here must not fail the request: the sweep finds the change later."""
    try:
        await notifier.notify_accepted(accepted)
    except Exception:
        log.warning(
            "notification of a committed change failed",
            action="api.notify_failed",
            session=accepted.session_id,
            exc_info=True,
        )
