"""Cancels the children of sessions that no longer wait for them, and notifies what the cancellation affects.

The API and the workers do it right after the commit that makes it necessary. The sweep repeats it, because their
process may die before.
"""

from collections.abc import Awaitable, Callable

from footplate.domain.ports.child_store import GroupStore, StoppedSessions
from footplate.domain.ports.engine import Chore, Waker
from footplate.engine.wake_sessions import wake_sessions


class ChildCancellation(Chore):
    def __init__(self, groups: GroupStore, waker: Waker, nudge: Callable[[str], Awaitable[None]]) -> None:
        """`nudge` tells the running turn of a session to check its inputs."""
        self._groups = groups
        self._waker = waker
        self._nudge = nudge

    async def cancel_group(self, group_id: str) -> None:
        await self._notify(await self._groups.cancel(group_id))

    async def cancel_children(self, session_id: str) -> None:
        """Cancel the children of a session whose turn has ended or was interrupted."""
        await self._notify(await self._groups.cancel_abandoned(session_id))

    async def run(self) -> None:
        await self._notify(await self._groups.cancel_abandoned())
        await wake_sessions(self._waker, await self._groups.fill_groups(), ends_when_idle=True)

    async def _notify(self, stopped: StoppedSessions) -> None:
        for session_id in stopped.to_nudge:
            await self._nudge(session_id)
        await wake_sessions(self._waker, stopped.to_wake, ends_when_idle=True)
