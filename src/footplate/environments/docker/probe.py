"""Tests whether containers work on this machine, by starting one."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from footplate.domain.environments import EnvironmentConfig
from footplate.domain.errors import Unavailable
from footplate.environments.docker.engine import NoContainer, connected
from footplate.environments.docker.environment import Host
from footplate.environments.docker.images import Recipe
from footplate.environments.docker.opening import Ground, InContainers, InNamedContainer
from footplate.environments.docker.runtime import COMMANDS, SETUP, prepare
from footplate.environments.docker.setup import Images
from footplate.environments.guardian import clock
from footplate.environments.sandbox import seccomp

INSTALL: Final = (
    "Install docker (Debian and Ubuntu: apt install docker.io), start it, and let the worker's user write to its "
    "socket. Set FOOTPLATE_DOCKER_HOST if it listens elsewhere. See docs/environments.md."
)
SAME_FILES: Final = (
    "The engine must see FOOTPLATE_DATA_DIR under the same path as the worker, without a mapping of users: "
    "a worker that is not root needs an engine that runs as root (neither rootless nor with userns-remap)."
)
_LEASE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    environments: InContainers | InNamedContainer
    host: Host
    detail: str


async def find(engine: str, ground: Ground, directory: Path, *, wanted: Recipe | str, network: str = "none") -> Found:
    """Starts a container and tests it. `image_or_container` is the recipe of its image, or the name of a
    running container. `directory` is Footplate's own, below the data directory.

    Raises `NoContainer`.
    """
    host = await asyncio.to_thread(_prepared, engine, directory, named=isinstance(wanted, str))
    images = Images(host=host, worker=ground.worker, limits=ground.limits, data=ground.data, egress=ground.egress)
    try:
        async with connected(engine) as docker:
            version = (await docker.version())["Version"]
            image = None
            if isinstance(wanted, Recipe):
                image = await images.get(wanted)
    except Unavailable as error:
        raise NoContainer(error.message, help_text=INSTALL) from error

    def environments(settings: Ground) -> InContainers | InNamedContainer:
        if image is None:
            return InNamedContainer(settings, host, str(wanted))
        return InContainers(settings, host, image, images, network=network)

    await _try(environments, ground)
    where = f"image {wanted.image}" if isinstance(wanted, Recipe) else f"container {wanted}"
    return Found(environments=environments(ground), host=host, detail=f"docker {version}, {where}")


def _prepared(engine: str, directory: Path, *, named: bool) -> Host:
    host = Host(
        engine=engine,
        runtime=prepare(directory / "runtime", _filters()),
        sockets=directory / "sockets",
        users=directory / "users",
    )
    for place in (host.sockets, host.users):
        place.mkdir(parents=True, exist_ok=True)
    # A process that reaches a socket in it could pose as a container's init process. A new container gets the socket by
    # a mount; in a named container the agent's user passes through the directory, but cannot list it.
    host.sockets.chmod(0o711 if named else 0o700)
    return host


def _filters() -> Mapping[str, Sequence[bytes]]:
    try:
        return {COMMANDS: seccomp.programs(), SETUP: seccomp.programs(installs=True)}
    except (ImportError, RuntimeError, OSError) as error:
        what = f"Containers require libseccomp on the worker's machine, which cannot be loaded: {error}."
        raise NoContainer(what, help_text="Install it (Debian and Ubuntu: apt install libseccomp2).") from error


async def _try(environments: Callable[[Ground], InContainers | InNamedContainer], ground: Ground) -> None:
    """Tests in a separate directory beside those of the sessions. A file that is written inside must appear on the
    host.
    """
    place = await asyncio.to_thread(_make_place, ground.root)
    try:
        opened = await environments(replace(ground, root=place, data=None)).open(
            "probe", "probe", deadline=clock() + _LEASE, variables={}, config=EnvironmentConfig(), models=None
        )
        try:
            await opened.write("probe", b"written inside")
            result = await opened.run(["sh", "-c", ":"], timeout=_LEASE)
        finally:
            await opened.aclose()
        if (place / "probe" / "probe" / "probe").read_bytes() != b"written inside":
            raise NoContainer(
                "A file that was written in a container has another content on the host.", help_text=SAME_FILES
            )
        if result.exit_code != 0:
            said = result.stderr.decode(errors="replace").strip()
            raise NoContainer(f"The container has no working `sh`: {said}", help_text="Use an image that has one.")
    except OSError as error:
        text = f"A container starts, but the session's files cannot be used in it: {error}."
        raise NoContainer(text, help_text=SAME_FILES) from error
    except Unavailable as error:
        raise NoContainer(f"No container can be started. {error.message}", help_text=INSTALL) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def _make_place(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=".probe-", dir=root))
    place.chmod(0o755)  # in a named container, the agent's user has to pass through it
    return place
