"""A session's work is delivered: by the command line, with every harness, and by steps, also if a worker is killed."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.command_server import CommandServer
from tests.acceptance.cli.cli_cell import finish, fits

from footplate.client import AsyncFootplate
from footplate.client.steps import Step
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

Footplate = Callable[..., Awaitable[tuple[int, str, str]]]
FAST = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6", "FOOTPLATE_SWEEP_INTERVAL": "2"}
NAMES = {"native": "bash", "claude": "Bash"}
WORK = "echo two >> file && git commit -qam 'agent: second' && echo loose > loose && mkdir -p in && echo x > in/new"


def environment_of(user: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(user.parent), "LANG": "C.UTF-8"}


async def git(at: Path, *argv: str) -> str:
    done = await finish(
        await asyncio.create_subprocess_exec(
            *("git", "-c", "user.name=User", "-c", "user.email=user@example.com", *argv),
            cwd=at,
            env=environment_of(at),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    )
    assert done.code == 0, done.err
    return done.out.strip()


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture
async def user(projects: Path, harness: str) -> Path:
    at = projects / harness
    at.mkdir(parents=True)
    (at / "file").write_text("one\n")
    await git(at, "init", "-q", "-b", "main")
    await git(at, "add", "-A")
    await git(at, "commit", "-qm", "first")
    await git(at, "branch", "next")
    return at


@pytest.fixture(scope="module")
async def cluster(stack: Stack, projects: Path) -> AsyncIterator[Cluster]:
    environment = {**FAST, "FOOTPLATE_PROJECTS_ROOT": str(projects)}
    async with open_cluster(stack=stack, environment=environment) as cluster:
        yield cluster


@pytest.fixture
def footplate(cluster: Cluster, commands: CommandServer, user: Path) -> Footplate:
    server = {"FOOTPLATE_BASE_URL": cluster.base_urls[0], "FOOTPLATE_API_KEY": cluster.key}

    async def run(*argv: str) -> tuple[int, str, str]:
        done = await finish(await commands.spawn(*argv, cwd=user, env={**environment_of(user), **server}))
        return done.code, done.out.strip(), done.err.strip()

    return run


def check_conflict_report(report: Any) -> None:
    assert (report["exit_code"], report["error"]["code"]) == (1, "merge_conflict")
    [conflict] = report["error"]["conflicts"]
    assert (conflict["path"], conflict["reason"]) == ("file", "the same lines were changed on both sides")
    assert all([conflict["lines"], conflict["last_commit"]]), conflict


async def check_inbox(footplate: Footplate, session_id: str) -> None:
    """Checks that the conflict of the merge is in the inbox."""
    _, out, err = await footplate("inbox", "ls", "--kind", "merge_conflict", "--json")
    [item] = [each for each in fits("inbox", out) if each["session"]["id"] == session_id]
    assert (item["merge_conflict"]["branch"], item["merge_conflict"]["files"][0]["path"]) == ("other", "file"), err


@pytest.mark.parametrize("harness", ["native", "claude"])
async def test_work_is_delivered_by_the_command_line(
    cluster: Cluster, footplate: Footplate, user: Path, tmp_path: Path, harness: str
) -> None:
    await cluster.model.install("work", replies([tool(NAMES[harness], {"command": WORK})], [text("Done.")]))
    async with Client(cluster) as client:
        made: Any = await client.sdk.post("/v1/projects", body={"path": harness}, cast_to=dict[str, Any])
        agent = await client.agent(extra_body={"harness": harness})
        session = await client.session(agent, extra_body={"project_ids": [made["id"]]})
        await client.run_turn(session, "[[script:work]]", patience=120)

    code, out, err = await footplate("projects", "ls", "--json")
    assert made["id"] in [project["id"] for project in fits("projects", out)], err
    code, out, err = await footplate("projects", "show", made["id"], "--json")
    assert fits("project", out)["id"] == made["id"], err
    code, out, err = await footplate("apply", session, "--json")
    assert code == 0, err
    applied = fits("applied", out)
    assert (applied["status"], applied["files"]) == ("applied", 3)
    assert await git(user, "status", "--porcelain") == "M file\n?? in/\n?? loose"
    await git(user, "stash", "-q", "-u")

    code, _, err = await footplate("merge", session)
    assert (code, "is checked out" in err, "footplate apply" in err) == (1, True, True)
    code, out, err = await footplate("merge", session, "--into", "next", "-m", "From the agent", "--json")
    assert code == 0, err
    assert fits("left", out)["status"] == "fast_forwarded"
    assert (await git(user, "log", "--format=%s", "next")).splitlines() == ["From the agent", "agent: second", "first"]
    code, _, err = await footplate("merge", session, "--into", "next")
    assert (code, err.startswith("Nothing to do")) == (0, True)

    code, out, err = await footplate("export", session, "--branch", "mine")
    assert (code, out) == (0, f"mine {await git(user, 'rev-parse', 'next')}"), err
    code, _, err = await footplate("push", session)
    assert code == 0, err
    assert await git(user, "rev-parse", f"footplate/{session}") == await git(user, "rev-parse", "next")
    code, out, err = await footplate("export", session, "--patch", str(tmp_path / "x.patch"), "--json")
    assert code == 0, err
    fits("exported", out)
    await git(user, "apply", "--check", str(tmp_path / "x.patch"))
    assert await footplate("export", session, "--patch", "-") == (0, (tmp_path / "x.patch").read_text().strip(), "")
    assert not (user / "-").exists()
    code, out, err = await footplate("export", session, "--patch", "-", "--json")
    assert (code, "Write the patch to a file" in out + err) == (2, True)

    (user / "file").write_text("three\n")
    await git(user, "commit", "-qam", "third")
    await git(user, "branch", "other")
    code, _, err = await footplate("merge", session, "--into", "other")
    assert (code, "file: the same lines were changed on both sides" in err) == (1, True), err
    code, out, err = await footplate("merge", session, "--into", "other", "--json")
    assert (code, err) == (1, "")
    check_conflict_report(fits("left", out))
    await check_inbox(footplate, session)
    code, _, err = await footplate("apply", session)
    assert (code, "file: you and the session changed the same lines" in err) == (1, True), err
    assert await git(user, "status", "--porcelain") == ""


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key) as opened:
        yield opened


@pytest.fixture
async def repository(projects: Path, request: pytest.FixtureRequest) -> Path:
    """A repository whose branch `main` is checked out, and `next` has another commit."""
    repository = projects / str(request.node.name)
    repository.mkdir()
    await git(repository, "init", "-q", "-b", "main")
    for name, branch in (("file", "next"), ("other", "main")):
        (repository / name).write_text("one\n")
        await git(repository, "add", "-A")
        await git(repository, "commit", "-qm", name)
        await git(repository, "switch", "-q", *(["-c"] if branch == "next" else []), branch)
    return repository


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
    delivered = await git(repository, "rev-parse", "next")
    assert [texts(steps)[number] for number in (1, 3, 4)] == [
        f"merged into next: {delivered[:7]}",
        f"nothing to do, all changes are already in next: {delivered[:7]}",
        f"pushed as review: {(await git(repository, 'rev-parse', 'review'))[:7]}",
    ]
    assert steps[2].result is not None
    assert steps[2].result.stdout == f"delivered {delivered}\n"
    assert steps[5].state == "failed"
    assert "is checked out" in texts(steps)[5]
    assert await git(repository, "show", "next:file") == "one\ntwo"
    assert await git(repository, "log", "-1", "--format=%s", "review") == "Work: done"
    await git(repository, "switch", "-q", "next")
    (repository / "file").write_text("one\nother\n")
    await git(repository, "commit", "-qam", "conflicting")
    await git(repository, "switch", "-q", "main")
    *_, failed = await run_steps(client, session_id, {"kind": "shell", "command": "echo three > file"}, conflict)
    assert failed.state == "failed"
    (item,) = [each async for each in client.inbox.list(kind="merge_conflict") if each.session.id == session_id]
    assert item.merge_conflict is not None
    assert (item.merge_conflict.branch, item.merge_conflict.files[0]["path"]) == ("next", "file")
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
    merged = await git(repository, "rev-parse", "next")
    assert (ended.state, texts([ended])) == ("completed", [f"merged into next: {merged[:7]}"])
    assert ended.result is not None
    assert ended.result.stdout == merged
    subjects = await git(repository, "log", "--format=%s", "--first-parent", "next")
    assert subjects.splitlines()[1:] == ["other", "file"]
    types = [event.type async for event in client.events.list(session_id, limit=1000)]
    assert types.count("agent.tool_use") == types.count("agent.tool_result") == 2
