"""The resources of a turn: its environment and its permission to call models. Opened for a turn or ahead of it."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from footplate.domain import environments
from footplate.domain.ports import Kept
from footplate.domain.running import Claim, Environments, ModelAccess, ModelGrant, OpenEnvironment
from footplate.engine.late_environment import LateEnvironment


@dataclass(slots=True)
class Lodging:
    """An environment, a model grant, and the process that a harness left running in it, if any."""

    environment: OpenEnvironment
    models: ModelGrant
    harness: Kept | None = None
    since: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """Start to count the waiting time."""
        self.since = time.monotonic()

    @property
    def age(self) -> float:
        return time.monotonic() - self.since

    async def aclose(self) -> None:
        """Close everything. Closing the environment also ends processes that the harness did not end."""
        if self.harness is not None:
            harness, self.harness = self.harness, None
            with contextlib.suppress(Exception):
                await harness.aclose()
        try:
            await self.environment.aclose()
        finally:
            await self.models.aclose()


async def lodge(
    places: Environments,
    models: ModelAccess,
    claim: Claim,
    *,
    deadline: float,
    check_lease: Callable[[], None] | None = None,
) -> Lodging:
    """Open the resources of a turn. With `check_lease`, the environment is opened at its first use, and only while the
    turn holds its lease.
    """
    grant = models.grant(deadline=deadline)

    async def open_environment(deadline: float) -> OpenEnvironment:
        return await places.open(
            claim.organisation,
            claim.session_id,
            deadline=deadline,
            variables=_variables(claim),
            config=environments.load(claim.config.environment),
            models=grant,
            projects=claim.config.projects,
            files=claim.files,
        )

    try:
        environment = (
            await open_environment(deadline)
            if check_lease is None
            else LateEnvironment(open_environment, deadline, check_lease)
        )
    except BaseException:
        await grant.aclose()
        raise
    return Lodging(environment, grant)


def _variables(claim: Claim) -> dict[str, str]:
    """Return the environment variables that describe the turn to its tools, including the caller's context."""
    return {
        "FOOTPLATE_SESSION_ID": claim.session_id,
        "FOOTPLATE_TURN_ID": claim.turn_id,
        "FOOTPLATE_CONTEXT": json.dumps(claim.context),
    }
