"""Who is killed: the CLI of a session, the worker that holds it, or both at once."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from bench.prove import remains
from bench.prove.cluster import Cluster
from bench.prove.crash import work
from bench.prove.crash.crew import Crew, Death
from footplate.harness.claude import program

Victim = Literal["cli", "worker", "both"]
VICTIMS: Final[tuple[Victim, ...]] = ("cli", "worker", "both")


def clis(cluster: Cluster, session_id: str) -> list[int]:
    """The processes of the session's CLI."""
    wanted, directory = program.path(), work.workspace(cluster, session_id)
    found = []
    for entry in os.scandir("/proc"):
        with suppress(OSError):
            if not entry.name.isdigit():
                continue
            words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
            if words[0] == bytes(wanted) and remains.works_below(Path(entry.path), directory):
                found.append(int(entry.name))
    return found


def kill_cli(cluster: Cluster, session_id: str) -> int:
    """How many died."""
    pids = clis(cluster, session_id)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(pids)


async def kill(victim: Victim, crew: Crew, session_id: str) -> tuple[int, Death | None]:
    """How many processes were hit, and the worker's death if it was one of them."""
    hit = 0
    if victim in {"cli", "both"}:
        hit += kill_cli(crew.cluster, session_id)
    if victim == "cli":
        return hit, None
    number = await crew.holder(session_id)
    if number is None:
        return hit, None
    death = await crew.kill(number)
    await crew.cluster.restart_worker(number)
    return hit + 1, death
