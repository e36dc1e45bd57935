"""After 200 Claude Code sessions a worker uses hardly more memory than after 20, and leaks no other resources.

The sessions run one after the other: some are prewarmed before their first message, all run a second turn with the same
CLI, and some are interrupted. Before each count, the worker's warm CLIs have expired, and so have the workflows of idle
sessions, which take some 100 KB each.
"""

import asyncio
import os
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.prove.figure import Figure, require
from bench.support import cluster_processes
from bench.support.clients import Client, texts
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.projects.project import PRIVATE_TREES
from footplate.domain.sessions import events
from footplate.environments import leases
from footplate.environments.session_directories import WORKSPACES
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

_SETTINGS: Final = {"FOOTPLATE_KEPT_SECONDS": "2", "FOOTPLATE_SLOT_SECONDS": "2", "FOOTPLATE_LINGER": "2"}
_MAX_GROWTH: Final = 1.10
_TOLERANCES: Final = {"descriptors": 4}
"""The number of connections to the stores varies by a few; a leak would add 180."""
_MIB: Final = 1 << 20
_SETTLE_SECONDS: Final = 60.0
_GROUPS: Final = Path("/sys/fs/cgroup")
_SESSION_DIRECTORIES: Final = (WORKSPACES, PRIVATE_TREES, "objects")
_SCRIPTS: Final = {
    "works": replies([tool("Bash", {"command": "seq 1 2000 > made; wc made"})], [text("Made.")]),
    "talks": replies([text("Well.")]),
    "waits": replies([tool("Bash", {"command": "sleep 300"})], [text("Never.")]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    first: int
    """Sessions before the first count."""
    all: int


FULL: Final = Size(first=20, all=200)
QUICK: Final = Size(first=2, all=4)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    return await prove_at(QUICK if quick else FULL, judge=not quick)


async def prove_at(size: Size, *, judge: bool) -> Figure:
    """Without `judge` the limit on growth does not apply: a worker grows when it does something for the first time."""
    async with open_cluster(environment=_SETTINGS) as cluster, Client(cluster) as client:
        for name, script in _SCRIPTS.items():
            await cluster.model.install(name, script)
        agent = await client.agent(extra_body={"harness": "claude"})
        before = await _count_resources(cluster)
        for number in range(size.first):
            await _run_session(client, agent, number)
        early = await _count_resources(cluster)
        for number in range(size.first, size.all):
            await _run_session(client, agent, number)
            if number % 20 == 19:
                print(f"  {number + 1} sessions", flush=True)
        late = await _count_resources(cluster)
    growth = late.rss / early.rss
    leaked = {
        name: count
        for name, count in asdict(late).items()
        if name != "rss" and count > getattr(early, name) + _TOLERANCES.get(name, 0)
    }
    sizes = f"{early.rss / _MIB:.0f} MiB after {size.first} sessions, {late.rss / _MIB:.0f} after {size.all}"
    headline = (
        f"memory after {size.all} sessions is {growth:.3f} times that after {size.first} (limit {_MAX_GROWTH:.2f})"
    )
    if leaked:
        headline = f"leaked after {size.all} sessions: {', '.join(leaked)}"
    return Figure(
        headline=headline,
        summary=f"the worker uses {sizes}: {growth:.3f} times (limit {_MAX_GROWTH:.2f}); descriptors "
        f"{early.descriptors} and "
        f"{late.descriptors}, processes {early.processes} and {late.processes}, leases {early.leases} and "
        f"{late.leases}, control groups {early.groups} and {late.groups}, other files {early.files} and {late.files}",
        holds=not leaked and (growth <= _MAX_GROWTH or not judge),
        details={"before": {**asdict(before)}, "early": {**asdict(early)}, "late": {**asdict(late)}},
    )


async def _run_session(client: Client, agent: str, number: int) -> None:
    session_id = await client.session(agent)
    if number % 4 == 0:
        await asyncio.sleep(1.5)  # by then its CLI is prewarmed
    async with client.stream(session_id) as stream:
        await client.send_text(session_id, "Go. [[script:works]]")
        require(holds=texts(await stream.until_idle()) == ["Made."], otherwise="a turn did not complete")
        if number % 10 == 9:
            await client.send_text(session_id, "Wait. [[script:waits]]")
            await stream.until(events.AGENT_TOOL_USE)
            await client.interrupt(session_id)
            await stream.until_idle()
        else:
            await client.send_text(session_id, "And? [[script:talks]]")
            require(holds=texts(await stream.until_idle()) == ["Well."], otherwise="a second turn did not complete")


@dataclass(frozen=True, slots=True)
class _ResourceCount:
    rss: int
    descriptors: int
    processes: int
    """Child processes of the worker."""
    leases: int
    groups: int
    files: int
    """The worker's files, without those of its sessions and their objects."""


async def _count_resources(cluster: Cluster) -> _ResourceCount:
    """Counts the worker's resources when no CLI is warm any more."""
    pid = cluster.workers[0].pid
    assert pid is not None
    worker = psutil.Process(pid)
    lease_directory = cluster.directory / "data" / leases.LEASES_DIRECTORY

    async def has_no_leases() -> bool:
        return not _count_entries(lease_directory)

    await wait_until(has_no_leases, _SETTLE_SECONDS)
    await asyncio.sleep(2)
    return _ResourceCount(
        rss=worker.memory_info().rss,
        descriptors=worker.num_fds(),
        processes=len(worker.children(recursive=True)),
        leases=_count_entries(lease_directory),
        groups=_count_control_groups(pid),
        files=_count_files(cluster.directory / "data"),
    )


def _count_entries(directory: Path) -> int:
    return sum(1 for _ in directory.iterdir()) if directory.is_dir() else 0


def _count_files(data: Path) -> int:
    other_paths = (place for place in data.iterdir() if place.name not in _SESSION_DIRECTORIES)
    return sum(1 + sum(1 for _ in cluster_processes.walk_paths(place)) for place in other_paths)


def _count_control_groups(worker: int) -> int:
    """Counts the control groups of this worker's leases: their names begin with its process id."""
    found: Counter[str] = Counter()
    for _, directories, _ in os.walk(_GROUPS):
        with suppress(OSError):
            found.update(name for name in directories if name.startswith(f"{worker}-"))
    return len(found)
