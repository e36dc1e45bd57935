"""Sessions that end in a whole deployment, in every harness: by themselves, by a client, and after a lost worker."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from bench.support.cluster import Cluster, open_cluster
from bench.support.sdk.sdk_client import TOOLSET

from footplate.client import ApiError, AsyncFootplate, Session
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

pytestmark = [pytest.mark.timing, pytest.mark.timeout(600), pytest.mark.requirement("R2", "O8")]

FAST = {"FOOTPLATE_LEASE": "8", "FOOTPLATE_HEARTBEAT_TIMEOUT": "12"}


@pytest.fixture(scope="module")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(workers=1, stack=stack, environment=FAST) as cluster:
        yield cluster


async def create_session(client: AsyncFootplate, harness: str, prompt: str, **fields: Any) -> Session:
    agent = await client.agents.create(name=harness, model="claude-sonnet-5", harness=harness, tools=[TOOLSET])
    environment = await client.environments.create(name=f"for {agent.id}")
    message = {"type": "user.message", "content": [{"type": "text", "text": prompt}]}
    return await client.sessions.create(
        agent=agent.id, environment_id=environment.id, initial_events=[message], **fields
    )


async def wait_for(client: AsyncFootplate, session_id: str, status: str) -> Session:
    async def reached() -> bool:
        return (await client.sessions.retrieve(session_id)).status == status

    assert await wait_until(reached, 90), await client.sessions.retrieve(session_id)
    return await client.sessions.retrieve(session_id)


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key) as client:
        yield client


@pytest.mark.parametrize("harness", ["shell", "native", "claude"])
async def test_a_session_ends_when_it_is_done_and_its_fork_goes_on(
    cluster: Cluster, client: AsyncFootplate, harness: str
) -> None:
    await cluster.model.install("end", replies([text("Done.")], [text("Still here.")]))
    prompt = "echo done" if harness == "shell" else "[[script:end]]"
    session = await create_session(client, harness, prompt, ends_when_done=True)
    ended = await wait_for(client, session.id, "terminated")
    assert ended.end is not None
    assert (ended.end.outcome, ended.end.reason, ended.end.ended_by) == ("completed", None, None)
    assert ended.activity is not None
    assert ended.activity.state == "ended"
    log = [event async for event in client.events.list(session.id)]
    assert [event.type for event in log][-2:] == ["session.status_idle", "session.status_terminated"]
    assert log[-1].wire()["outcome"] == "completed"
    with pytest.raises(ApiError, match="has ended") as refused:
        await client.events.send_text(session.id, "More")
    assert (refused.value.status, "footplate fork" in refused.value.help) == (400, True)

    async def is_released() -> bool:
        return not [command for command in cluster.alive().values() if session.id in command]

    assert await wait_until(is_released, 30), cluster.alive()
    fork = await client.sessions.fork(session.id)
    await client.events.send_text(fork.id, "echo on" if harness == "shell" else "[[script:end]] Go on")
    await wait_for_turns(client, fork.id)
    assert (await client.sessions.retrieve(fork.id)).status == "idle"


@pytest.mark.parametrize("harness", ["shell", "claude"])
async def test_a_worker_that_dies_between_the_request_and_the_end_does_not_lose_it(
    cluster: Cluster, client: AsyncFootplate, harness: str
) -> None:
    await cluster.model.install("long", replies([tool("Bash", {"command": "sleep 300"})], [text("Over.")]))
    session = await create_session(client, harness, "sleep 300" if harness == "shell" else "[[script:long]]")

    async def sleeps() -> bool:
        return any("sleep 300" in command for command in cluster.alive().values())

    assert await wait_until(sleeps, 60)
    armed = cluster.failpoints / "before_turn_commit"
    armed.write_text("kill")
    requested = await client.sessions.end(session.id, outcome="failed", reason="Not needed.")
    assert requested.end is None
    again = await client.sessions.end(session.id, outcome="failed", reason="Not needed.")
    assert again.id == session.id
    with pytest.raises(ApiError) as refused:
        await client.sessions.end(session.id, outcome="completed")
    assert refused.value.status == 409

    async def was_killed() -> bool:
        return not armed.exists()

    assert await wait_until(was_killed, 60)
    await cluster.restart_worker(0)
    ended = await wait_for(client, session.id, "terminated")
    assert ended.end is not None
    assert (ended.end.outcome, ended.end.reason) == ("failed", "Not needed.")
    types = [event.type async for event in client.events.list(session.id)]
    assert types.count("session.status_terminated") == 1
    assert not await sleeps()


async def test_a_warm_process_ends_with_an_idle_session(cluster: Cluster, client: AsyncFootplate) -> None:
    await cluster.model.install("hello", replies([text("Hello.")]))
    before = {*cluster.alive()}
    session = await create_session(client, "claude", "[[script:hello]]")
    await wait_for_turns(client, session.id)
    assert {*cluster.alive()} - before  # it is kept for the next turn
    ended = await client.sessions.end(session.id)
    assert ended.status == "terminated"

    async def is_gone() -> bool:
        return not {*cluster.alive()} - before

    assert await wait_until(is_gone, 15), cluster.alive()


async def wait_for_turns(client: AsyncFootplate, session_id: str) -> None:
    async def ended() -> bool:
        turns = (await client.turns.list(session_id).page()).data
        return bool(turns) and all(turn.ended_at for turn in turns)

    assert await wait_until(ended, 90)
