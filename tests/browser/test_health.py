"""Health: the sentence at the top, workers, queues, versions, and sessions that do not move."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from bench.support.clients import Client
from playwright.async_api import Locator, Page, expect

from footplate import __version__
from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import hang, text

DISABLED = "the author of the next message is disabled"


def _summary(page: Page) -> Locator:
    return page.get_by_role("region", name="Summary")


def _workers(page: Page) -> Locator:
    return page.get_by_role("table", name="Workers").locator("tbody").get_by_role("row")


def _stuck(page: Page, cause: str) -> Locator:
    return page.get_by_role("list", name=f"Sessions: {cause}").get_by_role("listitem")


async def _run_action(page: Page, action: str) -> None:
    """Runs an action by the palette."""
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(action)
    await expect(page.get_by_role("option", name=action, selected=True)).to_be_visible()
    await page.keyboard.press("Enter")


async def _create_session(workplace: Workplace, title: str) -> str:
    """Creates a session without work."""
    agent = await workplace.client.agent(name="engineer", extra_body={"harness": "native"})
    return await workplace.client.session(agent, title=title)


async def _disable_the_author_of(workplace: Workplace, *titles: str) -> None:
    """Starts a session for each title, with a queued message of a member who is disabled before it starts."""
    post = workplace.client.sdk.post
    member = await post("/v1/members", body={"name": "Ben", "roles": ["operator"]}, cast_to=dict[str, Any])
    body = {"name": "ben", "member_id": member["id"], "roles": ["operator"]}
    secret = (await post("/v1/api_keys", body=body, cast_to=dict[str, Any]))["secret"]
    sessions = []
    async with Client(workplace.cluster, key=secret) as ben:
        for title in titles:
            session_id = await workplace.start_session(replies([text("Working."), hang()]), title=title)
            await ben.send_text(session_id, "Continue")
            sessions.append(session_id)
    await post(f"/v1/members/{member['id']}", body={"disabled": True}, cast_to=dict[str, Any])
    for session_id in sessions:
        await workplace.client.interrupt(session_id)


@asynccontextmanager
async def _without_a_worker(workplace: Workplace) -> AsyncIterator[None]:
    await workplace.cluster.kill_worker(0)
    try:
        yield
    finally:
        await workplace.cluster.restart_worker(0)


@pytest.mark.smoke
@pytest.mark.action("health.refresh", "health.copy-versions")
async def test_everything_runs(window: DashboardWindow) -> None:
    page = window.page
    await window.open_page("/health")
    await expect(_summary(page)).to_contain_text("Everything runs: 1 worker, ")
    await expect(_workers(page)).to_have_count(1)
    await expect(_workers(page)).to_contain_text("sandbox")
    await expect(_workers(page)).to_contain_text(__version__)
    await expect(_workers(page)).to_contain_text(re.compile(r"\d+ of \d+"))
    queues = page.get_by_role("table", name="Queues").locator("tbody").get_by_role("row")
    await expect(queues.filter(has_text="workflow").first).to_contain_text("1 worker")
    await expect(page.get_by_text("Every session that has work moves")).to_be_visible()
    async with page.expect_response("**/v1/queues"):
        await page.keyboard.press("r")
    await expect(page.get_by_text("Checked again")).to_be_visible()
    await page.keyboard.press("c")
    await expect(page.get_by_text("Versions copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert f"Server: {__version__}\nWorkers: {__version__} (1)\n" in copied


@pytest.mark.action("health.next", "health.previous", "health.open", "health.list")
async def test_stuck_sessions_appear_with_the_reason(workplace: Workplace) -> None:
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/health")
    await expect(_summary(page)).to_contain_text("Everything runs")
    await _disable_the_author_of(workplace, "First", "Second")
    await expect(_summary(page)).to_contain_text(f"2 sessions wait: {DISABLED}.")
    await expect(_stuck(page, DISABLED)).to_have_count(2)
    await expect(page.get_by_role("group", name=DISABLED)).to_contain_text("footplate members disable AUTHOR")
    for key in ("j", "j", "k"):
        await page.keyboard.press(key)
    first = _stuck(page, DISABLED).first
    await expect(first).to_have_attribute("aria-current", "true")
    title = await first.get_by_role("link").inner_text()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/sessions/sesn_"))
    await expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    await page.go_back()
    await expect(_stuck(page, DISABLED)).to_have_count(2)
    await page.keyboard.press("s")
    await expect(page).to_have_url(re.compile("/sessions\\?stuck=true"))
    await expect(page.get_by_role("list", name="Sessions").get_by_role("listitem")).to_have_count(2)


@pytest.mark.action("health.lost")
async def test_a_lost_worker_and_what_waits_for_another_one(workplace: Workplace) -> None:
    session_id = await _create_session(workplace, "Waits")
    await workplace.cluster.model.install("health-waits", replies([text("Done.")]))
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/health")
    await expect(_summary(page)).to_contain_text("Everything runs")
    async with _without_a_worker(workplace):
        await workplace.client.send_text(session_id, "Begin [[script:health-waits]]")
        await expect(_summary(page)).to_contain_text("1 session waits: no worker is running.")
        await expect(_stuck(page, "no worker is running")).to_contain_text("Waits")
        await expect(page.get_by_text("Start one: footplate worker")).to_be_visible()
        await page.keyboard.press("l")
        await expect(page).to_have_url(re.compile("lost=true"))
        await expect(_workers(page).first).to_contain_text("lost")
    await expect(_summary(page)).to_contain_text("Everything runs: 1 worker")
    await expect(_workers(page).first).to_contain_text("running")
    await expect(_workers(page).nth(1)).to_contain_text("lost")
    await page.get_by_role("switch", name=re.compile("lost in the last day")).click()
    await expect(_workers(page)).to_have_count(1)


async def test_the_missing_backend_is_named(workplace: Workplace) -> None:
    session_id = await _create_session(workplace, "In a container")
    connection = await asyncpg.connect(workplace.cluster.settings.database_url)
    try:
        # What a worker stores that has claimed a turn which needs a backend that it does not offer.
        for statement in (
            """update sessions set environment = environment || '{"backend": "docker"}' where id = $1""",
            "update session_heads set status = 'running', needs_backend = 'docker' where session_id = $1",
            "insert into active_sessions select id, now(), organisation from sessions where id = $1",
        ):
            await connection.execute(statement, session_id)
    finally:
        await connection.close()
    window = await workplace.sign_in()
    await window.open_page("/health")
    await expect(_summary(window.page)).to_contain_text("1 session waits: no worker offers docker.")
    await expect(_stuck(window.page, "no worker offers docker")).to_contain_text("In a container")


async def test_a_failed_request_does_not_look_like_health(workplace: Workplace) -> None:
    workplace.expect("500")
    window = await workplace.sign_in()
    page = window.page
    await page.route("**/v1/workers", lambda route: route.fulfill(status=500, json={}))
    await window.open_page("/health")
    await expect(page.get_by_text("The workers could not be loaded")).to_be_visible()
    await expect(_summary(page)).to_contain_text("It is not known whether everything runs.")
    await page.unroute("**/v1/workers")
    await page.get_by_role("button", name="Try again").click()
    await expect(_summary(page)).to_contain_text("Everything runs")
    await page.route("**/v1/workers", lambda route: route.fulfill(status=500, json={}))
    await page.keyboard.press("r")
    await expect(page.get_by_text("The workers could not be read again. This is from")).to_be_visible()
    await expect(_workers(page)).to_have_count(1)


async def test_a_viewer_sees_sessions_and_why_nothing_else(workplace: Workplace) -> None:
    viewer = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page("/health")
    await expect(_summary(page)).to_contain_text("Everything runs: no session is stuck.")
    await expect(page.get_by_text("only members who can manage members see them")).to_be_visible()
    await expect(page.get_by_role("table")).to_have_count(0)
    await _disable_the_author_of(workplace, "Shared")
    await expect(_summary(page)).to_contain_text(f"1 session waits: {DISABLED}.")
    await page.keyboard.press("l")
    await expect(page).to_have_url(re.compile("/health$"))


async def test_on_a_phone_nothing_is_wider_than_the_screen(workplace: Workplace) -> None:
    await _disable_the_author_of(
        workplace, "A title that is much too long for the screen of a phone, so it is cut " * 3
    )
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page("/health")
    await expect(_summary(page)).to_contain_text("1 session waits")
    await expect(_workers(page)).to_have_count(1)
    for element in ("document.documentElement", "document.querySelector('main')"):
        assert await page.evaluate(f"{element}.scrollWidth") <= PHONE[0]
    await _stuck(page, DISABLED).get_by_role("link").tap()
    await expect(page).to_have_url(re.compile("/sessions/sesn_"))
