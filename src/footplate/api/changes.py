"""The one way to change something: a transaction that takes effect once, however often the request is tried.

A retry gets the answer that its first try did not deliver. So an answer that reached its client is forgotten at
once: the same request sent again on purpose is another one.

The client waits for the commit and for nothing else. Whom it concerns is told when the answer is out; a process that
dies in between has promised nothing that the log does not hold, and the sweep wakes what was not woken.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from footplate import failpoints
from footplate.api.replies import reply
from footplate.api.requests import attempt_of, read_query
from footplate.api.services import services_of
from footplate.api.wire.lists import NoParameters
from footplate.domain import audit
from footplate.domain.json import JsonObject
from footplate.domain.principals import Principal
from footplate.domain.services import Accepted, Answer, Notifier, Unit

Changed = tuple[JsonObject, Accepted | None]
"""What to answer, and what others must be told once it is committed."""

_AUDITED: Final = ("version", "project_ids", "permissions")
"""What the audit trail has of a changed item: whatever decides which rules apply."""

log = structlog.get_logger(__name__)


async def change(
    request: Request,
    principal: Principal,
    raw: bytes,
    work: Callable[[Unit], Awaitable[Changed]],
    *,
    audited: str | None = None,
) -> Response:
    """Answer a retry with the first try's answer; otherwise do the work, remember its answer, then tell others.

    `audited`: the action's name in the audit trail, for what may change which rules apply to a session.
    """
    read_query(request, NoParameters)
    attempt = attempt_of(request, raw)
    async with services_of(request).units.unit(principal, attempt) as unit:
        if unit.replay is not None:
            return _Delivery(reply(unit.replay.body, status=unit.replay.status), request, unit.answer_id)
        body, accepted = await work(unit)
        if audited is not None:
            details = {name: body[name] for name in _AUDITED if body.get(name)}
            await unit.record(principal, audit.change(audited, str(body["id"]), details))
        if attempt is not None:
            await unit.remember(Answer(200, body))
    await failpoints.hit("before_answer")
    return _Delivery(reply(body), request, unit.answer_id, accepted)


class _Delivery(Response):
    """Sends an answer; then forgets it, if the client was still there to take it, and tells what was accepted."""

    def __init__(
        self, answer: Response, request: Request, answer_id: int | None, accepted: Accepted | None = None
    ) -> None:
        super().__init__()
        self._answer = answer
        self._request = request
        self._answer_id = answer_id
        self._accepted = accepted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = services_of(self._request)
        delivered = self._answer_id is not None and not await self._request.is_disconnected()
        try:
            await self._answer(scope, receive, send)
        finally:
            async with asyncio.TaskGroup() as group:
                if self._answer_id is not None and delivered:
                    group.create_task(services.units.delivered(self._answer_id))
                if self._accepted is not None:
                    group.create_task(_tell(services.notifier, self._accepted))


async def _tell(notifier: Notifier, accepted: Accepted) -> None:
    """It is committed: whatever goes wrong here is healed by the sweep, and must not look like a failure."""
    try:
        await notifier.accepted(accepted)
    except Exception:
        log.warning("could not notify", action="api.notify_failed", session=accepted.session_id, exc_info=True)
