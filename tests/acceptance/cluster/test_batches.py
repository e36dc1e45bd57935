"""Batches in a whole deployment: jobs of every harness, an API that dies after the commit, retries and cancellation."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from bench.support.cluster import Cluster, open_cluster
from bench.support.sdk.sdk_client import TOOLSET

from footplate.client import AsyncFootplate
from footplate.client.batches import Batch, JobResult
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text

pytestmark = [pytest.mark.timing, pytest.mark.timeout(600), pytest.mark.requirement("S3")]

SETTINGS = {"FOOTPLATE_SWEEP_INTERVAL": "2", "FOOTPLATE_LEASE": "8", "FOOTPLATE_HEARTBEAT_TIMEOUT": "12"}


@pytest.fixture(scope="module")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(workers=1, stack=stack, environment=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key, patience=60) as client:
        yield client


async def _job(client: AsyncFootplate, harness: str = "native") -> dict[str, Any]:
    agent = await client.agents.create(name=harness, model="claude-sonnet-5", harness=harness, tools=[TOOLSET])
    environment = await client.environments.create(name=f"for {agent.id}")
    return {"agent": agent.id, "environment_id": environment.id}


def _shell(command: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"kind": "shell", "command": command, **fields}]


async def _wait(client: AsyncFootplate, batch: Batch) -> Sequence[JobResult]:
    async def has_ended() -> bool:
        return (await client.batches.retrieve(batch.id)).status == "ended"

    assert await wait_until(has_ended, 120), await client.batches.retrieve(batch.id)
    return [result async for result in client.batches.results(batch.id, limit=10)]


async def test_jobs_of_every_harness_end_with_a_result(cluster: Cluster, client: AsyncFootplate) -> None:
    await cluster.model.install("job", replies([text("Done.")]))
    native, claude = await _job(client), await _job(client, "claude")
    batch = await client.batches.create(
        [
            {**native, "custom_id": "native", "prompt": "[[script:job]]"},
            {**claude, "custom_id": "claude", "prompt": "[[script:job]]"},
            {**native, "custom_id": "shell", "steps": _shell("echo built; exit 3")},
            {
                **native,
                "custom_id": "retried",
                "steps": _shell("test -e a || { touch a; exit 1; }", on_failure="retry"),
            },
        ],
        name="mixed",
    )
    results = {result.custom_id: result for result in await _wait(client, batch)}
    assert sorted(result.number for result in results.values()) == [1, 2, 3, 4]
    for name in ("native", "claude"):
        assert (results[name].success, results[name].text, results[name].error_message) == (True, "Done.", None)
        assert results[name].metrics.usage.requests >= 1
    assert (results["shell"].success, results["shell"].data["exit_code"]) == (False, 3)
    assert results["shell"].data["stdout"] == "built\n"
    assert results["shell"].error_message
    assert (results["retried"].outcome, results["retried"].metrics.turns) == ("completed", 2)
    session = await client.sessions.retrieve(results["native"].session_id)
    assert (session.status, session.wire()["mode"]) == ("terminated", "background")


async def test_an_api_that_dies_before_it_wakes_the_jobs_loses_none(cluster: Cluster, client: AsyncFootplate) -> None:
    job = await _job(client)
    armed = cluster.failpoints / "before_answer"
    armed.write_text("kill")
    requests = [{**job, "custom_id": f"job-{number}", "steps": _shell("true")} for number in range(40)]
    creating = asyncio.create_task(client.batches.create(requests, name="after a crash"))

    async def was_killed() -> bool:
        return not armed.exists()

    assert await wait_until(was_killed, 60)
    await cluster.restart_api(0)
    batch = await creating
    results = await _wait(client, batch)
    assert {result.outcome for result in results} == {"completed"}
    assert len(results) == 40
    assert {result.metrics.turns for result in results} == {1}
    named = [one async for one in client.batches.list() if one.name == "after a crash"]
    assert [one.id for one in named] == [batch.id]


async def test_a_failed_job_is_repeated_and_the_rest_is_cancelled(client: AsyncFootplate) -> None:
    job = await _job(client)
    requests = [
        {**job, "custom_id": "fails", "steps": _shell("exit 1")},
        *({**job, "custom_id": f"sleeps-{number}", "steps": _shell("sleep 300")} for number in range(3)),
    ]
    batch = await client.batches.create(requests, max_running=2)

    async def has_failed() -> bool:
        counts = (await client.batches.retrieve(batch.id)).counts
        return (counts.failed, counts.running) == (1, 2)

    assert await wait_until(has_failed, 60), await client.batches.retrieve(batch.id)
    again = await client.batches.retry(batch.id)
    assert (again.retry_of, again.total) == (batch.id, 1)
    assert (await client.batches.cancel(batch.id)).status == "cancelling"
    outcomes = {result.custom_id: result.outcome for result in await _wait(client, batch)}
    assert outcomes == {"fails": "failed", **{f"sleeps-{number}": "cancelled" for number in range(3)}}
    (repeated,) = await _wait(client, again)
    assert (repeated.custom_id, repeated.outcome) == ("fails", "failed")
