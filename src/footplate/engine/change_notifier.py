"""Notifies event streams, running turns and workflows after a commit, in the API and in workers."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from footplate.domain.errors import FootplateError
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.ports.engine import Waker
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.turns import SessionToWake
from footplate.engine.child_cancellation import ChildCancellation
from footplate.engine.temporal.deployment_schedules import DeploymentSchedules
from footplate.engine.wake_sessions import wake_sessions


class LiveEvents(Protocol):
    async def publish(self, organisation: str, session_id: str, positions: Sequence[Position]) -> None:
        """Publish committed events."""

    def notify_feed(self, organisation: str) -> None:
        """Notify the readers of the organisation's feed of a change without an event."""


class ChangeNotifier:
    """Notifies event streams, the running turn and the workflow of a commit. Missed notifications are recovered."""

    def __init__(
        self,
        live: LiveEvents,
        nudge: Callable[[str], Awaitable[None]],
        waker: Waker,
        child_cancellation: ChildCancellation,
        schedules: DeploymentSchedules,
    ) -> None:
        self._live = live
        self._schedules = schedules
        self._child_cancellation = child_cancellation
        self._nudge = nudge
        self._waker = waker

    async def notify_accepted(self, accepted: AcceptedInputs) -> None:
        await self._live.publish(accepted.organisation, accepted.session_id, accepted.positions)
        if accepted.changes_feed:
            self._live.notify_feed(accepted.organisation)
        if accepted.nudge:
            await self._nudge(accepted.session_id)
        if accepted.ends_wait:
            with suppress(FootplateError):  # the next attempt obeys the interrupt
                await self._waker.end_wait(accepted.organisation, accepted.session_id)
        if accepted.wake:
            own = SessionToWake(accepted.organisation, accepted.session_id, ends_when_idle=accepted.ends_when_idle)
            await wake_sessions(self._waker, [own])
        elif accepted.prepare:
            with suppress(FootplateError):
                await self._waker.prepare(accepted.organisation, accepted.session_id)
        await wake_sessions(self._waker, accepted.to_wake)
        if accepted.cancelled_group is not None:
            await self._child_cancellation.cancel_group(accepted.cancelled_group)
        if accepted.cancels_children:
            await self._child_cancellation.cancel_children(accepted.session_id)
        if accepted.changed_deployment is not None:
            await self._schedules.apply(accepted.changed_deployment)
