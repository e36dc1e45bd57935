"""The images that turns run in: as they are, or as a setup script left them (see `setup`)."""

import contextlib
import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiodocker

from footplate.domain.networks import Network
from footplate.environments.docker import engine, holders, labels, users
from footplate.environments.docker.engine import NoContainer

REPOSITORY: Final = "footplate-setup"
_LARGEST_FILE: Final = 1 << 20
BY_SETTING: Final = "Mend the script that FOOTPLATE_DOCKER_SETUP names; it runs as root in the image's `sh`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    image: str
    setup: str = ""
    """A script for the image's `sh`, run as root. Empty: the image is used as it is."""
    setup_network: str = "bridge"
    """One of the engine's, where the script's network is open."""
    network: Network = field(default_factory=lambda: Network("open"))
    """What the script may reach."""
    owner: str = ""
    """The organisation whose script it is; the operator's has none. Nobody gets what another's script made."""
    mend: str = BY_SETTING
    """What to do about a script that fails."""

    def result(self, image_id: str) -> str:
        """By what name its result is kept: another one when anything that goes into it is."""
        reach = [self.network.mode, *sorted(map(str, self.network.hosts))]
        if self.network.mode == "open":
            reach.append(self.setup_network)
        parts = "\0".join([image_id, self.setup, self.owner, *reach])
        return f"{REPOSITORY}:{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    id: str
    env: Mapping[str, str]
    volumes: tuple[str, ...]
    users: dict[str, str]
    """The image's own /etc/passwd and /etc/group."""


async def base(docker: aiodocker.Docker, name: str) -> dict[str, Any]:
    """As the engine tells of it. Raises `NoContainer`."""
    found = await engine.image(docker, name)
    if found is None:
        raise NoContainer(
            f"The docker engine has no image {name!r}.",
            help_text=f"Run `docker pull {name}` where the workers are, or name another one.",
        )
    return found


async def read(docker: aiodocker.Docker, found: Mapping[str, Any], worker: str) -> Image:
    """Of what the engine tells of an image, what a container needs."""
    config = found["Config"]
    return Image(
        id=found["Id"],
        env=variables_of(config),
        volumes=tuple(config.get("Volumes") or ()),
        users=await _users(docker, found["Id"], worker),
    )


def variables_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Of an image or a container."""
    entries = (entry.partition("=") for entry in config.get("Env") or [])
    return {name: value for name, _, value in entries}


async def _users(docker: aiodocker.Docker, image_id: str, worker: str) -> dict[str, str]:
    """From a container that is never started: its image's files can be read."""
    marks = {labels.HOLDER: holders.name(os.getpid()), labels.WORKER: worker}
    made = await docker.containers.create({"Image": image_id, "Entrypoint": ["none"], "Labels": marks})
    texts = {}
    try:
        for path in (users.PASSWD, users.GROUP):
            with contextlib.suppress(KeyError):
                texts[path] = await _file(docker, made.id, path)
    finally:
        await engine.remove(docker, made.id)
    return texts


async def _file(docker: aiodocker.Docker, container: str, path: str) -> str:
    """Raises KeyError where there is no such file, or one that is too large to be one: a setup script wrote it."""
    data = bytearray()
    try:
        where = f"containers/{container}/archive"
        async with docker._query(where, params={"path": path}) as archive:  # noqa: SLF001 - the other one reads all
            with contextlib.closing(archive):  # the engine holds the container until then
                async for chunk in archive.content.iter_chunked(1 << 16):
                    data += chunk
                    if len(data) > _LARGEST_FILE:
                        raise KeyError(path)
    except aiodocker.DockerError as error:
        if error.status == engine.NOT_FOUND:
            raise KeyError(path) from error
        raise
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        first = tar.next()
        content = tar.extractfile(first) if first is not None and first.isfile() else None
        if content is None:
            raise KeyError(path)
        return content.read().decode(errors="replace")
