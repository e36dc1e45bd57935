"""Finds which environment backends this machine has, so that a claim can name those that it covers."""

import io
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, get_args

from footplate.config import Settings
from footplate.environments.docker.engine_api import connect_engine
from footplate.stack.services import dockerd
from footplate.testing import docker_image

_IS_AVAILABLE: Final[Mapping[str, Callable[[], bool]]] = {
    "sandbox": lambda: shutil.which("bwrap") is not None,
    "docker": lambda: not dockerd.dockerd_obstacle(),
}
IMAGE: Final = "footplate-proof:usual"


def list_backends() -> list[str]:
    """Returns all values that `FOOTPLATE_ENVIRONMENT` accepts."""
    return list(get_args(Settings.model_fields["environment"].annotation))


def available_backends() -> list[str]:
    return [name for name in list_backends() if name not in _IS_AVAILABLE or _IS_AVAILABLE[name]()]


def default_backend() -> str:
    """Returns the backend that commands use by default."""
    return str(Settings.model_fields["environment"].default)


@asynccontextmanager
async def backend_settings(backend: str) -> AsyncIterator[dict[str, str]]:
    """Yields a cluster's settings for the backend. For docker it starts an engine with an image built from scratch."""
    if backend != "docker":
        yield {"FOOTPLATE_ENVIRONMENT": backend}
        return
    async with docker_engine() as address:
        yield {
            "FOOTPLATE_ENVIRONMENT": backend,
            "FOOTPLATE_DOCKER_HOST": address,
            "FOOTPLATE_DOCKER_IMAGE": IMAGE,
        }


@asynccontextmanager
async def docker_engine(programs: Sequence[str] = docker_image.DEFAULT_PROGRAMS) -> AsyncIterator[str]:
    """Starts a docker engine that has `IMAGE` with these programs, yields its address, and removes it afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="footplate-engine-"))
    engine = dockerd.Dockerd(directory / "engine", log_file=directory / "log")
    try:
        await engine.start()
        async with connect_engine(engine.address) as docker:
            await docker.images.build(
                fileobj=io.BytesIO(docker_image.build_context(programs)), encoding="identity", tag=IMAGE
            )
        yield engine.address
    finally:
        await engine.remove()
        shutil.rmtree(directory)
