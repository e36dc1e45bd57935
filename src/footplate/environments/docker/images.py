"""The image that turns run in: as it is, or as a setup script left it.

What a setup script did is kept as an image, named by a hash of the image and the script: the next worker on this engine
finds it. A turn's container is made from it and is read-only, so no turn changes what the next one sees.
"""

import asyncio
import contextlib
import hashlib
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiodocker
import structlog

from footplate.environments.docker import engine, holders, labels, users
from footplate.environments.docker.engine import NoContainer
from footplate.environments.sandbox.limits import Limits

log = structlog.get_logger(__name__)

REPOSITORY: Final = "footplate-setup"
_TIME_LIMIT: Final = 3600.0
_LINES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    image: str
    setup: str = ""
    """A script for the image's `sh`, run as root. Empty: the image is used as it is."""
    setup_network: str = "bridge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    id: str
    env: Mapping[str, str]
    volumes: tuple[str, ...]
    users: dict[str, str]
    """The image's own /etc/passwd and /etc/group."""


async def prepare(docker: aiodocker.Docker, recipe: Recipe, *, worker: str, limits: Limits) -> Image:
    """Raises `NoContainer`."""
    found = await engine.image(docker, recipe.image)
    if found is None:
        raise NoContainer(
            f"The docker engine has no image {recipe.image!r}.",
            help_text=f"Run `docker pull {recipe.image}`, or name another in FOOTPLATE_DOCKER_IMAGE.",
        )
    if recipe.setup:
        name = tag(found["Id"], recipe.setup)
        found = await engine.image(docker, name) or await _set_up(docker, found, recipe, name, worker, limits)
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


def tag(image_id: str, setup: str) -> str:
    digest = hashlib.sha256(f"{image_id}\0{setup}".encode()).hexdigest()
    return f"{REPOSITORY}:{digest[:32]}"


async def _set_up(
    docker: aiodocker.Docker, base: dict[str, Any], recipe: Recipe, name: str, worker: str, limits: Limits
) -> dict[str, Any]:
    """Two workers that do it at once do it twice, and the same."""
    log.info("setup script runs", action="docker.setup", image=recipe.image, result=name)
    made = await docker.containers.create(
        {
            "Image": base["Id"],
            "Entrypoint": ["sh", "-c", recipe.setup],
            "Cmd": [],
            "User": "0",
            "Labels": _labels(worker),
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": {
                "NetworkMode": recipe.setup_network,
                "SecurityOpt": ["no-new-privileges"],
                "Memory": limits.memory,
                "MemorySwap": limits.memory,
                "NanoCpus": int(limits.cpus * 1_000_000_000),
                "PidsLimit": limits.pids,
            },
        }
    )
    try:
        await made.start()
        async with asyncio.timeout(_TIME_LIMIT):
            code = (await made.wait())["StatusCode"]
        if code != 0:
            said = "".join(await made.log(stdout=True, stderr=True, tail=_LINES_SHOWN)).strip()
            raise NoContainer(
                f"The setup script ended with status {code}:\n{said}",
                help_text="Mend the script that FOOTPLATE_DOCKER_SETUP names; it runs as root in the image's `sh`.",
            )
        repository, _, version = name.partition(":")
        config = {**base["Config"], "Labels": {**(base["Config"].get("Labels") or {}), "footplate.setup": version}}
        await made.commit(repository=repository, tag=version, config=config)
    except TimeoutError:
        raise NoContainer(f"The setup script did not end within {_TIME_LIMIT / 60:g} minutes.") from None
    finally:
        await engine.remove(docker, made.id)
    return dict(await docker.images.inspect(name))


async def _users(docker: aiodocker.Docker, image_id: str, worker: str) -> dict[str, str]:
    """From a container that is never started: its image's files can be read."""
    made = await docker.containers.create({"Image": image_id, "Entrypoint": ["none"], "Labels": _labels(worker)})
    texts = {}
    try:
        for path in (users.PASSWD, users.GROUP):
            with contextlib.suppress(KeyError):
                texts[path] = await _file(made.get_archive(path))
    finally:
        await engine.remove(docker, made.id)
    return texts


async def _file(archive: Any) -> str:
    """Raises KeyError where there is no such file."""
    try:
        tar: tarfile.TarFile = await archive
    except aiodocker.DockerError as error:
        if error.status == engine.NOT_FOUND:
            raise KeyError from error
        raise
    with tar:
        content = tar.extractfile(tar.getmembers()[0]) if tar.getmembers()[0].isfile() else None
        if content is None:
            raise KeyError
        return content.read().decode(errors="replace")


def _labels(worker: str) -> dict[str, str]:
    return {labels.HOLDER: holders.name(os.getpid()), labels.WORKER: worker}
