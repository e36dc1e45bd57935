"""The one way to change something: a transaction that takes effect once, however often the request is tried."""

from collections.abc import Awaitable, Callable

import structlog
from fastapi import Request
from starlette.responses import Response

from footplate.api.replies import reply
from footplate.api.requests import attempt_of, read_query
from footplate.api.services import services_of
from footplate.api.wire.lists import NoParameters
from footplate.domain.json import JsonObject
from footplate.domain.principals import Principal
from footplate.domain.services import Accepted, Answer, Notifier, Unit

Changed = tuple[JsonObject, Accepted | None]
"""What to answer, and what others must be told once it is committed."""

log = structlog.get_logger(__name__)


async def change(
    request: Request, principal: Principal, raw: bytes, work: Callable[[Unit], Awaitable[Changed]]
) -> Response:
    """Answer a retry with the first try's answer; otherwise do the work, remember its answer, then tell others."""
    read_query(request, NoParameters)
    services = services_of(request)
    attempt = attempt_of(request, raw)
    async with services.units.unit(principal, attempt) as unit:
        if unit.replay is not None:
            return reply(unit.replay.body, status=unit.replay.status)
        body, accepted = await work(unit)
        if attempt is not None:
            await unit.remember(Answer(200, body))
    if accepted is not None:
        await _tell(services.notifier, accepted)
    return reply(body)


async def _tell(notifier: Notifier, accepted: Accepted) -> None:
    """It is committed: whatever goes wrong here is healed by the sweep, and must not look like a failure."""
    try:
        await notifier.accepted(accepted)
    except Exception:
        log.warning("could not notify", action="api.notify_failed", session=accepted.session_id, exc_info=True)
