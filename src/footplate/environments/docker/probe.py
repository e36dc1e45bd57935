"""Tests whether the `docker` backend works on this machine, by starting a container and writing a file in it."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.errors import Unavailable
from footplate.domain.ports.engine import OpenRequest
from footplate.environments.docker.engine_api import NoContainer, connect_engine
from footplate.environments.docker.environment import DockerHost
from footplate.environments.docker.factory import ContainerFactory, NamedContainerFactory, WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.portable_python import COMMAND_FILTERS, SETUP_FILTERS, prepare_python
from footplate.environments.docker.setup_images import ImageProvider
from footplate.environments.sandbox import seccomp
from footplate.lease_clock import lease_clock

INSTALL_HELP: Final = (
    "Install Docker (Debian and Ubuntu: apt install docker.io), start it, and let the worker's user write to its "
    "socket. If it uses another socket, set FOOTPLATE_DOCKER_HOST. See docs/environments.md."
)
SHARED_FILES_HELP: Final = (
    "FOOTPLATE_DATA_DIR must have the same path for the Docker engine and the worker, and user IDs must not be "
    "remapped. If the worker does not run as root, the engine must (not rootless, and without userns-remap)."
)
_LEASE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerProbe:
    factory: ContainerFactory | NamedContainerFactory
    host: DockerHost
    detail: str


async def probe_docker(
    engine: str,
    ground: WorkerSettings,
    directory: Path,
    *,
    image_or_container: ImageRecipe | str,
    network: str = "none",
) -> DockerProbe:
    """Starts a container and tests it. `image_or_container` is the recipe of its image, or the name of a
    running container. `directory` is Footplate's own, below the data directory.

    Raises `NoContainer`.
    """
    host = await asyncio.to_thread(_prepare_host, engine, directory, named=isinstance(image_or_container, str))
    images = ImageProvider(
        host=host, worker=ground.worker, limits=ground.limits, data=ground.data, egress=ground.egress
    )
    try:
        async with connect_engine(engine) as docker:
            version = (await docker.version())["Version"]
            image = None
            if isinstance(image_or_container, ImageRecipe):
                image = await images.get_image(image_or_container)
    except Unavailable as error:
        raise NoContainer(error.message, help_text=INSTALL_HELP) from error

    def create_factory(settings: WorkerSettings) -> ContainerFactory | NamedContainerFactory:
        if image is None:
            return NamedContainerFactory(settings, host, str(image_or_container))
        return ContainerFactory(settings, host, image, images, network=network)

    await _test_container(create_factory, ground)
    description = (
        f"image {image_or_container.image}"
        if isinstance(image_or_container, ImageRecipe)
        else f"container {image_or_container}"
    )
    return DockerProbe(factory=create_factory(ground), host=host, detail=f"docker {version}, {description}")


def _prepare_host(engine: str, directory: Path, *, named: bool) -> DockerHost:
    host = DockerHost(
        engine=engine,
        runtime=prepare_python(directory / "runtime", _build_filters()),
        rendezvous_dir=directory / "sockets",
        passwd_dir=directory / "users",
    )
    for path in (host.rendezvous_dir, host.passwd_dir):
        path.mkdir(parents=True, exist_ok=True)
    # A process that reaches a socket in it could pose as a container's init process. A new container gets the socket by
    # a mount; in a named container the agent's user passes through the directory, but cannot list it.
    host.rendezvous_dir.chmod(0o711 if named else 0o700)
    return host


def _build_filters() -> Mapping[str, Sequence[bytes]]:
    try:
        return {COMMAND_FILTERS: seccomp.build_filters(), SETUP_FILTERS: seccomp.build_filters(allow_setuid=True)}
    except (ImportError, RuntimeError, OSError) as error:
        message = f"Containers require libseccomp on the worker's machine, which cannot be loaded: {error}."
        raise NoContainer(message, help_text="Install it (Debian and Ubuntu: apt install libseccomp2).") from error


async def _test_container(
    create_factory: Callable[[WorkerSettings], ContainerFactory | NamedContainerFactory], settings: WorkerSettings
) -> None:
    """Tests in a separate directory beside those of the sessions. A file that is written inside must appear on the
    host.
    """
    test_dir = await asyncio.to_thread(_create_test_directory, settings.root)
    try:
        environment = await create_factory(replace(settings, root=test_dir, data=None)).open_environment(
            OpenRequest(
                organisation="probe",
                session_id="probe",
                deadline=lease_clock() + _LEASE_SECONDS,
                variables={},
                config=EnvironmentConfig(),
            )
        )
        try:
            await environment.write("probe", b"written inside")
            result = await environment.run(["sh", "-c", ":"], timeout=_LEASE_SECONDS)
        finally:
            await environment.aclose()
        if (test_dir / "probe" / "probe" / "probe").read_bytes() != b"written inside":
            raise NoContainer(
                "A file that was written in a container has different content on the host.", help_text=SHARED_FILES_HELP
            )
        if result.exit_code != 0:
            error_output = result.stderr.decode(errors="replace").strip()
            raise NoContainer(
                f"The container has no working `sh`: {error_output}", help_text="Use an image that has one."
            )
    except OSError as error:
        text = f"A container starts, but it cannot use the session's files: {error}."
        raise NoContainer(text, help_text=SHARED_FILES_HELP) from error
    except Unavailable as error:
        raise NoContainer(f"No container can be started. {error.message}", help_text=INSTALL_HELP) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, test_dir, ignore_errors=True)


def _create_test_directory(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix=".probe-", dir=root))
    path.chmod(0o755)  # in a named container, the agent's user has to pass through it
    return path
