"""Inspects Docker images: reads their environment variables, volumes and user files. It also chooses the names of the
images that `setup_images` builds.
"""

import contextlib
import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiodocker

from footplate.domain.network.command_network_access import Network
from footplate.environments.docker import container_owner, engine_api, labels, passwd_files
from footplate.environments.docker.engine_api import NoContainer

REPOSITORY: Final = "footplate-setup"
_MAX_FILE_BYTES: Final = 1 << 20
OPERATOR_HELP: Final = "Fix the script that FOOTPLATE_DOCKER_SETUP points to. It runs as root in the image's `sh`."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecipe:
    image: str
    setup: str = ""
    """A script for the image's `sh`, run as root. If empty, the image is used unchanged."""
    setup_network: str = "bridge"
    """The engine's network for the script, if its network is open."""
    network: Network = field(default_factory=lambda: Network("open"))
    """The network that the script may reach."""
    organisation: str = ""
    """The organisation that owns the script; empty for the operator. Organisations never share the result of a script.
    """
    help_text: str = OPERATOR_HELP
    """The help text for a script that fails."""

    def result_name(self, image_id: str) -> str:
        """Returns the name of the resulting image, which changes with everything that goes into it."""
        network_parts = [self.network.mode, *sorted(map(str, self.network.hosts))]
        if self.network.mode == "open":
            network_parts.append(self.setup_network)
        parts = "\0".join([image_id, self.setup, self.organisation, *network_parts])
        return f"{REPOSITORY}:{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    id: str
    env: Mapping[str, str]
    volumes: tuple[str, ...]
    user_files: dict[str, str]
    """The content of the image's /etc/passwd and /etc/group."""


async def inspect_base(docker: aiodocker.Docker, name: str) -> dict[str, Any]:
    """Returns the engine's description of an image. Raises `NoContainer`."""
    found = await engine_api.find_image(docker, name)
    if found is None:
        raise NoContainer(
            f"The Docker engine has no image {name!r}.",
            help_text=f"Run `docker pull {name}` on the workers' machines, or configure another image.",
        )
    return found


async def read_image(docker: aiodocker.Docker, found: Mapping[str, Any], worker: str) -> Image:
    """Extracts what a container needs from the engine's description of an image."""
    config = found["Config"]
    return Image(
        id=found["Id"],
        env=read_variables(config),
        volumes=tuple(config.get("Volumes") or ()),
        user_files=await _read_user_files(docker, found["Id"], worker),
    )


def read_variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the environment variables of an image or a container."""
    entries = (entry.partition("=") for entry in config.get("Env") or [])
    return {name: value for name, _, value in entries}


async def _read_user_files(docker: aiodocker.Docker, image_id: str, worker: str) -> dict[str, str]:
    """Reads the files of an image through a container that is never started."""
    owner_labels = {labels.OWNER: container_owner.owner_name(os.getpid()), labels.WORKER: worker}
    container = await docker.containers.create({"Image": image_id, "Entrypoint": ["none"], "Labels": owner_labels})
    texts = {}
    try:
        for path in (passwd_files.PASSWD_PATH, passwd_files.GROUP_PATH):
            with contextlib.suppress(KeyError):
                texts[path] = await _read_file(docker, container.id, path)
    finally:
        await engine_api.remove_container(docker, container.id)
    return texts


async def _read_file(docker: aiodocker.Docker, container: str, path: str) -> str:
    """Reads a file. Raises KeyError if it does not exist, or is larger than such a file can be: a setup script wrote
    it.
    """
    data = bytearray()
    try:
        url = f"containers/{container}/archive"
        async with docker._query(url, params={"path": path}) as archive:  # noqa: SLF001 - get_archive reads all
            with contextlib.closing(archive):  # until then the engine locks the container
                async for chunk in archive.content.iter_chunked(1 << 16):
                    data += chunk
                    if len(data) > _MAX_FILE_BYTES:
                        raise KeyError(path)
    except aiodocker.DockerError as error:
        if error.status == engine_api.NOT_FOUND:
            raise KeyError(path) from error
        raise
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        first = tar.next()
        content = tar.extractfile(first) if first is not None and first.isfile() else None
        if content is None:
            raise KeyError(path)
        return content.read().decode(errors="replace")
