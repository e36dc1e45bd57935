"""Opens the environment of a turn on the backend that the session, or the turn, has chosen."""

from collections.abc import Mapping, Sequence

from footplate.domain.agents.environment_config import EnvironmentConfig, find_missing_backend, resolve_backend
from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import NO_FILES, SessionFiles
from footplate.domain.ports.engine import Environments, ModelGrant, OpenEnvironment
from footplate.domain.projects.project import SessionProject


class OfferedBackends(Environments):
    """The backends that a worker offers. A turn on any other one is refused: it never runs on another backend than the
    one that was chosen.
    """

    def __init__(self, backends: Mapping[str, Environments]) -> None:
        """`backends` are by name. The first one is the default."""
        self._backends = backends

    async def open_environment(
        self,
        organisation: str,
        session_id: str,
        *,
        deadline: float,
        variables: Mapping[str, str],
        config: EnvironmentConfig,
        models: ModelGrant,
        projects: Sequence[SessionProject] = (),
        files: SessionFiles = NO_FILES,
    ) -> OpenEnvironment:
        names = list(self._backends)
        if (missing := find_missing_backend(config, names)) is not None:
            raise Permanent(
                f"This worker does not offer the backend `{missing}`.",
                help_text="Add it to FOOTPLATE_BACKENDS of the worker, or choose another one for the session.",
            )
        return await self._backends[resolve_backend(config, names[0])].open_environment(
            organisation,
            session_id,
            deadline=deadline,
            variables=variables,
            config=config,
            models=models,
            projects=projects,
            files=files,
        )
