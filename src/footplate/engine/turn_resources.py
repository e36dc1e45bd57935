"""The resources of a turn: its environment and its permission to call models. They are opened when the turn starts, or
earlier by prewarming.
"""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from footplate.domain.ports.engine import (
    Claim,
    Environments,
    ModelAccess,
    ModelGrant,
    OpenEnvironment,
    OpenRequest,
    OutputDirectories,
)
from footplate.domain.ports.harness import WarmProcess
from footplate.engine.lazy_environment import LazyEnvironment


@dataclass(slots=True)
class TurnResources:
    """An environment, a model grant, and the process that a harness left running in it, if any."""

    environment: OpenEnvironment
    models: ModelGrant
    warm_process: WarmProcess | None = None
    waiting_since: float = field(default_factory=time.monotonic)

    def start_waiting(self) -> None:
        """Start to count the waiting time."""
        self.waiting_since = time.monotonic()

    @property
    def waiting_seconds(self) -> float:
        return time.monotonic() - self.waiting_since

    async def aclose(self) -> None:
        """Close everything. Closing the environment also ends processes that the harness did not end."""
        if self.warm_process is not None:
            warm_process, self.warm_process = self.warm_process, None
            with contextlib.suppress(Exception):
                await warm_process.aclose()
        try:
            await self.environment.aclose()
        finally:
            await self.models.aclose()


async def open_turn_resources(
    environment_factory: Environments,
    models: ModelAccess,
    claim: Claim,
    *,
    deadline: float,
    check_lease: Callable[[], None] | None = None,
    output_directories: OutputDirectories | None = None,
) -> TurnResources:
    """Open the resources of a turn. With `check_lease`, the environment is opened at its first use, and only while the
    turn holds its lease. `output_directories` restores the session's outputs before anything runs.
    """
    grant = models.grant(deadline=deadline, organisation=claim.organisation)

    async def open_environment(deadline: float) -> OpenEnvironment:
        environment = await environment_factory.open_environment(
            OpenRequest(
                organisation=claim.organisation,
                session_id=claim.session_id,
                deadline=deadline,
                variables=_variables(claim),
                config=claim.config.environment_config,
                models=grant,
                projects=claim.config.projects,
                files=claim.files,
            )
        )
        environment.restore_shell(claim.shell)
        if output_directories is not None and environment.outputs is not None:
            try:
                await output_directories.restore(
                    claim.organisation, claim.session_id, environment.outputs, claim.files.outputs
                )
            except BaseException:
                await environment.aclose()
                raise
        return environment

    try:
        environment = (
            await open_environment(deadline)
            if check_lease is None
            else LazyEnvironment(open_environment, deadline, check_lease)
        )
    except BaseException:
        await grant.aclose()
        raise
    return TurnResources(environment, grant)


def _variables(claim: Claim) -> dict[str, str]:
    """Return the environment variables that describe the turn to its tools, including the caller's context."""
    return {
        "FOOTPLATE_SESSION_ID": claim.session_id,
        "FOOTPLATE_TURN_ID": claim.turn_id,
        "FOOTPLATE_CONTEXT": json.dumps(claim.context),
    }
