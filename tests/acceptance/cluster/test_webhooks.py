"""Webhooks of a whole deployment: the callback of a job that ends, and a worker that dies before it records it."""

from collections.abc import AsyncIterator

import pytest
from anthropic import Anthropic
from bench.support.cluster import Cluster, open_cluster
from bench.support.webhooks.receiver import WebhookReceiver
from tests.acceptance.cluster.test_session_ending import create_session

from footplate.client import AsyncFootplate
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until

pytestmark = [pytest.mark.timing, pytest.mark.timeout(300), pytest.mark.requirement("R2", "O8")]

SETTINGS = {
    "FOOTPLATE_LEASE": "2",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "4",
    "FOOTPLATE_WEBHOOK_HTTP": "true",
    "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1",
}


@pytest.fixture(scope="module")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(workers=1, stack=stack, environment=SETTINGS) as running:
        yield running


async def test_a_worker_that_dies_before_it_records_the_response_sends_the_same_event_again(cluster: Cluster) -> None:
    async with WebhookReceiver() as receiver, AsyncFootplate(cluster.base_urls[0], cluster.key) as client:
        endpoint = await client.webhooks.create(receiver.url(), event_types=["session.status_terminated"])
        (cluster.failpoints / "webhook_sent").write_text("kill")
        session = await create_session(client, "shell", "exit 3", ends_when_done=True)
        assert await receiver.wait_until(lambda: bool(receiver.accepted), 60)

        async def is_dead() -> bool:
            return not cluster.workers[0].is_running

        assert await wait_until(is_dead, 30)
        (pending,) = [each async for each in client.webhooks.deliveries(endpoint.id)]
        assert (pending.status, pending.attempts) == ("pending", 0)
        await cluster.restart_worker(0)
        assert await receiver.wait_until(lambda: len(receiver.accepted) >= 2, 60)
        assert {webhook.id for webhook in receiver.accepted} == {pending.id}

        async def is_delivered() -> bool:
            return (await client.webhooks.delivery(endpoint.id, pending.id)).status == "delivered"

        assert await wait_until(is_delivered, 30)
        webhook = receiver.accepted[-1]
        event = Anthropic(api_key="unused", webhook_key=endpoint.secret).beta.webhooks.unwrap(
            webhook.body, headers=webhook.headers
        )
        assert event.data.type == "session.status_terminated"
        assert (event.data.id, event.data.to_dict()["outcome"]) == (session.id, "failed")


async def test_a_test_event_arrives_at_once_and_a_deleted_endpoint_receives_nothing(cluster: Cluster) -> None:
    async with WebhookReceiver() as receiver, AsyncFootplate(cluster.base_urls[0], cluster.key) as client:
        endpoint = await client.webhooks.create(receiver.url())
        test = await client.webhooks.test(endpoint.id)
        assert await receiver.wait_until(lambda: bool(receiver.accepted), 30)
        assert receiver.accepted[0].id == test.id
        await client.webhooks.delete(endpoint.id)
        count = len(receiver.received)
        await create_session(client, "shell", "true")
        assert not await receiver.wait_until(lambda: len(receiver.received) > count, 1)
