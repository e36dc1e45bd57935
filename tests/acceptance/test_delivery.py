"""A session's work is delivered by the command line, with every harness: applied, exported, merged and pushed."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.command_server import CommandServer
from tests.acceptance.cli_cell import finish, fits

from footplate.stack import Stack
from footplate.testing import replies, text, tool

Footplate = Callable[..., Awaitable[tuple[int, str, str]]]
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
    environment = {"FOOTPLATE_PROJECTS_ROOT": str(projects)}
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
    code, _, err = await footplate("apply", session)
    assert (code, "file: you and the session changed the same lines" in err) == (1, True), err
    assert await git(user, "status", "--porcelain") == ""
