"""How our first process gets into a container: in one that is made for the turn, or beside what runs in a named one."""

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
    """Chosen here, so that it can be removed even if the engine's answer was lost."""

    @contextlib.asynccontextmanager
    async def launched(self, docker: aiodocker.Docker, place: Meeting) -> AsyncIterator[Stream]:
        arguments = [body.SOCKET, *map(str, self.wanted.user), *self.limits, *self.wanted.view.ports]
        filters = SETUP if self.wanted.keeps else COMMANDS
        command = self.runtime.command(TARGET, arguments, filters=filters)
        try:
            made = await docker.containers.create(body.container(self.wanted, place.path, command), name=self.name)
            async with made.attach(stdout=True, stderr=True) as printed:
                await made.start()
                yield printed
        except BaseException as error:
            if not (isinstance(error, aiodocker.DockerError) and error.status == CONFLICT):  # it is somebody else's
                await self.end(docker)
            raise

    async def end(self, docker: aiodocker.Docker) -> None:
        await remove(docker, self.name)


@dataclass(slots=True)
class Beside:
    """In a container of somebody else's, which is never stopped or removed."""

    container: str
    user: tuple[int, int]
    limits: list[str]
    runtime: Runtime
    seen: Mapping[str, str]
    """Directories of ours, and where they are seen in it."""

    @contextlib.asynccontextmanager
    async def launched(self, docker: aiodocker.Docker, place: Meeting) -> AsyncIterator[Stream]:
        socket = f"{self.seen[str(place.path.parent)]}/{place.path.name}"
        at = f"{self.seen[str(self.runtime.place.parent)]}/{self.runtime.place.name}"
        command = self.runtime.command(at, [socket, *map(str, self.user), *self.limits])
        inside = await docker.containers.container(self.container).exec(
            command, user="0", workdir="/", environment={"LD_PRELOAD": "", "LD_LIBRARY_PATH": ""}
        )
        async with inside.start(detach=False) as printed:
            yield printed

    async def end(self, _docker: aiodocker.Docker) -> None:
        """The engine cannot end one of a container's processes. Our watcher there is root: nobody keeps it from it."""
        log.error("what a turn left in a named container could not be ended", action="container.left")


def seen_in(mounts: list[Mapping[str, object]], place: str, container: str) -> str:
    """Where a directory of this machine is seen in a container. Raises `NoContainer`."""
    fitting = [
        (str(mount["Source"]), str(mount["Destination"]))
        for mount in mounts
        if mount.get("Type") == "bind" and (place == mount["Source"] or place.startswith(f"{mount['Source']}/"))
    ]
    if not fitting:
        raise NoContainer(
            f"The container {container!r} does not see {place} of this machine.",
            help_text=f"Start it with that directory, for instance `docker run -v {place}:{place} …`.",
        )
    source, destination = max(fitting, key=lambda pair: len(pair[0]))
    return destination + place.removeprefix(source)
