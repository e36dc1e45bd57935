"""Notifications of a whole deployment: a worker that dies before it records that it has sent one."""

from collections.abc import AsyncIterator

import pytest
from bench.support.cluster import Cluster, open_cluster
from bench.support.push.push_service import PushService
from tests.acceptance.cluster.test_session_ending import create_session

from footplate.client import AsyncFootplate
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until

pytestmark = [pytest.mark.timing, pytest.mark.timeout(300)]

SETTINGS = {
    "FOOTPLATE_LEASE": "2",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "4",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    "FOOTPLATE_WEBHOOK_HTTP": "true",
    "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1",
}


@pytest.fixture(scope="module")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(workers=1, stack=stack, environment=SETTINGS) as running:
        yield running


async def test_a_worker_that_dies_after_sending_sends_the_same_notification_again(cluster: Cluster) -> None:
    async with PushService() as service, AsyncFootplate(cluster.base_urls[0], cluster.key) as client:
        service.public_key = (await client.notifications.settings()).public_key
        browser = service.add_browser("/browser")
        wanted = service.subscription(browser)
        subscribed = await client.notifications.subscribe(wanted["endpoint"], **wanted["keys"])
        (cluster.failpoints / "webhook_sent").write_text("kill")
        session = await create_session(client, "shell", "exit 3")
        (first,) = await service.wait_for(browser, 1, 60)

        async def is_dead() -> bool:
            return not cluster.workers[0].is_running

        assert await wait_until(is_dead, 30)
        (listed,) = await client.notifications.list()
        assert listed.last_success_at is None
        await cluster.restart_worker(0)
        _, second = await service.wait_for(browser, 2, 60)
        assert (second.topic, second.content) == (first.topic, first.content)
        assert first.content["session_id"] == session.id
        assert first.content["title"] == "A turn failed"

        async def is_recorded() -> bool:
            return (await client.notifications.list())[0].last_success_at is not None

        assert await wait_until(is_recorded, 30)
        await client.notifications.delete(subscribed.id)
        received = service.received
        await create_session(client, "shell", "exit 4")
        assert await service.wait_for(browser, 3, 3) == [first, second]
        assert (service.received, service.faults) == (received, [])
