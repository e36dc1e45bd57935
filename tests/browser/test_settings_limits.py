"""Settings, limits: what is used, who has set it, and setting and removing a limit."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from bench.support.browser.hostile_content import TEXTS
from playwright.async_api import Locator, Page, expect

from footplate.domain.organisations.limits import ORGANISATION, LimitName
from footplate.store.database import Database
from footplate.store.resources.limits import LimitStore

SECTION = "/settings?section=limits"


async def _set(workplace: Workplace, name: str, value: int, **fields: Any) -> None:
    body = {"name": name, "value": value, **fields}
    await workplace.client.sdk.post("/v1/limits", body=body, cast_to=dict[str, Any])


async def _read(workplace: Workplace, name: str) -> dict[str, Any]:
    """The own values of a limit by scope, or by the name of the member."""
    listed = await workplace.client.sdk.get("/v1/limits", cast_to=dict[str, Any])
    return {each["member_name"] or each["scope"]: each["own_value"] for each in listed["data"] if each["name"] == name}


def _section(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def _row(page: Page, title: str, scope: str) -> Locator:
    return _section(page, title).get_by_role("listitem").filter(has=page.get_by_role("button", name=scope))


@pytest.mark.smoke
@pytest.mark.action("settings.set-limit", "settings.unset-limit")
async def test_limits_are_set_and_removed(workplace: Workplace) -> None:
    await workplace.client.sdk.post("/v1/members", body={"name": "Ann Miller"}, cast_to=dict[str, Any])
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(SECTION)
    await expect(_row(page, "Sessions", "Organisation")).to_contain_text("no limit")
    await page.keyboard.press("e")
    form = page.get_by_role("dialog", name="Set a limit")
    await form.get_by_label("Limit").click()
    await page.get_by_role("option", name="Sessions").click()
    await form.get_by_role("button", name="Set limit").click()
    await expect(form.get_by_text("Write a whole number, 0 or more.")).to_be_visible()
    await form.get_by_label("At most").fill("20")
    await form.get_by_role("button", name="Set limit").click()
    row = _row(page, "Sessions", "Organisation")
    await expect(row).to_contain_text("20")
    await expect(row).to_contain_text("organisation")
    assert await _read(workplace, "sessions") == {"organisation": 20}
    await page.get_by_role("button", name="Set a limit").click()
    await form.get_by_label("Limit").click()
    await page.get_by_role("option", name="Stored files").click()
    await form.get_by_label("For").click()
    await page.get_by_role("option", name="One member").click()
    await form.get_by_label("At most").fill("1.5")
    await form.get_by_role("button", name="Set limit").click()
    await expect(form.get_by_text("Choose a member.", exact=True)).to_be_visible()
    await form.get_by_label("Member", exact=True).fill("Ann")
    await page.get_by_role("option", name="Ann Miller").click()
    await form.get_by_role("button", name="Set limit").click()
    await expect(_row(page, "Stored files", "Ann Miller")).to_contain_text("1.5 GB")
    assert (await _read(workplace, "stored_bytes"))["Ann Miller"] == 1.5 * 1024**3
    await _row(page, "Sessions", "Organisation").get_by_role("button", name="Organisation", exact=True).click()
    await expect(row).to_have_attribute("aria-current", "true")
    await page.keyboard.press("Shift+D")
    question = page.get_by_role("dialog", name="Remove the limit “Sessions” of Organisation?")
    await expect(question).to_contain_text("Nothing limits it then.")
    await question.get_by_role("button", name="Remove").click()
    await expect(row).to_contain_text("no limit")
    assert await _read(workplace, "sessions") == {"organisation": None}


async def test_the_operator_of_the_server_cannot_be_exceeded(workplace: Workplace) -> None:
    workplace.expect("400")
    me = await workplace.client.sdk.get("/v1/me", cast_to=dict[str, Any])
    database = await Database.open(workplace.cluster.settings.database_url, size=1)
    await LimitStore(database).set_operator_limit(me["organisation_id"], LimitName.SESSIONS, ORGANISATION, 5)
    await database.close()
    await _set(workplace, "sessions", 4)
    await workplace.client.session(title="One")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(SECTION)
    row = _row(page, "Sessions", "Organisation")
    await expect(row).to_contain_text("1")
    await expect(row).to_contain_text("organisation")
    await row.get_by_role("button", name="Organisation", exact=True).click()
    await page.keyboard.press("e")
    form = page.get_by_role("dialog", name="Set a limit")
    await expect(form.get_by_text("The operator of the server permits at most 5.")).to_be_visible()
    await expect(form.get_by_label("At most")).to_have_value("4")
    await form.get_by_label("At most").fill("6")
    await page.keyboard.press("Control+Enter")
    await expect(form.get_by_text("the operator of this server limits sessions to 5")).to_be_visible()
    await form.get_by_role("button", name="Cancel").click()
    await row.get_by_role("button", name="More for Sessions of Organisation").click()
    await page.get_by_role("menuitem", name="Remove the limit").click()
    await expect(page.get_by_text("The limit of the operator of the server applies then: 5.")).to_be_visible()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(row).to_contain_text("server")


async def test_a_viewer_sees_limits_but_cannot_change_them(workplace: Workplace) -> None:
    await _set(workplace, "streams", 7, scope="each_member")
    window = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = window.page
    await window.open_page(SECTION)
    await expect(_row(page, "Streams", "Each member")).to_contain_text("7")
    await expect(page.get_by_text("This needs the role admin, and you have viewer.")).to_be_visible()
    await expect(page.get_by_role("button", name="Set a limit")).to_have_count(0)
    await expect(page.get_by_role("button", name=re.compile("^More for"))).to_have_count(0)


async def test_limits_that_cannot_be_loaded(workplace: Workplace) -> None:
    workplace.expect("500")
    window = await workplace.sign_in()
    page = window.page
    refusal = {"error": {"type": "api_error", "message": "The database does not respond."}}
    await page.route(re.compile("/v1/limits"), lambda route: route.fulfill(status=500, json=refusal))
    await window.open_page(SECTION)
    await expect(page.get_by_role("alert")).to_contain_text("The limits could not be loaded")
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(_row(page, "Sessions", "Organisation")).to_be_visible()


async def test_a_hostile_name_on_a_phone(workplace: Workplace) -> None:
    name = f"{TEXTS['bidirectional']}{TEXTS['script']}"
    member = await workplace.client.sdk.post("/v1/members", body={"name": name}, cast_to=dict[str, Any])
    await _set(workplace, "queued_steps", 3, scope="member", member_id=member["id"])
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(SECTION)
    row = _row(page, "Queued steps", "gpj.exe")
    await expect(row.get_by_text("U+202E").first).to_be_visible()
    await row.get_by_role("button", name="More for").tap()
    await page.get_by_role("menuitem", name="Remove the limit").tap()
    await expect(page.get_by_role("dialog").get_by_text("U+202E").first).to_be_visible()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").tap()
    await expect(row).to_have_count(0)
    assert await page.evaluate("window.__executed") is None
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
