"""Ends an open stream when its API key is revoked, may no longer read, or can no longer see the session. A stream can
stay open for hours after that was checked.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from starlette.requests import HTTPConnection

from footplate.api.auth import extract_secret
from footplate.api.requests.route_permissions import check_route
from footplate.api.service_container import ApiServices, get_services
from footplate.domain.errors import FootplateError, Forbidden, Unauthenticated
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, check_permission
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.sessions.feed import FeedViewer

CHECK_SECONDS: Final = 2.0
"""Interval between two checks. The server caches a key for 2 seconds, so a stream ends within 5 seconds."""

log = structlog.get_logger(__name__)


async def wait_for_revocation(
    connection: HTTPConnection, principal: Principal, secret: str | None = None, *, route: tuple[str, str] | None = None
) -> None:
    """Returns when the key that opened the connection is revoked, has lost its roles, no longer belongs to the
    organisation, can no longer see the session, or may no longer use `route`.

    If the database is unreachable, the stream stays open and the key is checked again at the next interval.
    """
    secret, services = secret or extract_secret(connection), get_services(connection)
    session_id: str = connection.path_params["session_id"]

    async def check(current: Principal) -> bool:
        if route is not None:
            check_route(current, *route)
        return await services.watched_sessions.is_visible(services.reads, current, session_id)

    with services.watched_sessions.watch(principal, session_id):
        await _check_until_revoked(services, principal, secret, check)


async def update_viewer_until_revoked(connection: HTTPConnection, principal: Principal, viewer: FeedViewer) -> None:
    """Updates what a viewer of the feed can see, when the teams of its principal or the restrictions of its key change.
    Returns when the key is revoked.
    """

    async def update(current: Principal) -> bool:
        viewer.view = ViewFilter.of(current)
        return True

    await _check_until_revoked(get_services(connection), principal, extract_secret(connection), update)


async def _check_until_revoked(
    services: ApiServices, principal: Principal, secret: str, check: Callable[[Principal], Awaitable[bool]]
) -> None:
    """Returns when the key is not valid any more, or `check` returns False for its current principal."""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            current = await services.keys.authenticate(secret)
            check_permission(current, Permission.VIEW)
            if current.organisation != principal.organisation or not await check(current):
                return
        except (Unauthenticated, Forbidden):
            return
        except (FootplateError, OSError) as error:
            log.warning(
                "API key of an open stream could not be checked", action="api.key_not_checked", reason=repr(error)
            )


def revoked_key_error() -> Unauthenticated:
    """Builds the error that the client receives when its stream ends."""
    return Unauthenticated(
        "The API key or browser session of this stream has ended or lost its roles, or can no longer see the session.",
        help_text="Reconnect with a valid API key, or sign in again.",
    )
