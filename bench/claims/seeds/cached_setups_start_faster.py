"""The second session of a project starts its tests in under a third of the first one's time, because of the cache.

A Python project and a Node project with a lock file are set up in the sandbox, without a network. Then the caches are
deleted, replaced by those of another project, and damaged: the tests have the same results.
"""

import asyncio
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.prove.figure import Figure, require, time_limit
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.setup_projects import SetupProject, create_node_project, create_python_project
from bench.support.worker_hosts import create_worker_host, data_directory
from footplate.domain.json import JsonObject
from footplate.stack import PythonService

_DEPENDENCIES: Final = 40
_NODE_DEPENDENCIES: Final = 200
"""Packages of Node are small, and there are many in a project."""
_DEPENDENCIES_QUICK: Final = 4
_WARM_SESSIONS: Final = 5
_MAX_RATIO: Final = 1 / 3
_PATIENCE: Final = 900.0
_STARTED: Final = re.compile(r"started (\d+)\n(tests passed .*)")
_OBJECTS_FOLDER: Final = "caches"


@dataclass(slots=True)
class _Findings:
    lines: list[str] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    times: JsonObject = field(default_factory=dict)
    sessions: int = 0


@dataclass(slots=True)
class _World:
    cluster: Cluster
    client: Client
    projects: Path
    hosts: Sequence[PythonService]
    agent: str
    found: _Findings = field(default_factory=_Findings)

    async def create(self, project: SetupProject, *, setup: str | None = None) -> str:
        body = {"path": project.path, "setup": setup or project.setup}
        made: Any = await self.client.sdk.post("/v1/projects", body=body, cast_to=dict[str, Any])
        return str(made["id"])

    async def run_tests(self, project: SetupProject, project_id: str) -> tuple[float, str]:
        """Runs the tests in a new session. Returns the seconds from the message to their start, and their result."""
        session_id = await self.client.session(self.agent, extra_body={"project_ids": [project_id]})
        self.found.sessions += 1
        began = time.time()
        events = await self.client.run_turn(
            session_id, f"echo started $(date +%s%N); {project.tests}", patience=_PATIENCE
        )
        results = [event for event in events if event["type"] == "agent.tool_result"]
        output = "".join(block["text"] for event in results for block in event["content"])
        matched = _STARTED.search(output)
        errors = [event["error"]["message"] for event in events if event["type"] == "session.error"]
        require(holds=matched is not None, otherwise=f"the tests did not run: {output[-500:]} {errors}")
        assert matched is not None
        return int(matched[1]) / 1e9 - began, matched[2]

    async def use_host(self, number: int) -> None:
        for host in self.hosts:
            await host.kill()
        await self.hosts[number].start()

    def cache_files(self, project_id: str) -> list[Path]:
        """The caches of a project: in the object store, and on the hosts."""
        folders = [self.cluster.directory / "data" / "objects", *(data_directory(self.cluster, one) for one in "ab")]
        return [
            path
            for folder in folders
            for path in folder.rglob("*")
            if path.is_file() and _OBJECTS_FOLDER in path.parts and project_id in path.parts
        ]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    count = _DEPENDENCIES_QUICK if quick else _DEPENDENCIES
    async with _open_world() as world:
        found = world.found
        for project in (
            await asyncio.to_thread(create_python_project, world.projects, "python", count),
            await asyncio.to_thread(
                create_node_project, world.projects, "node", count if quick else _NODE_DEPENDENCIES
            ),
        ):
            await _check_project(world, project, warm_sessions=1 if quick else _WARM_SESSIONS)
    for fault in found.faults:
        print(f"  FAULT {fault}", flush=True)
    worst = max(found.ratios)
    return Figure(
        headline=f"tests start after {worst:.0%} of the first session's time; {len(found.faults)} results differ",
        summary=f"{found.sessions} sessions in the sandbox: {'; '.join(found.lines)}. After the caches "
        "were deleted, replaced by those of another project with equal lock files, and damaged, "
        f"{len(found.faults)} results differed",
        holds=not found.faults and worst < time_limit(_MAX_RATIO, quick=quick),
        details={"ratios": [round(ratio, 3) for ratio in found.ratios], "faults": [*found.faults], **found.times},
    )


@asynccontextmanager
async def _open_world() -> AsyncIterator[_World]:
    async with AsyncExitStack() as exits:
        projects = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="footplate-")))
        environment = {
            "FOOTPLATE_PROJECTS_ROOT": str(projects),
            "FOOTPLATE_LEASE": "10",
            "FOOTPLATE_HEARTBEAT_TIMEOUT": "15",
        }
        cluster = await exits.enter_async_context(open_cluster(workers=0, environment=environment))
        client = await exits.enter_async_context(Client(cluster))
        backend = environment_backends.default_backend()
        hosts = [create_worker_host(cluster, name, backend) for name in ("a", "b")]
        for host in hosts:
            exits.push_async_callback(host.kill)
        agent = await client.agent(extra_body={"harness": "shell"})
        world = _World(cluster, client, projects, hosts, agent)
        await world.use_host(0)
        yield world


async def _check_project(world: _World, project: SetupProject, *, warm_sessions: int) -> None:
    found = world.found
    project_id = await world.create(project)
    cold, expected = await world.run_tests(project, project_id)

    async def check(case: str) -> float:
        seconds, result = await world.run_tests(project, project_id)
        print(f"  {project.name}, {case}: {seconds:.1f} s", flush=True)
        if result != expected:
            found.faults.append(f"{project.name}, {case}: {result} instead of {expected}")
        return seconds

    print(f"  {project.name}, first session: {cold:.1f} s", flush=True)
    warm = [await check("second session") for _ in range(warm_sessions)]
    found.ratios.append(median(warm) / cold)
    await world.use_host(1)
    other_host = await check("on another host")
    await world.use_host(0)
    await _replace_by_other_project(world, project, project_id)
    replaced = await check("caches of another project")
    for path in world.cache_files(project_id):
        path.write_bytes(path.read_bytes()[::-1])
    damaged = await check("damaged caches")
    for path in world.cache_files(project_id):
        path.unlink()
    deleted = await check("deleted caches")
    found.lines.append(
        f"{project.name} with {project.dependencies} dependencies: {cold:.1f} s at first, {median(warm):.1f} s with "
        f"the cache, {other_host:.1f} s on another host, {deleted:.1f} s with the cache deleted"
    )
    times = {"first": cold, "second": median(warm), "other_host": other_host, "replaced": replaced}
    times |= {"damaged": damaged, "deleted": deleted}
    found.times[project.name] = {case: round(seconds, 2) for case, seconds in times.items()}


async def _replace_by_other_project(world: _World, project: SetupProject, project_id: str) -> None:
    """Sets up a second project with equal files, whose setup breaks every module, and puts its cache in the places of
    the first project's.
    """
    path = f"{project.path}-other"
    clone = ["git", "clone", "-q", str(world.projects / project.path), str(world.projects / path)]
    await asyncio.to_thread(subprocess.check_call, clone)
    poison = "find .venv node_modules -name '*.py' -o -name '*.js' 2>/dev/null | xargs sed -i '1i poisoned' ; true"
    other = SetupProject(project.name, path, f"{project.setup}; {poison}", "true", project.dependencies)
    other_id = await world.create(other)
    session_id = await world.client.session(world.agent, extra_body={"project_ids": [other_id]})
    await world.client.run_turn(session_id, "true", patience=_PATIENCE)
    sources = world.cache_files(other_id)
    require(holds=bool(sources), otherwise=f"the other {project.name} project has no cache")
    targets = world.cache_files(project_id)
    require(holds=bool(targets), otherwise=f"the {project.name} project has no cache")
    for target in targets:
        await asyncio.to_thread(shutil.copyfile, sources[0], target)
