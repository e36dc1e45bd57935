"""Settings, environments: the list, the form, what the server refuses, and deletion."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Route, expect

ENVIRONMENTS = "/settings?section=environments"


async def _create(workplace: Workplace, name: str, **config: Any) -> str:
    body = {"name": name, "config": {"type": "cloud", **config}}
    return str((await workplace.client.sdk.post("/v1/environments", body=body, cast_to=dict[str, Any]))["id"])


async def _read(workplace: Workplace, environment_id: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(f"/v1/environments/{environment_id}", cast_to=dict[str, Any])


@pytest.mark.action("settings.environment-new")
async def test_an_environment_is_created(workplace: Workplace) -> None:
    workplace.expect("400")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(ENVIRONMENTS)
    await expect(page.get_by_text("An environment says where commands run and what they reach")).to_be_visible()
    await page.keyboard.press("c")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("Give the environment a name.")).to_be_visible()
    await page.get_by_label("Name", exact=True).fill("closed")
    await page.get_by_label("Image", exact=True).fill("python:3.12")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert").filter(has_text="config.image")).to_be_visible()
    await page.get_by_label("Image", exact=True).fill("")
    await page.get_by_label("Packages of pip").fill("pytest")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert").filter(has_text="does not install packages")).to_be_visible()
    await page.get_by_label("Packages of pip").fill("")
    await page.get_by_label("Commands reach").click()
    await page.get_by_role("option", name="Only hosts that I list").click()
    await page.get_by_role("checkbox", name="The worker may also call").click()
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="closed")).to_be_visible()
    await expect(page.get_by_text("Commands reach: no network, and MCP servers.")).to_be_visible()
    found = re.search(r"item=(env_[^&]+)", page.url)
    assert found is not None
    networking = (await _read(workplace, found[1]))["config"]["networking"]
    assert (networking["type"], networking["allowed_hosts"], networking["allow_mcp_servers"]) == ("limited", [], True)


@pytest.mark.action("settings.environment-edit")
async def test_an_environment_is_edited_and_keeps_the_rest(workplace: Workplace) -> None:
    backends = await workplace.client.sdk.get("/v1/backends", cast_to=dict[str, Any])
    backend = backends["data"][0]["name"]
    environment = await _create(workplace, "old", backend=backend, networking={"type": "limited"})
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(ENVIRONMENTS)
    row = page.get_by_role("list", name="Environments").get_by_role("listitem")
    await expect(row).to_contain_text(backend)
    await expect(row).to_contain_text("no network")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await page.get_by_label("Name", exact=True).fill("new")
    await page.get_by_label("Commands reach").click()
    await page.get_by_role("option", name="As the server allows").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Commands reach: as the server allows.")).to_be_visible()
    stored = await _read(workplace, environment)
    assert (stored["name"], stored["config"]["networking"]) == ("new", {"type": "unrestricted"})
    assert stored["config"]["backend"] == backend


@pytest.mark.action("settings.environment-delete")
async def test_an_environment_is_deleted_after_a_confirmation(workplace: Workplace) -> None:
    environment = await _create(workplace, "old")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{ENVIRONMENTS}&item={environment}")
    await expect(page.get_by_role("heading", name="old")).to_be_visible()
    await page.keyboard.press("Shift+D")
    await expect(page.get_by_text("Its sessions keep the configuration that they have.")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    assert (await _read(workplace, environment))["name"] == "old"
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_text("An environment says where commands run and what they reach")).to_be_visible()
    listed = await workplace.client.sdk.get("/v1/environments", cast_to=dict[str, Any])
    assert listed["data"] == []


async def test_archived_environments_can_be_shown(workplace: Workplace) -> None:
    environment = await _create(workplace, "old")
    await workplace.client.sdk.post(f"/v1/environments/{environment}/archive", cast_to=dict[str, Any])
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{ENVIRONMENTS}&all=true")
    await expect(page.get_by_role("list", name="Environments").get_by_role("listitem")).to_contain_text("archived")
    await window.open_page(f"{ENVIRONMENTS}&item={environment}&edit=true")
    await expect(page.get_by_text("This environment is archived")).to_be_visible()


async def test_hostile_names_on_a_phone(workplace: Workplace) -> None:
    names = ("safe \u202egpj.exe", "<img src=x onerror=window.__executed=1>" + "x" * 200, "مرحبا 👩‍💻")
    for name in names:
        await _create(workplace, name)
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(ENVIRONMENTS)
    rows = page.get_by_role("list", name="Environments").get_by_role("listitem")
    await expect(rows).to_have_count(3)
    await expect(rows.filter(has_text="gpj.exe")).to_contain_text("U+202E")
    await rows.filter(has_text="onerror").get_by_role("link").tap()
    await expect(page.get_by_role("heading", name="onerror")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.evaluate("window.__executed") is None


async def test_a_failed_request_is_shown_and_tried_again(workplace: Workplace) -> None:
    workplace.expect("500")
    await _create(workplace, "plain")
    window = await workplace.sign_in()
    page = window.page

    async def fail(route: Route) -> None:
        await route.fulfill(status=500, json={})

    await page.route("**/v1/environments?*", fail)
    await window.open_page(ENVIRONMENTS)
    await expect(page.get_by_text("Environments could not be loaded")).to_be_visible()
    await page.unroute("**/v1/environments?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("link", name="plain")).to_be_visible()


async def test_a_viewer_can_look_at_environments_only(workplace: Workplace) -> None:
    environment = await _create(workplace, "plain")
    viewer = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page(ENVIRONMENTS)
    await expect(page.get_by_role("link", name="plain")).to_be_visible()
    await expect(page.get_by_text("You can only look")).to_be_visible()
    await viewer.open_page(f"{ENVIRONMENTS}&item={environment}")
    await expect(page.get_by_role("heading", name="plain")).to_be_visible()
    await expect(page.get_by_role("button", name="More")).to_have_count(0)
    await viewer.open_page(f"{ENVIRONMENTS}&item={environment}&edit=true")
    await expect(page.get_by_text("Ask an administrator for the role operator or member.")).to_be_visible()
