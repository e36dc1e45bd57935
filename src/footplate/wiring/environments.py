"""Which backend runs the commands of a worker: what the operator says, or no worker at all."""

import asyncio
from pathlib import Path

import structlog

from footplate.config import Settings, private_dirs
from footplate.domain.running import Environments
from footplate.environments.opening import Sandboxed, Unsandboxed
from footplate.environments.sandbox import probe
from footplate.environments.sandbox.limits import Limits

log = structlog.get_logger(__name__)


async def choose_environments(settings: Settings, workspaces: Path) -> Environments:
    """Raises `NoSandbox` where the operator wants a sandbox and this machine cannot give one."""
    if settings.environment == "unsandboxed":
        log.warning("commands run without a boundary", action="environment.unsandboxed")
        return Unsandboxed(workspaces, may_be_named=settings.named_directories)
    found = await find_sandbox(settings)
    if found.host.cgroups is not None:
        removed = await asyncio.to_thread(found.host.cgroups.sweep)
        log.info("commands run in a sandbox", action="environment.sandbox", old_cgroups_removed=removed)
    else:
        log.warning(
            "no control groups: memory is limited process by process",
            action="environment.sandbox",
            reason=found.without_cgroups,
        )
    return Sandboxed(
        workspaces,
        found.host,
        uid=settings.sandbox_uid,
        may_be_named=settings.named_directories,
        hidden=[settings.data_dir, *private_dirs()],
        readable=settings.sandbox_readable_paths,
        network=settings.sandbox_network == "open",
        limits=Limits(
            memory=settings.sandbox_memory,
            pids=settings.sandbox_pids,
            cpus=settings.sandbox_cpus,
            disk=settings.sandbox_disk,
        ),
    )


async def find_sandbox(settings: Settings) -> probe.Found:
    found = await probe.find(settings.sandbox_uid)
    if settings.sandbox_cgroups == "required" and found.host.cgroups is None:
        raise probe.NoSandbox(
            f"FOOTPLATE_SANDBOX_CGROUPS=required, and this worker cannot make control groups: {found.without_cgroups}.",
            help_text=f"{probe.DELEGATE}, or set it to `wanted`: memory is then limited process by process.",
        )
    return found
