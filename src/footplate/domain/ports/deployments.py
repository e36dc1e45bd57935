"""The ports (interfaces) through which the engine starts the runs of schedules, and reads which schedules exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.deployments import DeploymentRun, ScheduleState


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """What happened at a time of a schedule."""

    is_current: bool = True
    """Whether the schedule in Temporal is that of the deployment. Otherwise nothing was done."""
    run: DeploymentRun | None = None
    """None: nothing was done, or the run waits for an earlier one."""
    accepted: Sequence[AcceptedInputs] = ()
    """The changes to announce."""


class FiringStore(Protocol):
    async def fire(
        self, organisation: str, deployment_id: str, scheduled_at: datetime, *, schedule: CronSchedule | None
    ) -> Firing:
        """Start the run of a time of the schedule, unless there is one already. `schedule`: that of Temporal; None
        for a run that was buffered.
        """

    async def find_buffered(self) -> Sequence[tuple[str, str, datetime]]:
        """Return organisation, deployment and time of the buffered runs that can start now."""


class ScheduleStore(Protocol):
    async def load(self, deployment_id: str) -> ScheduleState | None: ...
    async def find_unapplied(self, limit: int) -> Sequence[str]:
        """Return deployments whose latest revision Temporal does not have."""

    async def find_unchecked(self, limit: int) -> Sequence[str]:
        """Return the deployments that were not compared with Temporal for the longest time."""

    async def mark_applied(self, state: ScheduleState) -> None:
        """Record that Temporal has this state."""
