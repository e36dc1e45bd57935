"""Connects to the API of the Docker Engine, and converts its errors to Footplate's errors."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import aiodocker
import aiohttp
from aiodocker.containers import DockerContainer

from footplate.domain.errors import Permanent, Unavailable

UNIX_SCHEME: Final = "unix://"
NOT_FOUND: Final = 404
CONFLICT: Final = 409
_NO_RESPONSE: Final = 900
"""Status codes from here on are the library's own: there was no connection."""


class NoContainer(Permanent):
    """The operator requires containers, and this machine or this image does not support them."""

    code = "no_container"


@contextlib.asynccontextmanager
async def connect_engine(host: str, *, patience: float = 60.0) -> AsyncIterator[aiodocker.Docker]:
    """Opens a connection for one operation. Opening takes one or two milliseconds, so no connection is pooled."""
    docker = aiodocker.Docker(url=host, timeout=aiohttp.ClientTimeout(total=patience, sock_connect=5.0))
    try:
        yield docker
    except aiodocker.DockerError as error:
        if error.status < _NO_RESPONSE:
            text = f"The Docker engine rejected the request: {error.message}"
            raise Unavailable(text, help_text="Run `footplate doctor`.") from error
        system = getattr(error.__context__, "os_error", None)
        raise _no_response_error(host, getattr(system, "strerror", None) or error.message) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _no_response_error(host, str(error) or type(error).__name__) from error
    finally:
        await docker.close()


def _no_response_error(host: str, reason: str) -> Unavailable:
    return Unavailable(
        f"The Docker engine at {host} does not respond: {reason}",
        help_text="Check that dockerd is running and that the worker's user can write to its socket.",
    )


async def remove_container(docker: aiodocker.Docker, container_id: str) -> None:
    """Removes a container with its processes. Succeeds if it is already gone or is being removed by the engine."""
    try:
        await docker.containers.container(container_id).delete(force=True, v=True)
    except aiodocker.DockerError as error:
        if error.status not in {NOT_FOUND, CONFLICT}:
            raise


async def find_image(docker: aiodocker.Docker, name: str) -> dict[str, Any] | None:
    try:
        return dict(await docker.images.inspect(name))
    except aiodocker.DockerError as error:
        if error.status == NOT_FOUND:
            return None
        raise


async def find_container(docker: aiodocker.Docker, name: str) -> DockerContainer | None:
    try:
        return await docker.containers.get(name)
    except aiodocker.DockerError as error:
        if error.status == NOT_FOUND:
            return None
        raise
