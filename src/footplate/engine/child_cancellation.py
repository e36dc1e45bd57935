"""Cancels the children of sessions that no longer wait for them, and notifies what the cancellation affects.

The API and the workers do it right after the commit that makes it necessary. The sweep repeats it, because their
process may die before.
"""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from footplate.domain.errors import FootplateError
from footplate.domain.ports.child_store import GroupStore, StoppedSessions
from footplate.domain.ports.engine import Chore, Waker
from footplate.domain.sessions.events import Position
from footplate.engine.wake_sessions import wake_sessions

log = structlog.get_logger(__name__)


class ChildCancellation(Chore):
    def __init__(
        self,
        groups: GroupStore,
        waker: Waker,
        nudge: Callable[[str], Awaitable[None]],
        publish: Callable[[str, str, Sequence[Position]], Awaitable[None]],
    ) -> None:
        """`nudge` tells the running turn of a session to check its inputs, and ends a warm process of an ended one.
        `publish` publishes new events of a session.
        """
        self._groups = groups
        self._waker = waker
        self._nudge = nudge
        self._publish = publish

    async def cancel_group(self, group_id: str) -> None:
        await self._cancel(self._groups.cancel(group_id), group=group_id)

    async def cancel_children(self, session_id: str) -> None:
        """Cancel the children of a session whose turn has ended or was interrupted."""
        await self._cancel(self._groups.cancel_abandoned(session_id), session=session_id)

    async def _cancel(self, cancellation: Awaitable[StoppedSessions], **subject: str) -> None:
        """A failure is only logged: what made the cancellation necessary is committed, and the sweep repeats it."""
        try:
            await self.notify(await cancellation)
        except FootplateError as error:
            log.warning(
                "children could not be cancelled; the sweep will cancel them",
                action="children.not_cancelled",
                reason=error.message,
                **subject,
            )

    async def run(self) -> None:
        await self.notify(await self._groups.cancel_abandoned())
        await wake_sessions(self._waker, await self._groups.fill_groups())

    async def notify(self, stopped: StoppedSessions) -> None:
        """Notify streams, workers and other sessions after the commit that stopped these sessions."""
        for organisation, session_id, positions in stopped.to_publish:
            await self._publish(organisation, session_id, positions)
        for session_id in stopped.to_nudge:
            await self._nudge(session_id)
        await wake_sessions(self._waker, stopped.to_wake)
