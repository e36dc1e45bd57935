"""Wakes sessions after a commit that gave them work. A session that cannot be woken is found by the sweep."""

from collections.abc import Iterable

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.ports.engine import Waker

log = structlog.get_logger(__name__)


async def wake_sessions(waker: Waker, sessions: Iterable[tuple[str, str]], *, ends_when_idle: bool = False) -> None:
    """Wake each session, given by its organisation and id."""
    for organisation, session_id in sessions:
        try:
            await waker.wake(organisation, session_id, ends_when_idle=ends_when_idle)
        except FootplateError as error:
            log.warning(
                "session could not be woken; the sweep will wake it",
                action="wake.failed",
                session=session_id,
                reason=error.message,
            )
