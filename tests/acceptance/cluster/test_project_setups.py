"""The setup of a project prepares each session's tree, and later sessions start with the directories that it left."""

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.worker_hosts import create_worker_host, data_directory

from footplate.client import AsyncFootplate
from footplate.stack import PythonService, Stack

pytestmark = [pytest.mark.timing, pytest.mark.timeout(900), pytest.mark.requirement("K7")]

LEASES = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6", "FOOTPLATE_SETUP_SECONDS": "60"}
SETUP = (
    'echo "restored [$FOOTPLATE_CACHE_RESTORED] context [$FOOTPLATE_CONTEXT]"; mkdir -p node_modules/a; '
    "[ -e node_modules/a/built ] || { echo built > node_modules/a/built; chmod 755 node_modules/a/built; "
    "ln -s a/built node_modules/link; }; echo ready"
)
LOOK = "cat node_modules/link; stat -c %a node_modules/a/built; cat .env; git status --porcelain"
READY = "built\n755\nsecret"


@dataclass
class Setups:
    cluster: Cluster
    client: Client
    hosts: Sequence[PythonService]
    projects: Path
    agent: str = ""

    async def create_project(self, setup: str = SETUP, **fields: Any) -> tuple[str, Path]:
        repository = await asyncio.to_thread(new_repository, self.projects)
        body = {"path": repository.name, "setup": setup, **fields}
        made: Any = await self.client.sdk.post("/v1/projects", body=body, cast_to=dict[str, Any])
        return made["id"], repository

    async def start(self, project_id: str, **context: Any) -> str:
        fields = {"project_ids": [project_id], "context": context}
        return await self.client.session(self.agent, extra_body=fields)

    async def run(self, session_id: str, command: str = LOOK) -> str:
        """Runs a command in a turn, and returns its output."""
        events = await self.client.run_turn(session_id, command, patience=180)
        errors = [event["error"]["message"] for event in events if event["type"] == "session.error"]
        results = [event for event in events if event["type"] == "agent.tool_result"]
        texts: list[str] = [block["text"] for event in results for block in event["content"]]
        return "".join(texts) or "\n".join(errors)

    async def setups(self, session_id: str) -> list[dict[str, Any]]:
        """The events of the session's setups."""
        async with AsyncFootplate(self.cluster.base_urls[0], self.cluster.key) as client:
            found = [event.wire() async for event in client.events.list(session_id, extensions=True)]
        return [event for event in found if event["type"].startswith("project.")]

    async def use_host(self, number: int) -> None:
        for host in self.hosts:
            await host.kill()
        await self.hosts[number].start()

    def arm(self, failpoint: str) -> None:
        (self.cluster.failpoints / failpoint).write_text("kill")

    async def restart_killed_host(self, failpoint: str, number: int) -> None:
        hit = self.cluster.failpoints / f"{failpoint}.hit"
        for _ in range(600):
            if hit.exists():
                await self.hosts[number].kill()
                await self.hosts[number].start()
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"{failpoint} was not reached")


def new_repository(projects: Path) -> Path:
    repository = Path(tempfile.mkdtemp(dir=projects))
    (repository / ".gitignore").write_text("node_modules/\n.env\n")
    (repository / "package-lock.json").write_text("{}\n")
    for command in ("init -q -b main", "add -A", "-c user.name=User -c user.email=u@example.com commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=repository, check=True)
    (repository / ".worktreeinclude").write_text(".env\n")
    (repository / ".env").write_text("secret\n")
    return repository


@pytest.fixture(scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Setups]:
    projects = tmp_path_factory.mktemp("projects")
    async with AsyncExitStack() as exits:
        environment = {**LEASES, "FOOTPLATE_PROJECTS_ROOT": str(projects)}
        cluster = await exits.enter_async_context(open_cluster(workers=0, stack=stack, environment=environment))
        client = await exits.enter_async_context(Client(cluster))
        hosts = [create_worker_host(cluster, name, "sandbox") for name in ("a", "b")]
        for host in hosts:
            exits.push_async_callback(host.kill)
        yield Setups(cluster, client, hosts, projects, await client.agent(extra_body={"harness": "shell"}))


async def test_later_sessions_start_with_the_directories_of_the_first_setup(world: Setups) -> None:
    project_id, repository = await world.create_project()
    await world.use_host(0)
    first = await world.start(project_id, secret="of-this-session")
    assert (await world.run(first)).startswith(READY)
    started, ended = await world.setups(first)
    assert (started["command"], started["restored"], started["evaluated_permission"]) == (SETUP, [], "allow")
    assert (ended["status"], ended["exit_code"], ended["stored"]) == ("completed", 0, ["node_modules"])
    assert ended["output"] == "restored [] context []\nready"
    # Once in each tree.
    await world.run(first, "echo poison > node_modules/a/built; echo poison > package-lock.json")
    assert len(await world.setups(first)) == 2

    second = await world.start(project_id)
    assert (await world.run(second)).startswith(READY)
    assert (await world.setups(second))[0]["restored"] == ["node_modules"]

    # Another host has only the object store. The agent's files are restored there, and its setup is not stored.
    await world.use_host(1)
    third = await world.start(project_id)
    assert (await world.run(third)).startswith(READY)
    assert (await world.setups(third))[0]["restored"] == ["node_modules"]
    again = await world.run(first, f"cat package-lock.json; {LOOK}")
    assert again.startswith(f"poison\n{READY}\n M package-lock.json")
    *_, started, ended = await world.setups(first)
    assert (started["restored"], ended["stored"]) == ([], [])

    # A damaged cache is not used, wherever it is damaged.
    for damaged in (data_directory(world.cluster, "b") / "caches", world.cluster.directory / "data" / "objects"):
        for path in [each for each in damaged.rglob("*") if each.is_file() and "caches" in str(each)]:
            path.write_bytes(path.read_bytes()[::-1])
    fourth = await world.start(project_id)
    assert (await world.run(fourth)).startswith(READY)
    started, ended = await world.setups(fourth)
    assert (started["restored"], ended["stored"]) == ([], ["node_modules"])

    # Another project with equal files, and one with a selected commit.
    other_id, _ = await world.create_project()
    other = await world.start(other_id)
    await world.run(other)
    assert (await world.setups(other))[0]["restored"] == []
    (repository / "package-lock.json").write_text("new")
    for command in ("checkout -q -b unreviewed", "-c user.name=User -c user.email=u@example.com commit -qam new"):
        await asyncio.to_thread(subprocess.run, ["git", *command.split()], cwd=repository, check=True)
    commit = (await asyncio.to_thread(subprocess.check_output, ["git", "rev-parse", "HEAD"], cwd=repository)).decode()
    selected = await world.start(project_id, base_commits={project_id: commit.strip()})
    await world.run(selected)
    started, ended = await world.setups(selected)
    assert (started["restored"], ended["status"], ended["stored"]) == ([], "completed", [])


@pytest.mark.parametrize("failpoint", ["setup_started", "cache_uploaded"])
async def test_a_worker_that_is_killed_while_it_stores_changes_nothing(world: Setups, failpoint: str) -> None:
    project_id, _ = await world.create_project()
    await world.use_host(0)
    world.arm(failpoint)
    session_id = await world.start(project_id)
    output, _ = await asyncio.gather(world.run(session_id), world.restart_killed_host(failpoint, 0))
    assert output.startswith(READY)
    *_, ended = await world.setups(session_id)
    assert ended["stored"] == ["node_modules"]
    second = await world.start(project_id)
    assert (await world.run(second)).startswith(READY)
    assert (await world.setups(second))[0]["restored"] == ["node_modules"]


async def test_a_worker_that_is_killed_while_it_restores_starts_over(world: Setups) -> None:
    failpoint = "cache_restoring"
    project_id, _ = await world.create_project()
    await world.use_host(0)
    await world.run(await world.start(project_id))
    world.arm(failpoint)
    session_id = await world.start(project_id)
    output, _ = await asyncio.gather(world.run(session_id), world.restart_killed_host(failpoint, 0))
    assert output.startswith(READY)
    started, ended = await world.setups(session_id)
    assert (started["restored"], ended["stored"]) == (["node_modules"], [])


async def test_a_failed_or_forbidden_setup_fails_the_turn_with_its_output(world: Setups) -> None:
    await world.use_host(0)
    project_id, _ = await world.create_project("echo to-stdout; echo to-stderr >&2; exit 3")
    session_id = await world.start(project_id)
    message = await world.run(session_id)
    assert "failed with exit code 3.\nto-stdout\nto-stderr" in message
    *_, ended = await world.setups(session_id)
    assert (ended["status"], ended["exit_code"], ended["output"]) == ("failed", 3, "to-stdout\nto-stderr")

    # A corrected command runs in the next turn.
    await world.client.sdk.post(f"/v1/projects/{project_id}", body={"setup": SETUP}, cast_to=dict[str, Any])
    assert (await world.run(session_id)).startswith(READY)

    rules = {"deny": ["Bash(npm:*)"], "allow": ["Bash(true)"]}
    for command, reason in (("npm install", "is denied"), ("make", "needs approval")):
        project_id, _ = await world.create_project(command, permissions=rules)
        session_id = await world.start(project_id)
        assert reason in await world.run(session_id, "true")
        assert await world.setups(session_id) == []
