"""Starts workers that each have their own disk, as on separate machines, and simulates the loss of one."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.forked_program import ForkedProgram
from footplate.cli.dev.child_process_definitions import WORKER_READY
from footplate.stack import PythonService
from footplate.stack.orphan_processes import wait_until

_REMOVED_WITHIN: Final = 60.0
_PATIENCE: Final = 180.0
"""Seconds that a worker may take to start: turns of other workers may keep the machine busy."""


def create_worker_host(cluster: Cluster, name: str, backend: str, objects: str | None = None) -> PythonService:
    """Creates a worker with its own home and data directory.

    All workers share one object store: `objects`, or by default the one of the cluster's API.
    """
    directory = data_directory(cluster, name).parent
    environment = {
        **cluster.environment(),
        "HOME": str(directory / "home"),
        "FOOTPLATE_DATA_DIR": str(directory / "data"),
        "FOOTPLATE_OBJECTS_URL": objects or f"file://{cluster.directory}/data/objects",
        "FOOTPLATE_ENVIRONMENT": backend,
    }
    os.makedirs(directory / "home", exist_ok=True)  # noqa: PTH103
    os.makedirs(directory / "data", exist_ok=True)  # noqa: PTH103
    program = ForkedProgram(
        cluster.directory / f"worker-{name}",
        title=f"worker {name}",
        module="footplate",
        arguments=("worker",),
        environment=environment,
        log_file=cluster.directory / "logs" / f"worker-{name}.log",
        ready_mark=WORKER_READY,
    )
    program.start_timeout = _PATIENCE
    return program


def data_directory(cluster: Cluster, name: str) -> Path:
    return cluster.directory / f"host-{name}" / "data"


async def lose_host(cluster: Cluster, name: str, program: PythonService) -> None:
    await program.kill()
    await remove_disk(cluster, name)


async def remove_disk(cluster: Cluster, name: str) -> None:
    """Deletes the host's data directory. Retries, because the killed worker's guardian may be deleting files too."""
    data = data_directory(cluster, name)

    async def removed() -> bool:
        await asyncio.to_thread(shutil.rmtree, data, ignore_errors=True)
        return not await asyncio.to_thread(data.exists)

    require(holds=await wait_until(removed, _REMOVED_WITHIN), otherwise=f"the disk of host {name} cannot be removed")
