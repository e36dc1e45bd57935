"""Creates the environment backends that the operator selected: sandbox, Docker or no isolation. A worker does not start
if one of them is unavailable.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from footplate.config import Settings, private_dirs
from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import Environments, Trees
from footplate.environments.backend_selection import OfferedBackends
from footplate.environments.factory import SandboxFactory, UnsandboxedFactory
from footplate.environments.isolation.cgroups import CgroupFactory, NoCgroups
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.reaper.expired_lease_reaper import Reaper, ReaperResult
from footplate.environments.reaper.periodic_reaper import SweepCallback
from footplate.environments.reaper.session_directory_reaper import WorkspaceReaper
from footplate.environments.sandbox import probe
from footplate.environments.session_directories import WORKSPACES
from footplate.harness import registry
from footplate.proxy.allow_list_proxy import AllowListProxy
from footplate.store.session_existence import SessionRegistry
from footplate.wiring.shared_components import get_allowed_roots, get_backend, open_database

if TYPE_CHECKING:
    from footplate.environments.docker import probe as docker_probe

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EnvironmentBackend:
    environments: Environments
    cgroup_directories: Sequence[Path] = ()
    """Directories in which it creates control groups, which the reaper checks."""
    reaper_sweeps: Sequence[SweepCallback] = ()
    """Further checks that the reaper runs."""


async def create_environment_backend(
    settings: Settings, *, worker: str, is_lease_expired: Callable[[str], Awaitable[bool]], trees: Trees | None = None
) -> EnvironmentBackend:
    """Create all backends that the worker offers. Raises `NoSandbox` or `NoContainer` if this machine does not support
    one of them.

    `is_lease_expired` returns whether the lease of a worker is known to have expired.
    """
    backends: dict[str, EnvironmentBackend] = {}
    for name in settings.backend_names:
        if name == "unsandboxed":
            backends[name] = _create_unsandboxed_backend(settings, trees)
        elif name == "docker":
            backends[name] = await _create_docker_backend(settings, worker, is_lease_expired, trees)
        else:
            backends[name] = await _create_sandbox_backend(settings, trees)
    return EnvironmentBackend(
        OfferedBackends({name: backend.environments for name, backend in backends.items()}),
        [path for backend in backends.values() for path in backend.cgroup_directories],
        [sweep for backend in backends.values() for sweep in backend.reaper_sweeps],
    )


def _create_unsandboxed_backend(settings: Settings, trees: Trees | None) -> EnvironmentBackend:
    log.warning("commands run without a sandbox", action="environment.unsandboxed")
    return EnvironmentBackend(
        UnsandboxedFactory(
            settings.data_dir,
            get_backend(settings, "unsandboxed"),
            allowed_roots=get_allowed_roots(settings),
            trees=trees,
        )
    )


async def _create_sandbox_backend(settings: Settings, trees: Trees | None) -> EnvironmentBackend:
    found = await find_sandbox(settings)
    if found.host.cgroups is not None:
        log.info("commands run in a sandbox", action="environment.sandbox")
    else:
        log.warning(
            "cgroups are not available; memory is limited per process",
            action="environment.sandbox",
            reason=found.cgroups_problem,
        )
    environments = SandboxFactory(
        settings.data_dir,
        get_backend(settings, "sandbox"),
        found.host,
        uid=settings.sandbox_uid,
        allowed_roots=get_allowed_roots(settings),
        hidden=[settings.data_dir, *private_dirs()],
        readable=_readable_paths(settings),
        limits=_sandbox_limits(settings),
        egress=AllowListProxy(AddressPolicy(settings.web_allowed)),
        trees=trees,
    )
    return EnvironmentBackend(environments, found.host.cgroups.paths if found.host.cgroups else ())


def find_cgroup_directories() -> Sequence[Path]:
    """Return the directories in which this process can create control groups. Empty if it cannot."""
    try:
        return CgroupFactory.detect().paths
    except (NoCgroups, OSError):
        return ()


def find_leftovers(settings: Settings) -> ReaperResult:
    """Find what the reaper would remove on this host."""
    return Reaper(settings.data_dir, find_cgroup_directories()).find_leftovers()


async def count_unknown_sessions(settings: Settings, in_use: Collection[str]) -> int:
    """Count the sessions that have a directory on this host but are not in the log."""
    async with open_database(settings, patience=0) as database:
        return len(await WorkspaceReaper(settings.data_dir, SessionRegistry(database)).find_unknown(in_use))


async def _create_docker_backend(
    settings: Settings, worker: str, is_lease_expired: Callable[[str], Awaitable[bool]], trees: Trees | None
) -> EnvironmentBackend:
    from footplate.environments.docker.abandoned_containers import remove_abandoned

    found = await find_docker(settings, worker=worker, trees=trees)

    async def is_known_expired(other: str) -> bool:
        try:
            return await is_lease_expired(other)
        except FootplateError:  # unknown counts as not lapsed
            return False

    async def sweep_containers() -> int:
        try:
            return len(
                await remove_abandoned(
                    found.host.engine, sockets=found.host.rendezvous_dir, is_lease_expired=is_known_expired
                )
            )
        except Unavailable as error:
            log.warning("could not check for abandoned containers", action="docker.not_swept", reason=error.message)
            return 0

    log.info("commands run in containers", action="environment.docker", engine=found.detail)
    return EnvironmentBackend(found.factory, reaper_sweeps=[sweep_containers])


async def count_abandoned_containers(settings: Settings) -> int:
    """Count the abandoned containers. Raises `Unavailable`."""
    from footplate.environments.docker.abandoned_containers import find_abandoned

    return len(await find_abandoned(settings.docker_host))


async def find_docker(settings: Settings, *, worker: str, trees: Trees | None = None) -> "docker_probe.DockerProbe":
    """Connect to Docker and prepare the image. Runs the setup script if it has not run yet.

    The Docker library is only loaded here, if it is needed.
    """
    from footplate.environments.docker import probe as docker_probe
    from footplate.environments.docker.factory import WorkerSettings
    from footplate.environments.docker.image_inspection import ImageRecipe

    def read_recipe() -> ImageRecipe | str:
        return settings.docker_container or ImageRecipe(
            image=settings.docker_image or "",
            setup=settings.docker_setup.read_text() if settings.docker_setup else "",
            setup_network=settings.docker_setup_network,
        )

    ground = WorkerSettings(
        root=_absolute(settings.data_dir) / WORKSPACES,
        data=_absolute(settings.data_dir),
        backend=get_backend(settings, "docker"),
        egress=AllowListProxy(AddressPolicy(settings.web_allowed)),
        uid=settings.sandbox_uid,
        allowed_roots=get_allowed_roots(settings),
        hidden=[settings.data_dir, *private_dirs()],
        readable=_readable_paths(settings),
        limits=_sandbox_limits(settings),
        worker=worker,
        trees=trees,
    )
    return await docker_probe.probe_docker(
        settings.docker_host,
        ground,
        _absolute(settings.data_dir) / "docker",
        image_or_container=await asyncio.to_thread(read_recipe),
        network=settings.docker_network,
    )


def _absolute(path: Path) -> Path:
    """Return the resolved path, which the Docker engine requires."""
    return path.resolve()


async def find_sandbox(settings: Settings) -> probe.SandboxProbe:
    found = await probe.probe_sandbox(settings.sandbox_uid)
    if settings.sandbox_cgroups == "required" and found.host.cgroups is None:
        raise probe.NoSandbox(
            f"FOOTPLATE_SANDBOX_CGROUPS=required, but this worker cannot create cgroups: {found.cgroups_problem}.",
            help_text=f"{probe.CGROUPS_HELP}, or set FOOTPLATE_SANDBOX_CGROUPS=wanted to limit memory per process.",
        )
    return found


def _readable_paths(settings: Settings) -> Sequence[str]:
    return [*settings.sandbox_readable_paths, *registry.program_directories()]


def _sandbox_limits(settings: Settings) -> SandboxLimits:
    return SandboxLimits(
        memory=settings.sandbox_memory,
        pids=settings.sandbox_pids,
        cpus=settings.sandbox_cpus,
        disk=settings.sandbox_disk,
    )
