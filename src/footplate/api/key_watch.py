"""Ends a stream whose API key was revoked: a stream outlives the request that checked its key by hours."""

import asyncio
from typing import Final

import structlog
from starlette.requests import HTTPConnection

from footplate.api.auth import secret_of
from footplate.api.services import services_of
from footplate.domain.errors import FootplateError, Unauthenticated
from footplate.domain.principals import Principal

CHECK_SECONDS: Final = 5.0
"""Between two checks. The server remembers a key for some seconds, so a stream ends within 15 seconds."""

log = structlog.get_logger(__name__)


async def wait_for_revocation(connection: HTTPConnection, principal: Principal, secret: str | None = None) -> None:
    """Return when the key that opened the connection is no longer one of its organisation.

    A database that cannot be asked is no reason to end a stream: the key is checked again a moment later.
    """
    secret, keys = secret or secret_of(connection), services_of(connection).keys
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            if (await keys.authenticate(secret)).organisation != principal.organisation:
                return
        except Unauthenticated:
            return
        except (FootplateError, OSError) as error:
            log.warning("key not checked", action="api.key_not_checked", reason=repr(error))


def revoked() -> Unauthenticated:
    """What the client is told when its stream ends."""
    return Unauthenticated("The API key of this stream was revoked.", help_text="Connect again with another API key.")
