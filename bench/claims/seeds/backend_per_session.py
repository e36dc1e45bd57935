"""Sessions with a project choose their backend, and each run the place of its shell, with one set of workers.

One cluster offers the sandbox, no sandbox, and a new container for each turn. Another one offers the sandbox and a
container of the operator that already runs. Every combination works on the same tree, also after the host's files are
lost, and its commits are merged into the project. Then the crash sample runs in each backend. A full run also runs the
environment tests of every backend.
"""

import asyncio
import random
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.claims.core.kill_any_process import SETTINGS
from bench.prove.figure import Figure, require
from bench.support import environment_backends, pytest_suite
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from bench.support.crash import interrupted_turn
from bench.support.crash.cell import Cell
from bench.support.crash.worker_kills import kill_workers
from bench.support.host_loss.trial import make_git_project
from footplate.environments.docker.engine_api import connect_engine
from footplate.failpoints import POINTS
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool
from footplate.testing.docker_image import DEFAULT_PROGRAMS

_TESTS: Final = (
    "tests/integration/environments",
    "tests/integration/trees/test_session_trees.py",
    "tests/integration/engine/test_backends.py",
)
_SHELL_MODES: Final = (None, "host", "container")
_CONTAINER: Final = "of-the-operator"
_MOUNTED: Final = ("workspaces", "docker", "mirrors")
_HOST_FILES: Final = ("workspaces", "trees", "mirrors")
"""What a host has of its sessions' files. The object store is elsewhere."""
_COMMAND: Final = (
    "echo $(test -e /etc/os-release && echo host || echo container) $PWD | tee -a places"
    " && git add places && git commit -qm place && git fsck --strict"
)


@dataclass(slots=True)
class _Findings:
    runs: int = 0
    kills: int = 0
    turns: int = 0
    calls: int = 0
    faults: list[str] = field(default_factory=list)

    def check(self, *, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)
            print(f"  FAULT {fault}", flush=True)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    found = _Findings()
    tests = 0 if quick else len(await pytest_suite.run_tests(*_TESTS, FOOTPLATE_TESTS_NEED_DOCKER="1"))
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_git_project, root)
        async with environment_backends.docker_engine([*DEFAULT_PROGRAMS, "git"]) as address:
            settings = {**SETTINGS, "FOOTPLATE_PROJECTS_ROOT": str(root), "FOOTPLATE_DOCKER_HOST": address}
            image = {"FOOTPLATE_DOCKER_IMAGE": environment_backends.IMAGE}
            chance = random.Random(seed)
            for named in (False, True):
                backends = ["sandbox", "docker"] if named else ["sandbox", "docker", "unsandboxed"]
                offered = {"FOOTPLATE_ENVIRONMENT": "sandbox", "FOOTPLATE_BACKENDS": ",".join(backends)}
                docker = {"FOOTPLATE_DOCKER_CONTAINER": _CONTAINER} if named else image
                async with (
                    open_cluster(workers=0, environment={**settings, **offered, **docker}) as cluster,
                    Client(cluster, max_retries=40) as client,
                    _operators_container(cluster, address, enabled=named),
                ):
                    for _ in range(2):
                        await cluster.add_worker()
                    made = await client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
                    trial = _Trial(cluster, client, root / "app", made["id"], found, named=named)
                    await trial.check_combinations(backends)
                    for backend in ["docker"] if named else backends:
                        await trial.kill_workers(backend, chance, quick=quick)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    headline = f"{found.runs} runs in all combinations, {found.kills} kills in 4 backends: {len(found.faults)} faults"
    tested = f"; {tests} environment tests passed, none skipped" if tests else ""
    return Figure(
        headline=headline,
        summary=f"sessions with a project in the sandbox, without one, in a new container and in a running one, with "
        f"each place of the shell: {found.runs} runs on one tree per session, also after the host's files were lost; "
        f"{found.kills} SIGKILLs of busy workers: all {found.turns} turns ended and none of {found.calls} calls ran "
        f"twice{tested}; {len(found.faults)} faults",
        holds=not found.faults and found.kills > 0,
        details={"faults": [*found.faults], "runs": found.runs, "kills": found.kills, "tests": tests},
    )


class _Trial:
    def __init__(
        self, cluster: Cluster, client: Client, repository: Path, project_id: str, found: _Findings, *, named: bool
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._repository = repository
        self._project_id = project_id
        self._found = found
        self._named = named

    async def check_combinations(self, backends: Sequence[str]) -> None:
        """Runs a turn for each backend and shell mode, loses the host's files, and runs another one."""
        await self._cluster.model.install("place", replies([tool("bash", {"command": _COMMAND})], [text("Done.")]))
        sessions = {
            await self._client.session(extra_body=self._fields(backend)): backend for backend in [None, *backends]
        }
        expected: dict[str, list[str]] = {session_id: [] for session_id in sessions}
        for mode in _SHELL_MODES:
            await self._run(sessions, expected, mode)
        await self._lose_files()
        await self._run(sessions, expected, None)
        for session_id, places in expected.items():
            path, body = f"/v1/sessions/{session_id}/merge", {"into": f"of-{session_id}"}
            await self._client.sdk.post(path, body=body, cast_to=dict[str, Any])
            merged = await asyncio.to_thread(_git, self._repository, "show", f"of-{session_id}:places")
            self._found.check(holds=merged.splitlines() == places, fault=f"{session_id}: merged {merged!r}")

    async def kill_workers(self, backend: str, chance: random.Random, *, quick: bool) -> None:
        """Runs the crash sample with sessions that choose this backend."""
        await self._cluster.model.install(interrupted_turn.SCRIPT_NAME, interrupted_turn.build_script())
        agent = await self._client.agent()
        cell = Cell(self._cluster, self._client, agent, session_fields=self._fields(backend))
        await cell.measure_turn_time(1)
        points = ["in_tool"] if quick else POINTS
        await kill_workers(cell, anywhere=0 if quick else 10, at_points=points, chance=chance)
        self._found.kills += cell.findings.tallies["worker_kills"]
        self._found.turns += cell.findings.turns
        self._found.calls += cell.findings.calls
        self._found.faults += [f"{backend}: {fault}" for fault in cell.findings.faults]

    def _fields(self, backend: str | None) -> dict[str, Any]:
        return {"project_ids": [self._project_id], **({"backend": backend} if backend else {})}

    async def _run(
        self, sessions: Mapping[str, str | None], expected: Mapping[str, list[str]], mode: str | None
    ) -> None:
        extra = {} if mode is None else {"overrides": {"shell_mode": mode}}
        for session_id, backend in sessions.items():
            place = self._expected_place(session_id, backend or "sandbox", mode)
            expected[session_id].append(place)
            received = await self._client.run_turn(session_id, "[[script:place]]", patience=180, **extra)
            output = _tool_output(received)
            self._found.runs += 1
            self._found.check(holds=output == [place], fault=f"{backend} with {mode}: {output}, not {place!r}")

    def _expected_place(self, session_id: str, backend: str, mode: str | None) -> str:
        in_container = mode == "container" or (backend == "docker" and mode is None)
        shows_host_path = self._named if in_container else backend == "unsandboxed"
        directory = str(self._data / "workspaces" / "default" / session_id) if shows_host_path else "/workspace"
        return f"{'container' if in_container else 'host'} {directory}"

    async def _lose_files(self) -> None:
        for number in range(len(self._cluster.workers)):
            await self._cluster.kill_worker(number)

        async def removed() -> bool:  # the guardians of the killed workers may still remove files
            found = [path for name in _HOST_FILES for path in (self._data / name).glob("*")]
            for path in found:
                await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
            return not found

        require(holds=await wait_until(removed, 60), otherwise="the files of the host cannot be removed")
        for number in range(len(self._cluster.workers)):
            await self._cluster.restart_worker(number)

    @property
    def _data(self) -> Path:
        return self._cluster.directory / "data"


@asynccontextmanager
async def _operators_container(cluster: Cluster, address: str, *, enabled: bool) -> AsyncIterator[None]:
    """Starts the container that the sessions share, with the mounts that the documentation asks for."""
    if not enabled:
        yield
        return
    directories = [cluster.directory / "data" / name for name in _MOUNTED]
    for directory in directories:
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
    binds = [f"{each}:{each}{'' if each.name == 'workspaces' else ':ro'}" for each in directories]
    config: dict[str, Any] = {"Image": environment_backends.IMAGE, "Cmd": ["sleep", "86400"]}
    config["HostConfig"] = {"NetworkMode": "none", "Binds": binds}
    async with connect_engine(address) as docker:
        container = await docker.containers.create(config, name=_CONTAINER)
        try:
            await container.start()
            yield
        finally:
            await container.delete(force=True)


def _tool_output(received: Sequence[Event]) -> list[str]:
    results = [event for event in received if event["type"] == "agent.tool_result"]
    return [block.get("text", "").strip() for event in results for block in event["content"]]


def _git(at: Path, *argv: str) -> str:
    return subprocess.run(["git", "-C", str(at), *argv], check=True, capture_output=True, text=True).stdout
