"""Settings: its sections, by keyboard, palette and on a phone."""

import re

import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from playwright.async_api import expect

SECTIONS = {
    "agents": "Agents",
    "environments": "Environments",
    "projects": "Projects",
    "webhooks": "Webhooks",
    "keys": "API keys",
    "members": "Members",
    "teams": "Teams",
    "limits": "Limits",
}


@pytest.mark.action(
    "settings.agents",
    "settings.environments",
    "settings.projects",
    "settings.webhooks",
    "settings.keys",
    "settings.members",
    "settings.teams",
    "settings.limits",
)
async def test_the_palette_opens_every_section_from_any_page(window: DashboardWindow) -> None:
    page = window.page
    for section, title in SECTIONS.items():
        await window.run_action(f"Settings: {title}")
        await expect(page).to_have_url(re.compile(f"/settings\\?section={section}$"))
        await expect(page.get_by_role("region", name=title)).to_be_visible()
        await expect(page.get_by_role("navigation", name="Sections").get_by_role("link", name=title)).to_have_attribute(
            "aria-current", "page"
        )


@pytest.mark.action("settings.next-section", "settings.previous-section")
async def test_sections_by_keyboard_and_back(window: DashboardWindow) -> None:
    page = window.page
    await window.open_page("/settings?section=keys")
    await expect(page.get_by_role("region", name="API keys")).to_be_visible()
    await page.keyboard.press("]")
    await expect(page).to_have_url(re.compile("section=members$"))
    await page.keyboard.press("[")
    await page.keyboard.press("[")
    await expect(page).to_have_url(re.compile("section=webhooks$"))
    await page.go_back()
    await expect(page).to_have_url(re.compile("section=keys$"))


async def test_a_phone_chooses_the_section_in_a_list(workplace: Workplace) -> None:
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page("/settings")
    await page.get_by_role("combobox", name="Section").tap()
    await page.get_by_role("option", name="API keys").tap()
    await expect(page).to_have_url(re.compile("section=keys$"))
    await expect(page.get_by_role("region", name="API keys")).to_be_visible()
