"""Creates the environment backend that the operator selected. A worker does not start if it is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from footplate.config import Settings, private_dirs
from footplate.domain.addresses import Reach
from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.running import Environments, Trees
from footplate.environments.opening import WORKSPACES, Sandboxed, Unsandboxed
from footplate.environments.reaper.patrol import Sweep
from footplate.environments.reaper.workspaces import Workspaces
from footplate.environments.sandbox import probe
from footplate.environments.sandbox.cgroups import Cgroups, NoCgroups
from footplate.environments.sandbox.limits import Limits
from footplate.harness import registry
from footplate.proxy.egress import AllowListProxy
from footplate.store.session_log import SessionLog
from footplate.wiring.parts import backend_of, named_roots, open_database

if TYPE_CHECKING:
    from footplate.environments.docker import probe as docker_probe

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Chosen:
    environments: Environments
    groups: Sequence[Path] = ()
    """Directories in which it creates control groups, which the reaper checks."""
    sweeps: Sequence[Sweep] = ()
    """Further checks that the reaper runs."""


async def choose_environments(
    settings: Settings, *, worker: str, lapsed: Callable[[str], Awaitable[bool]], trees: Trees | None = None
) -> Chosen:
    """Create the selected backend. Raises `NoSandbox` or `NoContainer` if this machine does not support it.

    `is_lease_expired` returns whether the lease of a worker is known to have expired.
    """
    if settings.environment == "unsandboxed":
        log.warning("commands run without a sandbox", action="environment.unsandboxed")
        return Chosen(Unsandboxed(settings.data_dir, backend_of(settings), allowed_roots=named_roots(settings), trees=trees))
    if settings.environment == "docker":
        return await _choose_docker(settings, worker, lapsed, trees)
    found = await find_sandbox(settings)
    if found.host.cgroups is not None:
        log.info("commands run in a sandbox", action="environment.sandbox")
    else:
        log.warning(
            "no control groups: memory is limited per process",
            action="environment.sandbox",
            reason=found.without_cgroups,
        )
    environments = Sandboxed(
        settings.data_dir,
        backend_of(settings),
        found.host,
        uid=settings.sandbox_uid,
        allowed_roots=named_roots(settings),
        hidden=[settings.data_dir, *private_dirs()],
        readable=_readable(settings),
        limits=_limits(settings),
        egress=AllowListProxy(Reach(settings.web_allowed)),
        trees=trees,
    )
    return Chosen(environments, found.host.cgroups.places if found.host.cgroups else ())


def own_groups() -> Sequence[Path]:
    """Return the directories in which this process can create control groups. Empty if it cannot."""
    try:
        return Cgroups.find().places
    except (NoCgroups, OSError):
        return ()


async def count_unknown_sessions(settings: Settings, in_use: Collection[str]) -> int:
    """Count the sessions that have a directory on this host but are not in the log."""
    async with open_database(settings, patience=0) as database:
        return len(await Workspaces(settings.data_dir, SessionLog(database)).unknown(in_use))


async def _choose_docker(
    settings: Settings, worker: str, lapsed: Callable[[str], Awaitable[bool]], trees: Trees | None
) -> Chosen:
    from footplate.environments.docker.sweep import sweep

    found = await find_docker(settings, worker=worker, trees=trees)

    async def is_lapsed(other: str) -> bool:
        try:
            return await lapsed(other)
        except FootplateError:  # unknown counts as not lapsed
            return False

    async def swept() -> int:
        try:
            return len(await sweep(found.host.engine, sockets=found.host.sockets, lapsed=is_lapsed))
        except Unavailable as error:
            log.warning("containers could not be checked", action="docker.not_swept", reason=error.message)
            return 0

    log.info("commands run in containers", action="environment.docker", engine=found.detail)
    return Chosen(found.environments, sweeps=[swept])


async def count_containers(settings: Settings) -> int:
    """Count the abandoned containers. Raises `Unavailable`."""
    from footplate.environments.docker.sweep import abandoned

    return len(await abandoned(settings.docker_host))


async def find_docker(settings: Settings, *, worker: str, trees: Trees | None = None) -> "docker_probe.Found":
    """Connect to Docker and prepare the image. Runs the setup script if it has not run yet.

    The Docker library is only loaded here, if it is needed.
    """
    from footplate.environments.docker import probe as docker_probe
    from footplate.environments.docker.images import Recipe
    from footplate.environments.docker.opening import Ground

    def wanted() -> Recipe | str:
        return settings.docker_container or Recipe(
            image=settings.docker_image or "",
            setup=settings.docker_setup.read_text() if settings.docker_setup else "",
            setup_network=settings.docker_setup_network,
        )

    ground = Ground(
        root=_absolute(settings.data_dir) / WORKSPACES,
        data=_absolute(settings.data_dir),
        backend=backend_of(settings),
        egress=AllowListProxy(Reach(settings.web_allowed)),
        uid=settings.sandbox_uid,
        named=named_roots(settings),
        hidden=[settings.data_dir, *private_dirs()],
        readable=_readable(settings),
        limits=_limits(settings),
        worker=worker,
        placing=trees,
    )
    return await docker_probe.find(
        settings.docker_host,
        ground,
        _absolute(settings.data_dir) / "docker",
        wanted=await asyncio.to_thread(wanted),
        network=settings.docker_network,
    )


def _absolute(path: Path) -> Path:
    """Return the resolved path, which the Docker engine requires."""
    return path.resolve()


async def find_sandbox(settings: Settings) -> probe.Found:
    found = await probe.find(settings.sandbox_uid)
    if settings.sandbox_cgroups == "required" and found.host.cgroups is None:
        raise probe.NoSandbox(
            f"FOOTPLATE_SANDBOX_CGROUPS=required, but this worker cannot create cgroups: {found.without_cgroups}.",
            help_text=f"{probe.DELEGATE}, or set it to `wanted` to limit memory per process.",
        )
    return found


def _readable(settings: Settings) -> Sequence[str]:
    return [*settings.sandbox_readable_paths, *registry.programs()]


def _limits(settings: Settings) -> Limits:
    return Limits(
        memory=settings.sandbox_memory,
        pids=settings.sandbox_pids,
        cpus=settings.sandbox_cpus,
        disk=settings.sandbox_disk,
    )
