"""Opens the environment of a turn on the backend that the session, or the turn, has chosen."""

from collections.abc import Mapping

from footplate.domain.agents.environment_config import find_missing_backend, resolve_backend
from footplate.domain.errors import Permanent
from footplate.domain.ports.engine import Environments, OpenEnvironment, OpenRequest


class OfferedBackends(Environments):
    """The backends that a worker offers. A turn on any other one is refused: it never runs on another backend than the
    one that was chosen.
    """

    def __init__(self, backends: Mapping[str, Environments]) -> None:
        """`backends` are by name. The first one is the default."""
        self._backends = backends

    async def open_environment(self, request: OpenRequest) -> OpenEnvironment:
        names = list(self._backends)
        if (missing := find_missing_backend(request.config, names)) is not None:
            raise Permanent(
                f"This worker does not offer the backend `{missing}`.",
                help_text="Add it to FOOTPLATE_BACKENDS of the worker, or choose another one for the session.",
            )
        return await self._backends[resolve_backend(request.config, names[0])].open_environment(request)
