"""A connection to the docker engine, and its failures in our words."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import aiodocker
import aiohttp
from aiodocker.containers import DockerContainer

from footplate.domain.errors import Permanent, Unavailable

UNIX: Final = "unix://"
NOT_FOUND: Final = 404
CONFLICT: Final = 409
_NO_ANSWER: Final = 900
"""From here on the library's own numbers: there was no connection."""


class NoContainer(Permanent):
    """The operator wants containers and this machine, or this image, cannot give one."""

    code = "no_container"


@contextlib.asynccontextmanager
async def connected(host: str, *, patience: float = 60.0) -> AsyncIterator[aiodocker.Docker]:
    """For one errand. Making one costs a millisecond or two; there is nothing to keep or to close."""
    docker = aiodocker.Docker(url=host, timeout=aiohttp.ClientTimeout(total=patience, sock_connect=5.0))
    try:
        yield docker
    except aiodocker.DockerError as error:
        if error.status < _NO_ANSWER:
            text = f"The docker engine refused: {error.message}"
            raise Unavailable(text, help_text="Run `footplate doctor`.") from error
        system = getattr(error.__context__, "os_error", None)
        raise _silent(host, getattr(system, "strerror", None) or error.message) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _silent(host, str(error) or type(error).__name__) from error
    finally:
        await docker.close()


def _silent(host: str, reason: str) -> Unavailable:
    return Unavailable(
        f"The docker engine at {host} does not answer: {reason}",
        help_text="See that dockerd runs, and that the worker's user may write to its socket.",
    )


async def remove(docker: aiodocker.Docker, container_id: str) -> None:
    """With all that runs in it. One that is gone, or that the engine itself is removing, is as good as removed."""
    try:
        await docker.containers.container(container_id).delete(force=True, v=True)
    except aiodocker.DockerError as error:
        if error.status not in {NOT_FOUND, CONFLICT}:
            raise


async def image(docker: aiodocker.Docker, name: str) -> dict[str, Any] | None:
    try:
        return dict(await docker.images.inspect(name))
    except aiodocker.DockerError as error:
        if error.status == NOT_FOUND:
            return None
        raise


async def container(docker: aiodocker.Docker, name: str) -> DockerContainer | None:
    try:
        return await docker.containers.get(name)
    except aiodocker.DockerError as error:
        if error.status == NOT_FOUND:
            return None
        raise
