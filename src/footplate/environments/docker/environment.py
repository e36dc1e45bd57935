"""The `docker` environment of one turn: all processes of the agent run inside one container."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from footplate.environments import commands
from footplate.environments.docker import body, holders
from footplate.environments.docker.container import Container, Launch
from footplate.environments.docker.meeting import Meeting
from footplate.environments.docker.runtime import Runtime
from footplate.environments.doors import Doors
from footplate.environments.enclosed import EnclosedEnvironment
from footplate.environments.guarded import GRACE
from footplate.environments.guardian import Guardian
from footplate.environments.output import DEFAULT_LIMIT, Output
from footplate.environments.reaper.leases import Lease
from footplate.environments.sandbox.cgroups import Cgroup
from footplate.environments.sandbox.view import View
from footplate.environments.shell import BASH, SH, Dialect
from footplate.environments.spawner import Spawner

log = structlog.get_logger(__name__)

_LOOK_LIMIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What a worker has prepared on its machine."""

    engine: str
    """The address of the docker engine: `unix://…`."""
    runtime: Runtime
    sockets: Path
    users: Path
    dialects: dict[str, Dialect] = field(default_factory=dict)
    """The shell dialect, by image or container, once it was determined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a turn's container is started."""

    image: str
    """The key under which its shell dialect is cached."""
    env: Mapping[str, str]
    """The environment variables of the image."""
    launch: Callable[[str, list[str]], Launch]
    """Called with the owner of the container and the limits of its processes."""
    ours: bool
    """Whether Footplate created the container for this turn and limits it."""


class DockerEnvironment(EnclosedEnvironment):
    noun = "container"

    def __init__(
        self,
        view: View,
        host: Host,
        start: Callable[[], Awaitable[Start]],
        *,
        user: tuple[int, int],
        deadline: float,
        sockets: Doors | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = GRACE,
        output_limit: int = DEFAULT_LIMIT,
        lease: Lease | None = None,
    ) -> None:
        """`start` is awaited at the first command, because it may have to wait until an image is built."""
        super().__init__(view, deadline=deadline, sockets=sockets, grace=grace, output_limit=output_limit, lease=lease)
        self._host = host
        self._start = start
        self._given = dict(env or {})
        self._base = self._env
        self._image = ""
        self._ours = False
        self._user = user
        self._container: Container | None = None

    async def _end(self) -> bool:
        clean = await super()._end()
        await self._see_it_gone()
        return clean

    async def _guard(self, lease_id: str) -> Guardian:
        return await Guardian.start(self._deadline, user=self._user, lease_id=lease_id)

    async def _enclose(self, guardian: Guardian, *, may_write: bool) -> Container:
        await self._see_it_gone()
        start = await self._start()
        self._image, self._ours = start.image, start.ours
        self._env = {**self._base, **start.env, **self._given}
        try:
            owner = holders.name(guardian.pid)
        except ProcessLookupError:
            raise guardian.loss() from None
        rendezvous = Meeting(self._host.sockets, owner, user=self._user[0])
        launch = start.launch(owner, body.process_limits(self._view, may_write=may_write))
        self._container = await Container.start(guardian, self._host.engine, launch, rendezvous)
        if self._ours:
            await asyncio.to_thread(self._limit_sockets, self._container.process)
        return self._container

    async def _see_it_gone(self) -> None:
        if self._container is not None:
            container, self._container = self._container, None
            await container.gone()

    def _limit_sockets(self, process: int) -> None:
        """Sets the limit on socket buffers, which engines accept but do not set. Logs a warning if the worker may not
        set it.
        """
        try:
            Cgroup.of(process).limit_sockets(self._view.limits)
        except OSError as error:
            log.warning("socket buffers are not limited", action="container.sockets", reason=str(error))

    def _group(self) -> Cgroup | None:
        """Returns the control group of the container. None for a named container, whose weight is not changed."""
        if self._container is None or not self._container.process or not self._ours:
            return None
        try:
            return Cgroup.of(self._container.process)
        except OSError:  # it is gone, or its control groups are not visible from here
            return None

    async def _dialect(self, spawner: Spawner) -> Dialect:
        known = self._host.dialects.get(self._image)
        if known is None:
            output = Output(4096)
            result = await commands.run(
                spawner, ["bash", "-c", ":"], cwd="/", env=self._env, stdin=b"",
                time_limit=_LOOK_LIMIT, grace=0, output=output,
            )  # fmt: skip
            output.close()
            known = self._host.dialects[self._image] = BASH if result.exit_code == 0 else SH
        return known
