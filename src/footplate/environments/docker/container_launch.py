"""Starts the init process of a turn: in a new container, or in a running container that the operator named."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import aiodocker
import structlog
from aiodocker.stream import Stream

from footplate.environments.docker import container_spec
from footplate.environments.docker.engine_api import CONFLICT, NoContainer, remove_container
from footplate.environments.docker.portable_python import COMMAND_FILTERS, MOUNT_TARGET, SETUP_FILTERS, PortablePython
from footplate.environments.docker.rendezvous_socket import RendezvousSocket

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class NewContainerLaunch:
    spec: container_spec.ContainerSpec
    limits: list[str]
    runtime: PortablePython
    name: str = field(default_factory=lambda: f"footplate-{secrets.token_hex(8)}")
    """Chosen here, so that the container can be removed even if the engine's response was lost."""

    @contextlib.asynccontextmanager
    async def start_init(self, docker: aiodocker.Docker, rendezvous: RendezvousSocket) -> AsyncIterator[Stream]:
        arguments = [container_spec.SOCKET_TARGET, *map(str, self.spec.user), *self.limits, *self.spec.view.ports]
        filters = SETUP_FILTERS if self.spec.is_image_build else COMMAND_FILTERS
        command = self.runtime.build_command(MOUNT_TARGET, arguments, filters=filters)
        try:
            container = await docker.containers.create(
                container_spec.build_request(self.spec, rendezvous.path, command), name=self.name
            )
            # pyrefly: ignore[bad-context-manager]  # aiodocker annotates `__aexit__` without None
            async with container.attach(stdout=True, stderr=True) as stream:
                await container.start()
                yield stream
        except BaseException as error:
            # On a conflict, the container belongs to another owner.
            if not (isinstance(error, aiodocker.DockerError) and error.status == CONFLICT):
                await self.end_container(docker)
            raise

    async def end_container(self, docker: aiodocker.Docker) -> None:
        await remove_container(docker, self.name)


@dataclass(slots=True)
class NamedContainerLaunch:
    """Runs inside a container of the operator, which Footplate never stops or removes."""

    container: str
    user: tuple[int, int]
    limits: list[str]
    runtime: PortablePython
    inside_paths: Mapping[str, str]
    """Host directories of Footplate, and their paths in the container."""

    @contextlib.asynccontextmanager
    async def start_init(self, docker: aiodocker.Docker, rendezvous: RendezvousSocket) -> AsyncIterator[Stream]:
        socket = f"{self.inside_paths[str(rendezvous.path.parent)]}/{rendezvous.path.name}"
        runtime_path = f"{self.inside_paths[str(self.runtime.directory.parent)]}/{self.runtime.directory.name}"
        command = self.runtime.build_command(runtime_path, [socket, *map(str, self.user), *self.limits])
        inside = await docker.containers.container(self.container).exec(
            command, user="0", workdir="/", environment={"LD_PRELOAD": "", "LD_LIBRARY_PATH": ""}
        )
        # pyrefly: ignore[bad-context-manager]  # aiodocker annotates `__aexit__` without None
        async with inside.start(detach=False) as stream:
            yield stream

    async def end_container(self, docker: aiodocker.Docker) -> None:
        """Only logs the failure: the engine cannot end a single process of a container. The watcher inside runs as
        root, so the agent cannot keep it from doing this itself.
        """
        del docker
        log.error("a turn's processes in a named container could not be killed", action="container.left")


def path_in_container(mounts: list[Mapping[str, object]], directory: str, container: str) -> str:
    """Returns the path of a host directory inside a container. Raises `NoContainer`."""
    matches = [
        (str(mount["Source"]), str(mount["Destination"]))
        for mount in mounts
        if mount.get("Type") == "bind" and (directory == mount["Source"] or directory.startswith(f"{mount['Source']}/"))
    ]
    if not matches:
        raise NoContainer(
            f"The container {container!r} does not have the host directory {directory} mounted.",
            help_text=f"Mount it when you start the container, for example `docker run -v {directory}:{directory} …`.",
        )
    source, destination = max(matches, key=lambda pair: len(pair[0]))
    return destination + directory.removeprefix(source)
