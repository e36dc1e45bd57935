"""Starts the init process: in a new container for the turn, or inside a named container that already runs."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import aiodocker
import structlog
from aiodocker.stream import Stream

from footplate.environments.docker import body
from footplate.environments.docker.engine import CONFLICT, NoContainer, remove
from footplate.environments.docker.meeting import Meeting
from footplate.environments.docker.runtime import COMMANDS, SETUP, TARGET, Runtime

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Fresh:
    wanted: body.Wanted
    limits: list[str]
    runtime: Runtime
    name: str = field(default_factory=lambda: f"footplate-{secrets.token_hex(8)}")
    """Chosen here, so that the container can be removed even if the engine's response was lost."""

    @contextlib.asynccontextmanager
    async def launched(self, docker: aiodocker.Docker, rendezvous: Meeting) -> AsyncIterator[Stream]:
        arguments = [body.SOCKET, *map(str, self.wanted.user), *self.limits, *self.wanted.view.ports]
        filters = SETUP if self.wanted.keeps else COMMANDS
        command = self.runtime.command(TARGET, arguments, filters=filters)
        try:
            container = await docker.containers.create(body.container(self.wanted, rendezvous.path, command), name=self.name)
            async with container.attach(stdout=True, stderr=True) as stream:
                await container.start()
                yield stream
        except BaseException as error:
            # On a conflict, the container belongs to another owner.
            if not (isinstance(error, aiodocker.DockerError) and error.status == CONFLICT):
                await self.end(docker)
            raise

    async def end(self, docker: aiodocker.Docker) -> None:
        await remove(docker, self.name)


@dataclass(slots=True)
class Beside:
    """Runs inside a container of the operator, which Footplate never stops or removes."""

    container: str
    user: tuple[int, int]
    limits: list[str]
    runtime: Runtime
    seen: Mapping[str, str]
    """Host directories of Footplate, and their paths in the container."""

    @contextlib.asynccontextmanager
    async def launched(self, docker: aiodocker.Docker, rendezvous: Meeting) -> AsyncIterator[Stream]:
        socket = f"{self.seen[str(rendezvous.path.parent)]}/{rendezvous.path.name}"
        runtime_path = f"{self.seen[str(self.runtime.place.parent)]}/{self.runtime.place.name}"
        command = self.runtime.command(runtime_path, [socket, *map(str, self.user), *self.limits])
        inside = await docker.containers.container(self.container).exec(
            command, user="0", workdir="/", environment={"LD_PRELOAD": "", "LD_LIBRARY_PATH": ""}
        )
        async with inside.start(detach=False) as stream:
            yield stream

    async def end(self, _docker: aiodocker.Docker) -> None:
        """Only logs the failure: the engine cannot end a single process of a container. The watcher inside runs as
        root, so the agent cannot keep it from doing this itself.
        """
        log.error("processes of a turn in a named container could not be ended", action="container.left")


def seen_in(mounts: list[Mapping[str, object]], place: str, container: str) -> str:
    """Returns the path of a host directory inside a container. Raises `NoContainer`."""
    fitting = [
        (str(mount["Source"]), str(mount["Destination"]))
        for mount in mounts
        if mount.get("Type") == "bind" and (place == mount["Source"] or place.startswith(f"{mount['Source']}/"))
    ]
    if not fitting:
        raise NoContainer(
            f"The container {container!r} does not mount {place} of this machine.",
            help_text=f"Start it with that directory mounted, for example `docker run -v {place}:{place} …`.",
        )
    source, destination = max(fitting, key=lambda pair: len(pair[0]))
    return destination + place.removeprefix(source)
