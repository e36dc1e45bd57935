"""The `docker` environment of one turn: all processes of the agent run inside one container."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from footplate.environments.base_environment import DEFAULT_GRACE
from footplate.environments.docker import container_owner, container_spec
from footplate.environments.docker.container_connection import Container, ContainerLaunch
from footplate.environments.docker.portable_python import PortablePython
from footplate.environments.docker.rendezvous_socket import RendezvousSocket
from footplate.environments.isolation.cgroups import Cgroup
from footplate.environments.isolation.filesystem_view import FilesystemView
from footplate.environments.isolation.isolated_environment import EnclosedEnvironment
from footplate.environments.isolation.mounted_sockets import MountedSockets
from footplate.environments.leases import Lease
from footplate.environments.processes import command_runner
from footplate.environments.processes.guardian_client import Guardian
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT, CapturedOutput
from footplate.environments.processes.persistent_shell import BASH, SH, ShellDialect
from footplate.environments.processes.spawner_client import Spawner

log = structlog.get_logger(__name__)

_DETECT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerHost:
    """What a worker has prepared on its machine."""

    engine: str
    """The address of the docker engine: `unix://…`."""
    runtime: PortablePython
    rendezvous_dir: Path
    passwd_dir: Path
    dialects: dict[str, ShellDialect] = field(default_factory=dict)
    """The shell dialect, by image or container, once it was determined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStart:
    """How a turn's container is started."""

    image: str
    """The key under which its shell dialect is cached."""
    env: Mapping[str, str]
    """The environment variables of the image."""
    launch: Callable[[str, list[str]], ContainerLaunch]
    """Called with the owner of the container and the limits of its processes."""
    is_new: bool
    """Whether Footplate created the container for this turn and limits it."""


class DockerEnvironment(EnclosedEnvironment):
    backend = "docker"
    noun = "container"

    def __init__(
        self,
        view: FilesystemView,
        host: DockerHost,
        start: Callable[[], Awaitable[ContainerStart]],
        *,
        user: tuple[int, int],
        deadline: float,
        sockets: MountedSockets | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = DEFAULT_GRACE,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        lease: Lease | None = None,
    ) -> None:
        """`start` is awaited at the first command, because it may have to wait until an image is built."""
        super().__init__(view, deadline=deadline, sockets=sockets, grace=grace, output_limit=output_limit, lease=lease)
        self._host = host
        self._start = start
        self._extra_env = dict(env or {})
        self._base_env = self._env
        self._image = ""
        self._is_new = False
        self._user = user
        self._container: Container | None = None

    @property
    def platform(self) -> str:
        return f"{self.noun} {self._image}"

    async def _release_resources(self) -> bool:
        clean = await super()._release_resources()
        await self._wait_until_gone()
        return clean

    async def _create_guardian(self, lease_id: str) -> Guardian:
        return await Guardian.start(self._deadline, user=self._user, lease_id=lease_id)

    async def _start_enclosure(self, guardian: Guardian, *, may_write: bool) -> Container:
        await self._wait_until_gone()
        start = await self._start()
        self._image, self._is_new = start.image, start.is_new
        self._env = {**self._base_env, **start.env, **self._extra_env}
        try:
            owner = container_owner.owner_name(guardian.pid)
        except ProcessLookupError:
            raise guardian.connection_error() from None
        rendezvous = RendezvousSocket(self._host.rendezvous_dir, owner, user=self._user[0])
        launch = start.launch(owner, container_spec.process_limits(self._view, may_write=may_write))
        self._container = await Container.start(guardian, self._host.engine, launch, rendezvous)
        if self._is_new:
            await asyncio.to_thread(self._limit_sockets, self._container.main_pid)
        return self._container

    async def _wait_until_gone(self) -> None:
        if self._container is not None:
            container, self._container = self._container, None
            await container.wait_until_gone()

    def _limit_sockets(self, process: int) -> None:
        """Sets the limit on socket buffers, which engines accept but do not set. Logs a warning if the worker may not
        set it.
        """
        try:
            Cgroup.of_process(process).limit_sockets(self._view.limits)
        except OSError as error:
            log.warning(
                "the container's socket buffers could not be limited", action="container.sockets", reason=str(error)
            )

    def _find_cgroup(self) -> Cgroup | None:
        """Returns the control group of the container. None for a named container, whose weight is not changed."""
        if self._container is None or not self._container.main_pid or not self._is_new:
            return None
        try:
            return Cgroup.of_process(self._container.main_pid)
        except OSError:  # it is gone, or its control groups are not visible from here
            return None

    async def _detect_dialect(self, spawner: Spawner) -> ShellDialect:
        known = self._host.dialects.get(self._image)
        if known is None:
            output = CapturedOutput(4096)
            result = await command_runner.run_command(
                spawner, ["bash", "-c", ":"], cwd="/", env=self._env, stdin=b"",
                time_limit=_DETECT_TIMEOUT, grace=0, output=output,
            )  # fmt: skip
            output.close()
            known = self._host.dialects[self._image] = BASH if result.exit_code == 0 else SH
        return known
