"""Notifications: this browser on and off, what the service worker shows, other browsers, quiet hours and obstacles."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from bench.support.push.browser_push import BrowserPush
from bench.support.push.push_service import PushedMessage, PushService
from playwright.async_api import Page, expect

from footplate.stack.orphan_processes import wait_until
from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import tool

PATH = "/settings?section=notifications"
ASK = {"ask": ["Bash(*)"]}


@pytest_asyncio.fixture(loop_scope="session")
async def service() -> AsyncIterator[PushService]:
    async with PushService() as running:
        yield running
        assert running.faults == []


async def _read(workplace: Workplace, path: str) -> Any:
    return await workplace.client.sdk.get(path, cast_to=dict[str, Any])


async def _open(
    workplace: Workplace, service: PushService, path: str = "/browser"
) -> tuple[DashboardWindow, BrowserPush]:
    window = await workplace.sign_in()
    push = await BrowserPush.open(window, service, path)
    await window.open_page(PATH)
    return window, push


async def _turn_on(page: Page) -> None:
    await page.get_by_role("switch", name="Notify me in this browser").click()
    await expect(page.get_by_role("switch", name="Notify me in this browser")).to_be_checked()
    await expect(page.get_by_role("list", name="Your browsers")).to_contain_text("this browser")


@pytest.mark.smoke
@pytest.mark.action("settings.notifications", "settings.notify-here")
@pytest.mark.timing
async def test_a_call_that_waits_is_shown_once_and_a_click_opens_it(workplace: Workplace, service: PushService) -> None:
    window, push = await _open(workplace, service)
    page = window.page
    await window.run_action("Turn notifications in this browser on or off")
    await expect(page.get_by_role("switch", name="Notify me in this browser")).to_be_checked()
    await workplace.start_session(
        replies([tool("bash", {"command": "make secret-target"})]), title="Release 2.1", permissions=ASK
    )
    (message,) = await service.wait_for(push.browser, 1, 60)
    item = (await _read(workplace, "/v1/inbox"))["data"][0]["id"]
    expected = {"title": "bash needs approval", "body": "Release 2.1", "tag": item, "path": f"/inbox?item={item}"}
    await push.deliver(message)
    await push.deliver(message)
    assert await wait_until(lambda: _shows(push, [expected]), 30), await push.list_shown()
    await push.click(item)
    await expect(page).to_have_url(re.compile(f"/inbox\\?item={item}"))
    assert await wait_until(lambda: _shows(push, []), 30)


async def _shows(push: BrowserPush, expected: list[dict[str, Any]]) -> bool:
    return await push.list_shown() == expected


@pytest.mark.action("settings.test-notification")
@pytest.mark.timing
async def test_a_browser_is_tested_and_revoked_from_another_one(workplace: Workplace, service: PushService) -> None:
    window, push = await _open(workplace, service)
    page = window.page
    await _turn_on(page)
    await window.run_action("Send a test notification to this browser")
    await expect(page.get_by_text("Test sent", exact=True)).to_be_visible()
    (message,) = await service.wait_for(push.browser, 1, 60)
    assert await wait_until(lambda: _delivers(push, message, "This is a test"), 30), await push.list_shown()
    other, _ = await _open(workplace, service, "/other")
    await expect(other.page.get_by_role("switch", name="Notify me in this browser")).not_to_be_checked()
    await other.page.get_by_role("button", name="Remove Chrome on Linux").click()
    await expect(other.page.get_by_role("list", name="Your browsers")).to_have_count(0)
    received = service.received
    await workplace.start_session(replies([tool("bash", {"command": "make"})]), title="Release 2.2", permissions=ASK)
    await page.reload()
    await expect(page.get_by_role("switch", name="Notify me in this browser")).not_to_be_checked()
    assert (await _read(workplace, "/v1/push_subscriptions"))["data"] == []
    await other.open_page("/inbox")
    await expect(other.page.get_by_text("Release 2.2").first).to_be_visible()
    assert service.received == received


async def _delivers(push: BrowserPush, message: PushedMessage, title: str) -> bool:
    """DevTools may drop a message that it delivers to a service worker that has just started."""
    await push.deliver(message)
    return await wait_until(lambda: _has_shown(push, title), 2)


async def _has_shown(push: BrowserPush, title: str) -> bool:
    return title in [each["title"] for each in await push.list_shown()]


@pytest.mark.action("settings.save-quiet-hours", "settings.pause-notifications")
async def test_quiet_hours_and_a_pause_are_saved(workplace: Workplace, service: PushService) -> None:
    workplace.expect("400")
    window, _ = await _open(workplace, service)
    page = window.page
    await page.get_by_role("switch", name="Be silent at a time of each day").click()
    await page.get_by_label("From").fill("21:30")
    await page.get_by_label("To", exact=True).fill("21:30")
    await page.get_by_role("button", name="Save quiet hours").click()
    await expect(page.get_by_text("The end must be another time than the start.")).to_be_visible()
    await page.get_by_label("To", exact=True).fill("06:15")
    await page.get_by_label("Time zone").fill("Europe/Nowhere")
    await page.get_by_role("button", name="Save quiet hours").click()
    await expect(page.get_by_text("there is no time zone 'Europe/Nowhere'")).to_be_visible()
    await page.get_by_label("Time zone").fill("Europe/Berlin")
    await window.run_action("Save the quiet hours")
    await expect(page.get_by_text("Quiet hours saved", exact=True)).to_be_visible()
    await window.run_action("Turn all my notifications on or off")
    await expect(page.get_by_text("Nothing but tests is sent to any of your browsers.")).to_be_visible()
    stored = await _read(workplace, "/v1/notification_settings")
    assert (stored["enabled"], stored["quiet_hours"]) == (
        False,
        {"start": "21:30", "end": "06:15", "timezone": "Europe/Berlin"},
    )
    await page.reload()
    await expect(page.get_by_label("From")).to_have_value("21:30")
    await page.get_by_role("switch", name="Be silent at a time of each day").click()
    await page.get_by_role("button", name="Save quiet hours").click()
    await expect(page.get_by_text("Quiet hours removed", exact=True)).to_be_visible()
    await page.get_by_role("switch", name="Send me notifications").click()
    await expect(page.get_by_text("Nothing but tests is sent")).to_have_count(0)
    stored = await _read(workplace, "/v1/notification_settings")
    assert (stored["enabled"], stored["quiet_hours"]) == (True, None)


async def test_a_viewer_on_a_phone_turns_notifications_off_and_a_failure_is_shown(
    workplace: Workplace, service: PushService
) -> None:
    workplace.expect("503|400")
    window = await workplace.sign_in(size=PHONE, key=await workplace.create_viewer_key())
    push = await BrowserPush.open(window, service)
    page = window.page
    await window.open_page(PATH)
    await _turn_on(page)
    await page.get_by_role("switch", name="Notify me in this browser").tap()
    await expect(page.get_by_role("list", name="Your browsers")).to_have_count(0)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    error = {"type": "error", "error": {"type": "api_error", "message": "The database does not respond."}}
    await page.route("**/v1/push_subscriptions", lambda route: route.fulfill(status=400, json=error))
    await window.open_page(PATH)
    await expect(page.get_by_text("Your notifications could not be loaded")).to_be_visible()
    await page.unroute("**/v1/push_subscriptions")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("switch", name="Notify me in this browser")).not_to_be_checked()
    assert service.accepted(push.browser) == []


async def test_a_browser_that_cannot_be_notified_explains_why(workplace: Workplace) -> None:
    window = await workplace.sign_in()
    await window.context.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false });")
    await window.open_page(PATH)
    await expect(window.page.get_by_text("This address is not secure")).to_be_visible()
    await expect(window.page.get_by_role("switch", name="Notify me in this browser")).to_have_count(0)
    other = await workplace.sign_in()
    await other.context.add_init_script("Object.defineProperty(Notification, 'permission', { value: 'denied' });")
    await other.open_page(PATH)
    await expect(other.page.get_by_text("This browser blocks notifications of this site")).to_be_visible()
