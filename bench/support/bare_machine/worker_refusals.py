"""Starts a worker on machines that cannot provide the configured boundary: it must explain that and take no turn.

Each machine is this one, with the capability really removed for the one worker that is started on it.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.speed.measurement import ROOT

_PATIENCE: Final = 60.0
_NO_NAMESPACES: Final = (sys.executable, "-m", "bench.support.bare_machine.without_namespaces")
_NO_GROUPS: Final = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedMachine:
    lacks: str
    environment: Mapping[str, str]
    expected_texts: Sequence[str]
    """Texts that the error must contain: what happened, and what to do about it."""
    wrapper: Sequence[str] = field(default=())
    """The command that removes the capability and then starts the worker."""


MACHINES: Final = (
    LimitedMachine(
        lacks="bubblewrap",
        environment={"FOOTPLATE_ENVIRONMENT": "sandbox", "PATH": "/nonexistent"},
        expected_texts=("requires bubblewrap", "apt install bubblewrap"),
    ),
    LimitedMachine(
        lacks="user namespaces",
        environment={"FOOTPLATE_ENVIRONMENT": "sandbox"},
        wrapper=_NO_NAMESPACES,
        expected_texts=("Creating new namespace failed", "user.max_user_namespaces"),
    ),
    LimitedMachine(
        lacks="control groups that are required",
        environment={"FOOTPLATE_ENVIRONMENT": "sandbox", "FOOTPLATE_SANDBOX_CGROUPS": "required"},
        wrapper=_NO_GROUPS,
        expected_texts=("cannot create cgroups", "Delegate=yes"),
    ),
    LimitedMachine(
        lacks="a docker engine",
        environment={
            "FOOTPLATE_ENVIRONMENT": "docker",
            "FOOTPLATE_DOCKER_HOST": "unix:///nonexistent/docker.sock",
            "FOOTPLATE_DOCKER_IMAGE": "anything",
        },
        expected_texts=("Docker engine", "FOOTPLATE_DOCKER_HOST"),
    ),
)


async def check_all_machines(cluster: Cluster) -> None:
    for machine in MACHINES:
        output = await _run_worker_on(machine, cluster)
        missing = [text for text in machine.expected_texts if text not in output]
        require(
            holds=not missing, otherwise=f"without {machine.lacks} a worker does not report {missing}, but: {output}"
        )


async def _run_worker_on(machine: LimitedMachine, cluster: Cluster) -> str:
    """Returns the output of the worker, which must exit by itself."""
    worker = await asyncio.create_subprocess_exec(
        *machine.wrapper,
        *(sys.executable, "-m", "footplate", "worker"),
        cwd=ROOT,
        env={**cluster.environment(), "COLUMNS": "1000", **machine.environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            output = (await worker.communicate())[0].decode(errors="replace")
    except TimeoutError:
        require(holds=False, otherwise=f"a worker runs without {machine.lacks}")
        raise
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    require(
        holds=worker.returncode == 1, otherwise=f"without {machine.lacks} it ended with {worker.returncode}: {output}"
    )
    return output
