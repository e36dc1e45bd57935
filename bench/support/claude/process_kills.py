"""Kills the CLI of a session, the worker that runs it, or both."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from bench.support import cluster_processes
from bench.support.cluster import Cluster
from bench.support.crash import interrupted_turn
from bench.support.crash.worker_deaths import WorkerDeath, WorkerDeaths
from footplate.harness.claude.session import cli_path

Victim = Literal["cli", "worker", "both"]
VICTIMS: Final[tuple[Victim, ...]] = ("cli", "worker", "both")


def list_processes(cluster: Cluster, session_id: str) -> dict[int, bytes]:
    """Returns the session's processes, each with its program."""
    directory = interrupted_turn.workspace_path(cluster, session_id)
    found = {}
    for entry in os.scandir("/proc"):
        with suppress(OSError):
            if entry.name.isdigit() and cluster_processes.works_below(Path(entry.path), directory):
                found[int(entry.name)] = Path(entry.path, "cmdline").read_bytes().partition(b"\0")[0]
    return found


def list_cli_processes(cluster: Cluster, session_id: str) -> list[int]:
    """Returns the processes of the session's CLI."""
    wanted = bytes(cli_path.find_cli())
    return [pid for pid, name in list_processes(cluster, session_id).items() if name == wanted]


def kill_cli(cluster: Cluster, session_id: str) -> int:
    """Kills the CLI, and returns the number of its processes."""
    pids = list_cli_processes(cluster, session_id)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(pids)


async def kill_victim(victim: Victim, crew: WorkerDeaths, session_id: str) -> tuple[int, WorkerDeath | None]:
    """Kills the victim. Returns how many processes were killed, and the worker's death if it was one of them."""
    hit = 0
    if victim in {"cli", "both"}:
        hit += kill_cli(crew.cluster, session_id)
    if victim == "cli":
        return hit, None
    number = await crew.find_worker(session_id)
    if number is None:
        return hit, None
    death = await crew.kill_worker(number)
    await crew.cluster.restart_worker(number)
    return hit + 1, death
