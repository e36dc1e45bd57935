"""Notifications arrive encrypted while workers are killed, and Chromium shows each once; a revocation ends them.

A push service on this machine verifies and decrypts what the server sends, with code of its own. Workers are killed
between sending and recording. The DevTools protocol delivers what arrived to the service worker of the dashboard.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final

from playwright.async_api import async_playwright

from bench.prove.figure import Figure, require
from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_window import FLAGS, DashboardWindow, Workplace
from bench.support.cluster import Cluster, open_cluster
from bench.support.push.browser_push import BrowserPush
from bench.support.push.push_service import PushedMessage, PushService
from footplate.stack.orphan_processes import wait_until
from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import tool

_SETTINGS: Final = {
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "3",
    "FOOTPLATE_LEASE": "1.5",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    "FOOTPLATE_WEBHOOK_HTTP": "true",
    "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1",
    "FOOTPLATE_WEBHOOK_RETRY_WAIT": "0.2",
}
_FULL, _QUICK = 20, 2
"""The number of calls that wait for approval. Each second one is accompanied by the death of a worker."""
_SECRET: Final = "make secret-target"
_ASK: Final = {"ask": ["Bash(*)"]}
_ARRIVAL_SECONDS: Final = 120.0
_SILENCE_SECONDS: Final = 10.0
_SECTION: Final = "/settings?section=notifications"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    count = _QUICK if quick else _FULL
    faults: list[str] = []
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(PushService())
        cluster = await stack.enter_async_context(open_cluster(workers=2, environment=_SETTINGS))
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(FLAGS))
        stack.push_async_callback(browser.close)
        workplace = await Workplace.open(cluster, browser, stack)
        service.public_key = (await _read(workplace, "/v1/notification_settings"))["public_key"]
        window = await workplace.sign_in()
        push = await BrowserPush.open(window, service)
        await _turn_on(window)
        kills = 0
        for number in range(count):
            kills += await _ask(workplace, cluster, number, is_killing=number % 2 == 0)
        items = await _wait_for_calls(workplace, count)
        messages = await _wait_for_items(push, items)
        faults += _check_messages(messages, items)
        for message in messages:
            await push.deliver(message)
        shown = await _list_shown(push, count)
        if sorted(shown) != sorted(items):
            faults.append(f"Chromium shows {len(shown)} notifications of {len(items)} items")
        faults += await _check_revocation(workplace, push)
        faults += service.faults + workplace.problems
    for fault in faults:
        print(f"  {fault}")
    repeated = len(messages) - len(items)
    return Figure(
        headline=f"{len(items)} notifications, {kills} kills: {len(faults)} faults",
        summary=f"{len(items)} calls with {kills} kills of workers between sending and recording: each arrived "
        f"encrypted, {repeated} more than once; Chromium shows each once; after the revocation none was sent"
        f"{f'; the first fault: {faults[0]}' if faults else ''}",
        holds=not faults,
        details={"faults": [*faults], "kills": kills, "repeated": repeated},
    )


async def _read(workplace: Workplace, path: str) -> Any:
    return await workplace.client.sdk.get(path, cast_to=dict[str, Any])


async def _turn_on(window: DashboardWindow) -> None:
    await window.open_page(_SECTION)
    await window.page.get_by_role("switch", name="Notify me in this browser").click()
    await window.page.get_by_role("list", name="Your browsers").wait_for()


async def _ask(workplace: Workplace, cluster: Cluster, number: int, *, is_killing: bool) -> int:
    """Lets a call wait for approval. Returns how many workers died meanwhile."""
    if is_killing:
        (cluster.failpoints / "webhook_sent").write_text("kill")
    script = replies([tool("bash", {"command": _SECRET})])
    await workplace.start_session(script, title=f"Release {number}", permissions=_ASK)
    if not is_killing:
        return 0

    async def has_dead_worker() -> bool:
        return not all(worker.is_running for worker in cluster.workers)

    require(holds=await wait_until(has_dead_worker, _ARRIVAL_SECONDS), otherwise="no worker died after it had sent")
    for index, worker in enumerate(cluster.workers):
        if not worker.is_running:
            await cluster.restart_worker(index)
    return 1


async def _wait_for_calls(workplace: Workplace, count: int) -> set[str]:
    """Waits until all calls wait for approval. Returns their items in the inbox."""
    items: set[str] = set()

    async def are_waiting() -> bool:
        items.update(each["id"] for each in (await _read(workplace, "/v1/inbox?limit=100"))["data"])
        return len(items) >= count

    require(holds=await wait_until(are_waiting, _ARRIVAL_SECONDS), otherwise=f"{len(items)} of {count} calls wait")
    return items


async def _wait_for_items(push: BrowserPush, items: set[str]) -> list[PushedMessage]:
    """Waits until each item has arrived and each delivery is recorded, so that none is sent again."""

    async def have_arrived() -> bool:
        return {str(each.content["id"]) for each in push.service.accepted(push.browser)} >= items

    await wait_until(have_arrived, _ARRIVAL_SECONDS)
    await asyncio.sleep(_SILENCE_SECONDS)
    return push.service.accepted(push.browser)


def _check_messages(messages: list[PushedMessage], items: set[str]) -> list[str]:
    arrived = {str(each.content["id"]) for each in messages}
    found = [f"{len(items - arrived)} of {len(items)} items did not arrive"] if items - arrived else []
    found += [f"{len(arrived - items)} messages are about no item"] if arrived - items else []
    topics = {
        str(each.content["id"]): {one.topic for one in messages if one.content == each.content} for each in messages
    }
    found += [f"{item} has several topics" for item, each in topics.items() if len(each) > 1]
    return [*found, *("a message contains the command" for each in messages if "secret-target" in str(each.content))]


async def _list_shown(push: BrowserPush, count: int) -> list[str]:
    async def are_shown() -> bool:
        return len(await push.list_shown()) >= count

    await wait_until(are_shown, _ARRIVAL_SECONDS)
    return [str(each["tag"]) for each in await push.list_shown()]


async def _check_revocation(workplace: Workplace, push: BrowserPush) -> list[str]:
    listed = (await _read(workplace, "/v1/push_subscriptions"))["data"]
    for each in listed:
        await workplace.client.sdk.delete(f"/v1/push_subscriptions/{each['id']}", cast_to=dict[str, Any])
    received = push.service.received
    script = replies([tool("bash", {"command": _SECRET})])
    session_id = await workplace.start_session(script, title="After the revocation", permissions=_ASK)

    async def is_waiting() -> bool:
        waiting = (await _read(workplace, "/v1/inbox?limit=100"))["data"]
        return session_id in [each["session"]["id"] for each in waiting]

    require(holds=await wait_until(is_waiting, _ARRIVAL_SECONDS), otherwise="the last call does not wait for approval")
    await asyncio.sleep(_SILENCE_SECONDS)
    if push.service.received > received:
        return [f"{push.service.received - received} requests after the revocation"]
    return [] if len(listed) == 1 else [f"{len(listed)} browsers were subscribed"]
