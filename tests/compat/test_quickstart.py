"""The unmodified official SDK works against a running cell: the quickstart, and common next steps."""

import asyncio
from importlib.metadata import version

import anthropic
import pytest
from bench.support import quickstart_scenarios
from bench.support.clients import Client
from bench.support.cluster import Cluster

from footplate.domain.sessions import events

pytestmark = pytest.mark.timing


def test_the_sdk_is_the_one_we_claim() -> None:
    assert version("anthropic") == "2.8.0"


@pytest.mark.parametrize("scenario", quickstart_scenarios.SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_quickstart_scenario(client: Client, scenario: quickstart_scenarios.Scenario) -> None:
    await scenario(client)
    assert client.ledger.validated > 0


async def test_the_sdk_raises_its_own_errors(client: Client, cluster: Cluster) -> None:
    with pytest.raises(anthropic.NotFoundError):
        await client.sdk.beta.sessions.retrieve("sesn_none")
    with pytest.raises(anthropic.BadRequestError):
        await client.sdk.beta.agents.create(name="", model="m")
    environment = await client.sdk.beta.environments.create(name="taken")
    with pytest.raises(anthropic.ConflictError):
        await client.sdk.beta.environments.create(name="taken")
    await client.sdk.beta.environments.delete(environment.id)
    async with Client(cluster, key="fp_wrong") as unknown:
        with pytest.raises(anthropic.AuthenticationError):
            await unknown.sdk.beta.agents.retrieve("agent_none")


async def test_a_session_needs_an_environment_that_exists_and_is_not_archived(client: Client) -> None:
    agent_id = await client.agent()
    with pytest.raises(anthropic.NotFoundError, match="environment"):
        await client.session(agent_id, "env_none")
    environment_id = await client.environment()
    await client.sdk.beta.environments.archive(environment_id)
    with pytest.raises(anthropic.BadRequestError, match="archived"):
        await client.session(agent_id, environment_id)


async def test_initial_events_start_the_first_turn(client: Client) -> None:
    message = {"type": "user.message", "content": [{"type": "text", "text": "[[script:again]]"}]}
    session_id = await client.session(initial_events=[message])
    async with asyncio.timeout(30), client.stream(session_id, last_event_id="0") as stream:
        received = await stream.until_idle()
    assert [event["type"] for event in received[:3]] == [
        events.USER_MESSAGE,
        events.USER_MESSAGE,
        events.STATUS_RUNNING,
    ]
    assert [event["processed_at"] is not None for event in received[:2]] == [False, True]


async def test_lists_and_pages(client: Client) -> None:
    agent_id = await client.agent()
    sessions = [await client.session(agent_id) for _ in range(5)]
    found = [session.id async for session in client.sdk.beta.sessions.list(agent_id=agent_id, limit=2)]
    assert found == sessions[::-1]
    await client.run_turn(sessions[0], "[[script:again]]")
    whole = [event.id async for event in client.sdk.beta.sessions.events.list(sessions[0])]
    paged = [event.id async for event in client.sdk.beta.sessions.events.list(sessions[0], limit=2)]
    assert whole == paged
    assert len(set(whole)) == len(whole)


async def test_archive_and_delete(client: Client) -> None:
    session_id = await client.session()
    assert (await client.sdk.beta.sessions.archive(session_id)).archived_at is not None
    with pytest.raises(anthropic.BadRequestError):
        await client.send_text(session_id, "too late")
    assert (await client.sdk.beta.sessions.delete(session_id)).type == "session_deleted"
    with pytest.raises(anthropic.NotFoundError):
        await client.sdk.beta.sessions.retrieve(session_id)
