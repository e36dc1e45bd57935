"""Settings, API keys: the list, a new key whose secret is shown once, replacing a secret, and revoking."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from bench.support.browser.hostile_content import TEXTS
from playwright.async_api import Locator, Page, expect

from footplate.stack.orphan_processes import wait_until

SECTION = "/settings?section=keys"
_EVERYWHERE = """(secret) => [
  document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage),
  JSON.stringify(history.state), location.href, [...document.querySelectorAll("input")].map((one) => one.value).join(),
].filter((place) => place.includes(secret)).length"""


async def _post(workplace: Workplace, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    return await workplace.client.sdk.post(path, body=body or {}, cast_to=dict[str, Any])


async def _create_key(workplace: Workplace, name: str, **fields: Any) -> dict[str, Any]:
    return await _post(workplace, "/v1/api_keys", {"name": name, **fields})


async def _is_valid(workplace: Workplace, secret: str) -> bool:
    async with httpx2.AsyncClient(base_url=workplace.cluster.base_urls[0]) as client:
        response = await client.get("/v1/me", headers={"x-api-key": secret})
    return response.status_code == 200


async def _is_refused(workplace: Workplace, secret: str) -> bool:
    return not await _is_valid(workplace, secret)


def _rows(page: Page) -> Locator:
    return page.get_by_role("list", name="API keys").get_by_role("listitem")


async def _open(workplace: Workplace, address: str = SECTION) -> DashboardWindow:
    window = await workplace.sign_in()
    await window.open_page(address)
    return window


@pytest.mark.smoke
@pytest.mark.action("settings.new-key")
async def test_a_new_key_is_shown_once_and_works(workplace: Workplace) -> None:
    member = await _post(workplace, "/v1/members", {"name": "Ben Ode", "roles": ["operator"]})
    project = await _post(workplace, "/v1/projects", {"name": "website", "path": "website"})
    window = await _open(workplace)
    page = window.page
    await expect(_rows(page)).to_have_count(1)
    await expect(_rows(page)).to_contain_text("in use here")
    await page.keyboard.press("c")
    form = page.get_by_role("dialog", name="New API key")
    await expect(form.get_by_label("Name", exact=True)).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(form.get_by_text("Give the key a name")).to_be_visible()
    await form.get_by_label("Name", exact=True).fill("build job")
    await form.get_by_label("Member", exact=True).fill("Ben")
    await page.get_by_role("option", name="Ben Ode").click()
    await expect(form.get_by_text("With this key, you can: read everything, work in sessions.")).to_be_visible()
    await form.get_by_role("checkbox", name="member", exact=True).click()
    await form.get_by_role("checkbox", name="operator", exact=True).click()
    await expect(form.get_by_text("With this key")).to_have_count(0)
    await form.get_by_label("Roles of your own").fill("release_manager")
    await form.get_by_label("Expires").click()
    await page.get_by_role("option", name="In 30 days").click()
    await form.get_by_role("checkbox", name="Only for some projects").click()
    await form.get_by_role("checkbox", name="website").click()
    await page.keyboard.press("Control+Enter")
    shown = page.get_by_role("dialog", name="API key “build job” created")
    secret = await shown.get_by_label("Secret", exact=True).inner_text()
    assert secret.startswith("fp_")
    await expect(shown).to_contain_text("nothing can show it again")
    await page.keyboard.press("Escape")
    await expect(shown).to_be_visible()
    await shown.get_by_role("button", name="Copy the secret").click()
    await page.wait_for_function("async (secret) => (await navigator.clipboard.readText()) === secret", arg=secret)
    await shown.get_by_role("button", name="I have copied it").click()
    await expect(shown).to_have_count(0)
    row = _rows(page).filter(has_text="build job")
    await expect(row).to_contain_text("in 29 d")
    await expect(row).to_contain_text("website")
    await expect(row).to_contain_text("never")
    assert await page.evaluate(_EVERYWHERE, secret) == 0
    assert await _is_valid(workplace, secret)
    listed = await workplace.client.sdk.get("/v1/api_keys", cast_to=dict[str, Any])
    created = next(each for each in listed["data"] if each["name"] == "build job")
    assert (created["member_id"], created["roles"]) == (member["id"], ["operator", "release_manager"])
    assert created["project_ids"] == [project["id"]]


async def test_a_refused_key_keeps_the_form(workplace: Workplace) -> None:
    workplace.expect("409")
    member = await _post(workplace, "/v1/members", {"name": "Ben Ode"})
    await _create_key(workplace, "laptop", member_id=member["id"])
    window = await _open(workplace)
    page = window.page
    await page.get_by_role("button", name="New API key").click()
    form = page.get_by_role("dialog", name="New API key")
    await form.get_by_label("Name", exact=True).fill("laptop")
    await form.get_by_label("Member", exact=True).fill("Ben")
    await page.get_by_role("option", name="Ben Ode").click()
    await form.get_by_label("Expires").click()
    await page.get_by_role("option", name="After a date").click()
    await form.get_by_label("Last day").fill("2020-02-29")
    await form.get_by_role("button", name="Create key").click()
    await expect(form.get_by_text("Choose today or a later day.")).to_be_visible()
    await form.get_by_label("Last day").fill("2999-12-31")
    await form.get_by_role("button", name="Create key").click()
    await expect(form.get_by_text("This member already has an API key with the name 'laptop'.")).to_be_visible()
    await expect(form.get_by_label("Name", exact=True)).to_have_value("laptop")


@pytest.mark.action("settings.revoke-key", "settings.show-revoked-keys")
@pytest.mark.timing
async def test_keys_in_every_state_and_revoking(workplace: Workplace) -> None:
    active = await _create_key(workplace, "active one")
    past = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    await _create_key(workplace, "expired one", expires_at=past)
    revoked = await _create_key(workplace, "revoked one")
    await _post(workplace, f"/v1/api_keys/{revoked['id']}/revoke")
    window = await _open(workplace)
    page = window.page
    await expect(_rows(page)).to_have_count(3)
    await expect(_rows(page).filter(has_text="expired one").locator("svg.lucide-clock")).to_be_visible()
    await expect(_rows(page).filter(has_text="expired one")).to_contain_text("expired")
    for key, selected in [("j", 0), ("j", 1), ("j", 2), ("k", 1)]:
        await page.keyboard.press(key)
        await expect(_rows(page).nth(selected)).to_have_attribute("aria-current", "true")
    await expect(_rows(page).nth(1)).to_contain_text("active one")
    await expect(page).to_have_url(re.compile(f"selected={active['id']}"))
    await page.keyboard.press("Shift+D")
    question = page.get_by_role("dialog", name="Revoke “active one”?")
    await expect(question).to_contain_text("stop working within 5 seconds, and their open streams end")
    await question.get_by_role("button", name="Cancel").click()
    assert await _is_valid(workplace, active["secret"])
    await page.keyboard.press("Shift+D")
    await question.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("API key revoked")).to_be_visible()
    await expect(_rows(page)).to_have_count(2)
    await wait_until(lambda: _is_refused(workplace, active["secret"]), 60)
    await window.run_action("Show revoked API keys")
    await expect(_rows(page)).to_have_count(4)
    for name in ("active one", "revoked one"):
        row = _rows(page).filter(has_text=name)
        await expect(row.get_by_text("revoked", exact=True)).to_be_visible()
        await expect(row.locator("svg.lucide-ban")).to_be_visible()
        await expect(row.get_by_role("button", name=f"More for {name}")).to_have_count(0)
    await page.get_by_role("switch", name="Show revoked").click()
    await expect(_rows(page)).to_have_count(2)


@pytest.mark.action("settings.rotate-key")
async def test_a_secret_is_replaced(workplace: Workplace) -> None:
    key = await _create_key(workplace, "laptop")
    window = await _open(workplace, f"{SECTION}&selected={key['id']}")
    page = window.page
    await expect(_rows(page).filter(has_text="laptop")).to_have_attribute("aria-current", "true")
    await page.keyboard.press("r")
    question = page.get_by_role("dialog", name="Replace the secret of “laptop”?")
    await question.get_by_role("button", name="Replace the secret").click()
    shown = page.get_by_role("dialog", name="New secret of “laptop”")
    secret = await shown.get_by_label("Secret", exact=True).inner_text()
    assert secret != key["secret"]
    assert (await _is_valid(workplace, secret), await _is_valid(workplace, key["secret"])) == (True, False)
    await shown.get_by_role("button", name="Close").click()
    await expect(shown).to_have_count(0)
    assert await page.evaluate(_EVERYWHERE, secret) == 0


async def test_revoking_the_key_in_use_signs_out(workplace: Workplace) -> None:
    workplace.expect("401")
    window = await _open(workplace)
    page = window.page
    await expect(_rows(page)).to_have_count(1)
    await page.get_by_role("button", name="More for ").click()
    await expect(page.get_by_role("menuitem", name="Replace the secret")).to_have_count(0)
    await page.get_by_role("menuitem", name="Revoke").click()
    await expect(page.get_by_text("revoking it signs you out")).to_be_visible()
    await page.get_by_role("button", name="Revoke").click()
    await expect(page).to_have_url(re.compile("/sign-in"))


async def test_others_see_why_they_cannot_see_keys_and_what_they_can_do(workplace: Workplace) -> None:
    window = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = window.page
    await window.open_page(SECTION)
    await expect(page.get_by_text("You cannot see API keys")).to_be_visible()
    await expect(page.get_by_text("This needs the role admin, and you have viewer.")).to_be_visible()
    await expect(page.get_by_text(f"footplate login {window.base_url}")).to_be_visible()
    await expect(page.get_by_role("button", name="New API key")).to_have_count(0)
    project = await _post(workplace, "/v1/projects", {"name": "website", "path": "website"})
    restricted = await _create_key(workplace, "ci", roles=["admin"], project_ids=[project["id"]])
    other = await workplace.sign_in(key=restricted["secret"])
    await other.open_page(SECTION)
    await expect(other.page.get_by_text("an API key that is restricted to some projects")).to_be_visible()


async def test_keys_that_cannot_be_loaded_or_changed(workplace: Workplace) -> None:
    workplace.expect("500")
    key = await _create_key(workplace, "laptop")
    window = await workplace.sign_in()
    page = window.page
    refusal = {"error": {"type": "api_error", "message": "The database does not respond.", "help": "Try again."}}
    await page.route(re.compile("/v1/api_keys"), lambda route: route.fulfill(status=500, json=refusal))
    await window.open_page(f"{SECTION}&selected={key['id']}")
    await expect(page.get_by_role("alert")).to_contain_text("API keys could not be loaded")
    await expect(page.get_by_role("alert")).to_contain_text("The database does not respond.")
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(_rows(page)).to_have_count(2)
    await page.route(re.compile("/v1/api_keys/.*/revoke"), lambda route: route.fulfill(status=500, json=refusal))
    await page.keyboard.press("Shift+D")
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("“laptop” was not revoked").first).to_be_visible()
    await expect(page.get_by_text("The database does not respond. Try again.").first).to_be_visible()
    assert await _is_valid(workplace, key["secret"])


async def test_hostile_names_on_a_phone(workplace: Workplace) -> None:
    for index, name in enumerate(("script", "image with a handler", "bidirectional")):
        member = await _post(workplace, "/v1/members", {"name": f"{TEXTS[name]} {index}"})
        await _create_key(workplace, TEXTS[name], member_id=member["id"])
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(SECTION)
    await expect(_rows(page)).to_have_count(4)
    await expect(_rows(page).filter(has_text="<script>")).to_have_count(1)
    row = _rows(page).filter(has_text="gpj.exe")
    await expect(row.get_by_text("U+202E").first).to_be_visible()
    await row.get_by_role("button", name="More for").tap()
    await page.get_by_role("menuitem", name="Revoke").tap()
    question = page.get_by_role("dialog")
    await expect(question.get_by_text("U+202E").first).to_be_visible()
    await question.get_by_role("button", name="Revoke").tap()
    await expect(_rows(page)).to_have_count(3)
    assert await page.evaluate("window.__executed") is None
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    await page.get_by_role("button", name="New API key").tap()
    form = page.get_by_role("dialog", name="New API key")
    await form.get_by_label("Name", exact=True).fill("phone")
    await form.get_by_role("button", name="Create key").tap()
    await expect(page.get_by_label("Secret", exact=True)).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    await page.get_by_role("button", name="I have copied it").tap()
    await expect(_rows(page)).to_have_count(4)
