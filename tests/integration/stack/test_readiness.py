"""What an API process reports and still does while one of its services is stopped."""

import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from bench.support.cluster import Cluster, open_cluster

from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, reply, text

pytestmark = pytest.mark.timing

SEND = {"events": [{"type": "user.message", "content": [{"type": "text", "text": "Say done. [[script:done]]"}]}]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    environment = {"FOOTPLATE_SWEEP_INTERVAL": "1"}
    async with open_cluster(stack=stack, environment=environment) as running:
        await running.model.install("done", replies(reply(text("Done."), repeat=True)))
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def client(cluster: Cluster) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=cluster.base_urls[0], headers={"x-api-key": cluster.key}, timeout=30) as one:
        yield one


async def _create_session(client: httpx2.AsyncClient) -> str:
    agent = await client.post("/v1/agents", json={"name": "A", "model": "claude-sonnet-5"})
    environment = await client.post(
        "/v1/environments", json={"name": f"E {time.monotonic_ns()}", "config": {"type": "cloud"}}
    )
    made = await client.post(
        "/v1/sessions", json={"agent": agent.json()["id"], "environment_id": environment.json()["id"]}
    )
    return str(made.json()["id"])


async def _finish_turn(client: httpx2.AsyncClient, session_id: str) -> None:
    async def has_reply() -> bool:
        events = (await client.get(f"/v1/sessions/{session_id}/events")).json()["data"]
        return any(event["type"] == "session.status_idle" for event in events)

    assert await wait_until(has_reply, 60)


async def _wait_for_report(client: httpx2.AsyncClient, status: int, **expected: str) -> dict[str, Any]:
    """Waits until `/readyz` responds as expected. No response may take long."""

    async def is_reported() -> bool:
        before = time.monotonic()
        response = await client.get("/readyz")
        assert time.monotonic() - before < 10
        parts = response.json()["parts"]
        return response.status_code == status and all(parts[name] == state for name, state in expected.items())

    assert await wait_until(is_reported, 30), (await client.get("/readyz")).text
    report: dict[str, Any] = (await client.get("/readyz")).json()
    return report


async def test_without_redis_the_api_is_degraded_and_turns_run(stack: Stack, client: httpx2.AsyncClient) -> None:
    report = await _wait_for_report(client, 200, redis="ok")
    parts = dict.fromkeys(("database", "redis", "temporal", "objects"), "ok")
    assert report == {"status": "ok", "parts": parts}
    session_id = await _create_session(client)
    assert stack.redis is not None
    await stack.redis.kill()
    try:
        report = await _wait_for_report(client, 200, redis="does not respond")
        assert report == {"status": "degraded", "parts": {**parts, "redis": "does not respond"}}
        assert (await client.post(f"/v1/sessions/{session_id}/events", json=SEND)).status_code == 200
        await _finish_turn(client, session_id)
    finally:
        await stack.redis.start()
    stack.redis.send_signal(signal.SIGSTOP)  # accepts connections, but never replies
    try:
        await _wait_for_report(client, 200, redis="does not respond")
    finally:
        stack.redis.send_signal(signal.SIGCONT)
    await _wait_for_report(client, 200, redis="ok")


async def test_without_temporal_messages_are_accepted_and_run_later(stack: Stack, client: httpx2.AsyncClient) -> None:
    session_id = await _create_session(client)
    assert stack.temporal is not None
    await stack.temporal.kill()
    try:
        report = await _wait_for_report(client, 200, temporal="does not respond")
        assert report["status"] == "degraded"
        assert (await client.post(f"/v1/sessions/{session_id}/events", json=SEND)).status_code == 200
    finally:
        await stack.temporal.start()
    await _finish_turn(client, session_id)
    await _wait_for_report(client, 200, temporal="ok")


async def test_without_the_object_store_the_api_is_degraded(cluster: Cluster, client: httpx2.AsyncClient) -> None:
    folder = Path(cluster.environment()["FOOTPLATE_DATA_DIR"]) / "objects"
    away = folder.rename(folder.with_name("away"))
    try:
        report = await _wait_for_report(client, 200, objects="does not respond")
        assert report["status"] == "degraded"
    finally:
        away.rename(folder)


async def test_without_the_database_the_api_is_not_ready(stack: Stack, client: httpx2.AsyncClient) -> None:
    assert stack.postgres is not None
    await stack.postgres.stop()
    try:
        report = await _wait_for_report(client, 503, database="does not respond", redis="ok")
        assert report["status"] == "unavailable"
        assert (await client.get("/livez")).status_code == 200
    finally:
        await stack.postgres.start()
    await _wait_for_report(client, 200, database="ok")
