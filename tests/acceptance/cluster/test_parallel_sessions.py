"""Parallel steps on whole deployments: children with every harness, merged files, approvals, interrupts and a killed
worker.
"""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.workflow_histories import WorkflowHistories

from footplate.client import AsyncFootplate
from footplate.client.steps import Step
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

pytestmark = [pytest.mark.timing, pytest.mark.timeout(600)]

FAST = {"FOOTPLATE_LEASE": "8", "FOOTPLATE_HEARTBEAT_TIMEOUT": "12", "FOOTPLATE_SWEEP_INTERVAL": "2"}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
async def cluster(stack: Stack, projects: Path) -> AsyncIterator[Cluster]:
    environment = {**FAST, "FOOTPLATE_PROJECTS_ROOT": str(projects)}
    async with open_cluster(workers=2, stack=stack, environment=environment) as opened:
        yield opened


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key) as opened:
        yield opened


async def new_session(cluster: Cluster, harness: str = "shell", repository: Path | None = None, **agent: Any) -> str:
    async with Client(cluster) as sdk:
        agent_id = await sdk.agent(extra_body={"harness": harness, **agent})
        if repository is None:
            return await sdk.session(agent_id)
        made = await sdk.sdk.post("/v1/projects", body={"path": repository.name}, cast_to=dict[str, Any])
        return await sdk.session(agent_id, extra_body={"project_ids": [made["id"]]})


def new_repository(projects: Path, name: str) -> Path:
    repository = projects / name
    repository.mkdir()
    (repository / "file").write_text("one\ntwo\nthree\n")
    for command in ("init -q -b main", "add -A", "-c user.name=User -c user.email=u@example.com commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=repository, check=True)
    return repository


async def add(client: AsyncFootplate, session_id: str, *steps: Mapping[str, Any]) -> list[Step]:
    return [*await client.steps.add(session_id, steps)]


async def wait_for(client: AsyncFootplate, step: Step, seconds: float = 120) -> Step:
    async def has_ended() -> bool:
        return (await client.steps.retrieve(step.session_id, step.id)).state not in {"pending", "running"}

    assert await wait_until(has_ended, seconds), await client.steps.retrieve(step.session_id, step.id)
    return await client.steps.retrieve(step.session_id, step.id)


def outcomes(step: Step) -> list[tuple[str | None, str]]:
    assert step.result is not None
    assert step.result.sessions is not None, step
    return [(one["name"], one["outcome"]) for one in step.result.sessions]


@pytest.mark.requirement("O5", "S9")
async def test_sessions_start_with_the_files_of_their_parent_and_are_merged_in_order(
    cluster: Cluster, client: AsyncFootplate, projects: Path
) -> None:
    session_id = await new_session(cluster, repository=new_repository(projects, "merged"))
    sessions = [
        {"name": "first", "shell": "cat new; sed -i 's/one/ONE/' file; printf '\\0bin' > binary"},
        {"name": "second", "shell": "sed -i 's/one/eins/' file; echo no > unwanted"},
        {"name": "third", "shell": "sed -i 's/three/THREE/' file; mkdir -p d; ln -s ../file d/link; rm new"},
        {"name": "fourth", "shell": "echo bad; exit 3"},
    ]
    _, parallel, last = await add(
        client,
        session_id,
        {"kind": "shell", "command": "echo from the parent > new"},
        {
            "kind": "parallel",
            "name": "all",
            "sessions": sessions,
            "max_running": 2,
            "branches": "merge",
            "on_failure": "continue",
        },
        {"kind": "shell", "command": "cat file; ls -A d; test ! -e new && test ! -e unwanted && wc -c < binary"},
    )
    ended = await wait_for(client, parallel)
    assert outcomes(ended) == [
        ("first", "completed"), ("second", "completed"), ("third", "completed"), ("fourth", "failed"),
    ]  # fmt: skip
    assert ended.state == "failed"
    assert ended.result is not None
    assert ended.result.sessions is not None
    first, second, third, fourth = ended.result.sessions
    assert "from the parent" in first["text"]
    assert [one.get("files") for one in (first, second, third, fourth)] == ["merged", "conflict", "merged", None]
    assert second["conflicts"] == ["file: the same lines were changed on both sides"]
    assert fourth["error"] == "The command exited with code 3."
    shown = await wait_for(client, last)
    assert shown.result is not None
    assert shown.result.stdout == "ONE\ntwo\nTHREE\nlink\n4\n"
    listed = [one async for one in client.sessions.list(parent_id=session_id)]
    assert {one.id for one in listed} == {one["session_id"] for one in ended.result.sessions}
    assert {(one.parent_id, one.status) for one in listed} == {(session_id, "terminated")}


@pytest.mark.requirement("O5", "S9")
@pytest.mark.parametrize("harness", ["native", "claude"])
async def test_the_session_whose_check_passes_is_chosen(cluster: Cluster, client: AsyncFootplate, harness: str) -> None:
    bash = {"native": "bash", "claude": "Bash"}[harness]
    for number in range(3):
        command = f"echo {number} > answer"
        await cluster.model.install(
            f"best-{harness}-{number}", replies([tool(bash, {"command": command})], [text(f"I say {number}.")])
        )
    session_id = await new_session(cluster, harness)
    sessions = [{"name": f"n{number}", "prompt": f"Go [[script:best-{harness}-{number}]]"} for number in range(3)]
    best, last = await add(
        client,
        session_id,
        {"kind": "parallel", "sessions": sessions, "branches": "best", "check": "grep -q 1 answer"},
        {"kind": "shell", "command": "cat answer"},
    )
    ended = await wait_for(client, best)
    assert ended.state == "completed", ended
    assert [outcome for _, outcome in outcomes(ended)] == ["failed", "completed", "failed"]
    assert ended.result is not None
    assert [one["text"] for one in ended.result.sessions or ()] == ["I say 0.", "I say 1.", "I say 2."]
    assert ended.result.text.startswith("1 of 3 sessions completed. Chosen: n1.")
    shown = await wait_for(client, last)
    assert shown.result is not None
    assert shown.result.stdout == "1\n"


@pytest.mark.requirement("O5")
async def test_a_session_that_needs_approval_blocks_only_itself(cluster: Cluster, client: AsyncFootplate) -> None:
    session_id = await new_session(cluster, permissions={"ask": ["Bash(touch *)"]})
    sessions = [{"name": "asks", "shell": "touch x"}, *({"shell": f"echo {number}"} for number in range(3))]
    (step,) = await add(client, session_id, {"kind": "parallel", "sessions": sessions, "max_running": 2})

    async def only_one_waits() -> bool:
        found = [one async for one in client.sessions.list(parent_id=session_id)]
        return [one.status for one in found].count("terminated") == 3

    assert await wait_until(only_one_waits, 60)
    assert (await client.steps.retrieve(session_id, step.id)).waiting_for == "sessions"
    (pending,) = [
        approval
        for child in [one async for one in client.sessions.list(parent_id=session_id)]
        async for approval in client.approvals.list(session_id=child.id)
    ]
    await client.approvals.allow(pending)
    assert (await wait_for(client, step)).state == "completed"
    # Whichever way a session was woken, its workflow ends with it instead of lingering.
    histories = await WorkflowHistories.connect(cluster)
    for child in [one async for one in client.sessions.list(parent_id=session_id)]:
        await histories.wait_until_closed(child.id)


@pytest.mark.requirement("O5")
async def test_interrupting_the_parent_interrupts_its_sessions(cluster: Cluster, client: AsyncFootplate) -> None:
    session_id = await new_session(cluster)
    sessions = [{"shell": "sleep 300"} for _ in range(4)]
    (step,) = await add(client, session_id, {"kind": "parallel", "sessions": sessions, "max_running": 2})

    async def two_run() -> bool:
        return [one.status async for one in client.sessions.list(parent_id=session_id)].count("running") == 2

    assert await wait_until(two_run, 60)
    await client.events.interrupt(session_id)
    ended = await wait_for(client, step, 60)
    assert ended.state == "cancelled"
    assert ended.result is not None
    assert len(ended.result.sessions or ()) == 4
    assert {one.status async for one in client.sessions.list(parent_id=session_id)} == {"terminated"}


@pytest.mark.requirement("O5", "S9")
async def test_the_first_success_cancels_the_others(cluster: Cluster, client: AsyncFootplate) -> None:
    session_id = await new_session(cluster)
    sessions = [{"shell": "sleep 300"}, {"shell": "exit 1"}, {"shell": "echo found"}, {"shell": "sleep 300"}]
    (step,) = await add(
        client, session_id, {"kind": "parallel", "sessions": sessions, "wait_for": "first_success", "max_running": 3}
    )
    ended = await wait_for(client, step, 60)
    assert ended.state == "completed"

    async def all_ended() -> bool:
        return {one.status async for one in client.sessions.list(parent_id=session_id)} == {"terminated"}

    assert await wait_until(all_ended, 30)


@pytest.mark.requirement("O5", "S9")
async def test_all_sessions_are_accounted_for_after_a_worker_was_killed(
    cluster: Cluster, client: AsyncFootplate
) -> None:
    session_id = await new_session(cluster)
    count = 12
    sessions = [{"name": f"n{number}", "shell": f"sleep 1; echo {number}"} for number in range(count)]
    (step,) = await add(client, session_id, {"kind": "parallel", "sessions": sessions, "max_running": 6})

    async def some_ended() -> bool:
        return [one.status async for one in client.sessions.list(parent_id=session_id)].count("terminated") >= 3

    assert await wait_until(some_ended, 60)
    await cluster.kill_worker(0)
    await cluster.restart_worker(0)
    ended = await wait_for(client, step, 120)
    found = outcomes(ended)
    assert [name for name, _ in found] == [f"n{number}" for number in range(count)]
    assert all(outcome in {"completed", "failed"} for _, outcome in found)
    assert ended.result is not None
    assert ended.result.sessions is not None
    # A command that a lost worker ran may have taken effect, so it is not run again.
    assert all("outcome" in str(one["error"]) for one in ended.result.sessions if one["outcome"] == "failed")
    await asyncio.sleep(0)
