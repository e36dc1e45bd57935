"""Tests the search itself: plants one orphan of each kind and requires that the search finds it."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.prove.figure import require
from bench.support import environment_backends
from bench.support.crash import interrupted_turn
from bench.support.orphan_search import lingering_commands
from bench.support.orphan_search.turn_endings import TestBed
from footplate.environments import leases
from footplate.environments.docker import container_owner, labels
from footplate.environments.docker.engine_api import connect_engine, remove_container
from footplate.stack.orphan_processes import wait_until


async def find_planted_orphans(test_bed: TestBed) -> list[str]:
    """Plants one orphan of each kind and returns the kinds. Raises unless the search finds exactly these."""
    search, data = test_bed.search, test_bed.cluster.directory / "data"
    session_id = await test_bed.client.session(test_bed.agent, title="planted")
    await test_bed.client.send_text(session_id, "Stay. [[script:stays]]")

    async def ready() -> bool:
        return (interrupted_turn.workspace_path(test_bed.cluster, session_id) / lingering_commands.READY).exists()

    require(holds=await wait_until(ready, 180), otherwise="the command did not start")
    search.record_turns()
    (lease_id,) = search.running_lease_ids()
    groups = sorted(group for group in search.groups if group.name == lease_id)
    async with AsyncExitStack() as planted:
        namespace = os.open(
            f"/proc/{_find_process_in_sandbox(lease_id, search.guardians[lease_id])}/ns/mnt", os.O_RDONLY
        )
        planted.callback(os.close, namespace)
        bound = planted.enter_context(socket.socket(socket.AF_UNIX))
        bound.bind(str(data / "s"))
        planted.callback((data / "s").unlink)
        await test_bed.client.interrupt(session_id)

        async def over() -> bool:
            return not search.running_lease_ids()

        require(holds=await wait_until(over, 180), otherwise="the turn did not end")
        mark = lingering_commands.process_marker(test_bed.cluster)
        survivor = await asyncio.create_subprocess_exec("bash", "-c", f"exec -a {mark} sleep 60", env={}, cwd="/")
        planted.callback(survivor.kill)
        directory = data / leases.LEASES_DIRECTORY / lease_id
        directory.mkdir()
        planted.callback(shutil.rmtree, directory)
        for group in groups[:1]:
            group.mkdir()
            planted.callback(group.rmdir)
        if search.engine:
            await planted.enter_async_context(_planted_container(search.engine))
        kinds = (await asyncio.to_thread(search.find_orphans)).by_kind
    await survivor.wait()
    expected = {"processes", "namespaces", "sockets", "directories"}
    expected |= {"cgroups"} if groups else set()
    expected |= {"containers"} if search.engine else set()
    require(holds=set(kinds) == expected, otherwise=f"planted were {sorted(expected)}, the search found {kinds}")
    return sorted(expected)


@asynccontextmanager
async def _planted_container(engine: str) -> AsyncIterator[None]:
    """Creates a container that is never started. Its owner is a living process, so the reaper does not remove it."""
    async with connect_engine(engine) as docker:
        marks = {labels.OWNER: container_owner.owner_name(os.getpid())}
        made = await docker.containers.create({"Image": environment_backends.IMAGE, "Cmd": ["true"], "Labels": marks})
        try:
            yield
        finally:
            await remove_container(docker, made.id)


def _find_process_in_sandbox(lease_id: str, guardian: int) -> int:
    """Returns the pid of a process of the turn that has its own namespaces, or of the guardian if there is none."""
    own = Path("/proc/self/ns/mnt").readlink()
    for stat in Path("/proc").glob("[0-9]*/ns/mnt"):
        pid = int(stat.parts[2])
        try:
            arguments = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            if lease_id.encode() in arguments and stat.readlink() != own:
                return pid
        except OSError:
            continue
    return guardian
