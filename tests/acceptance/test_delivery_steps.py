"""Steps that deliver, on a whole deployment: a pipeline that merges and pushes, and a killed worker."""

import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster

from footplate.client import AsyncFootplate
from footplate.client.steps import Step
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until

FAST = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6", "FOOTPLATE_SWEEP_INTERVAL": "2"}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
async def cluster(stack: Stack, projects: Path) -> AsyncIterator[Cluster]:
    async with open_cluster(stack=stack, environment={**FAST, "FOOTPLATE_PROJECTS_ROOT": str(projects)}) as opened:
        yield opened


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key) as opened:
        yield opened


@pytest.fixture
def repository(projects: Path, request: pytest.FixtureRequest) -> Path:
    """A repository whose branch `main` is checked out, and `next` has another commit."""
    repository = projects / str(request.node.name)
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for name, branch in (("file", "next"), ("other", "main")):
        (repository / name).write_text("one\n")
        git(repository, "add", "-A")
        git(repository, "commit", "-qm", name)
        git(repository, "switch", "-q", *(["-c"] if branch == "next" else []), branch)
    return repository


def git(at: Path, *argv: str) -> str:
    identity = ("-c", "user.name=User", "-c", "user.email=user@example.com")
    return subprocess.run(["git", *identity, *argv], cwd=at, check=True, capture_output=True, text=True).stdout.strip()


async def new_session(cluster: Cluster, repository: Path | None) -> str:
    async with Client(cluster) as sdk:
        agent_id = await sdk.agent(extra_body={"harness": "shell"})
        if repository is None:
            return await sdk.session(agent_id)
        made = await sdk.sdk.post("/v1/projects", body={"path": repository.name}, cast_to=dict[str, Any])
        return await sdk.session(agent_id, extra_body={"project_ids": [made["id"]]})


async def wait_for(client: AsyncFootplate, step: Step) -> Step:
    async def has_ended() -> bool:
        return (await client.steps.retrieve(step.session_id, step.id)).state not in {"pending", "running"}

    assert await wait_until(has_ended, 120), await client.steps.retrieve(step.session_id, step.id)
    return await client.steps.retrieve(step.session_id, step.id)


async def run_steps(client: AsyncFootplate, session_id: str, *steps: Mapping[str, Any]) -> list[Step]:
    added = await client.steps.add(session_id, steps)
    return [await wait_for(client, step) for step in added]


def texts(steps: list[Step]) -> list[str]:
    return [step.result.text or str(step.result.error_message) for step in steps if step.result]


@pytest.mark.requirement("O2")
async def test_a_pipeline_merges_and_pushes_its_work(
    cluster: Cluster, client: AsyncFootplate, repository: Path
) -> None:
    session_id = await new_session(cluster, repository)
    conflict = {"kind": "merge", "into": "next", "on_failure": "continue"}
    steps = await run_steps(
        client,
        session_id,
        {"kind": "shell", "name": "work", "command": "echo two >> file; echo done"},
        {"kind": "merge", "name": "deliver", "into": "next", "message": "Work: ${steps.work.stdout}"},
        {"kind": "shell", "command": "echo delivered ${steps.deliver.stdout}"},
        {"kind": "merge", "into": "next"},
        {"kind": "push", "branch": "review"},
        {"kind": "merge", "into": "main", "on_failure": "continue"},
    )
    delivered = git(repository, "rev-parse", "next")
    assert [texts(steps)[number] for number in (1, 3, 4)] == [
        f"merged into next: {delivered[:7]}",
        f"nothing to do, all changes are already in next: {delivered[:7]}",
        f"pushed as review: {git(repository, 'rev-parse', 'review')[:7]}",
    ]
    assert steps[2].result is not None
    assert steps[2].result.stdout == f"delivered {delivered}\n"
    assert steps[5].state == "failed"
    assert "is checked out" in texts(steps)[5]
    assert git(repository, "show", "next:file") == "one\ntwo"
    assert git(repository, "log", "-1", "--format=%s", "review") == "Work: done"
    git(repository, "switch", "-q", "next")
    (repository / "file").write_text("one\nother\n")
    git(repository, "commit", "-qam", "conflicting")
    git(repository, "switch", "-q", "main")
    *_, failed = await run_steps(client, session_id, {"kind": "shell", "command": "echo three > file"}, conflict)
    assert failed.state == "failed"
    assert "file: the same lines were changed on both sides" in texts([failed])[0]
    listed = [event async for event in client.events.list(session_id, types=["agent.tool_use"])]
    assert "merge_branch" in [event.name for event in listed]


async def test_a_session_without_a_project_cannot_deliver(cluster: Cluster, client: AsyncFootplate) -> None:
    (step,) = await run_steps(client, await new_session(cluster, None), {"kind": "merge", "into": "main"})
    assert step.state == "failed"
    assert "has no project" in texts([step])[0]


@pytest.mark.timing
async def test_a_delivery_whose_worker_is_killed_is_made_once_and_reported(
    cluster: Cluster, client: AsyncFootplate, repository: Path
) -> None:
    session_id = await new_session(cluster, repository)
    await run_steps(client, session_id, {"kind": "shell", "command": "echo two >> file"})
    armed = cluster.failpoints / "after_ref"
    armed.write_text("kill")
    (step,) = await client.steps.add(session_id, [{"kind": "merge", "into": "next"}])

    async def is_killed() -> bool:
        return not armed.exists()

    assert await wait_until(is_killed, 60)
    await cluster.restart_worker(0)
    ended = await wait_for(client, step)
    merged = git(repository, "rev-parse", "next")
    assert (ended.state, texts([ended])) == ("completed", [f"merged into next: {merged[:7]}"])
    assert ended.result is not None
    assert ended.result.stdout == merged
    assert git(repository, "log", "--format=%s", "--first-parent", "next").splitlines()[1:] == ["other", "file"]
    types = [event.type async for event in client.events.list(session_id, limit=1000)]
    assert types.count("agent.tool_use") == types.count("agent.tool_result") == 2
