"""The frame of the dashboard: signing in and out, navigation, palette, themes, links, and what it loads at first."""

import re

import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from playwright.async_api import Route, expect

from footplate.api.routes.dashboard import DIRECTORY
from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import text

PAGES = {
    "inbox": "Inbox",
    "sessions": "Sessions",
    "schedules": "Schedules",
    "usage": "Usage",
    "policy": "Policy",
    "settings": "Settings",
    "health": "Health",
}


@pytest.mark.smoke
@pytest.mark.action("global.sign-out")
async def test_signing_in_and_out(workplace: Workplace) -> None:
    window = await workplace.sign_in(path="/sessions?state=failed")
    page = window.page
    await expect(page).to_have_url(f"{window.base_url}/sessions?state=failed")
    cookies = await window.context.cookies()
    assert [(cookie.get("httpOnly"), cookie.get("sameSite")) for cookie in cookies] != []
    assert all(cookie.get("httpOnly") for cookie in cookies)
    await page.get_by_role("button", name="Your menu").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    await page.goto(f"{window.base_url}/inbox")
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_a_page_that_opens_during_a_sign_out_reads_nothing(workplace: Workplace) -> None:
    """Nothing that it would read arrives: the server refuses it as soon as the sign-out has happened."""
    window = await workplace.sign_in(path="/sessions")
    page = window.page

    async def respond_late(route: Route) -> None:
        response = await route.fetch()
        await page.keyboard.press("g")
        await page.keyboard.press("h")
        await expect(page).to_have_url(f"{window.base_url}/health")
        await route.fulfill(response=response)

    await page.route("**/v1/browser_sessions/current", respond_late)
    await page.get_by_role("button", name="Your menu").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_an_invalid_key_is_refused_with_the_reason(workplace: Workplace) -> None:
    workplace.expect(r"401.*browser_sessions")
    window = await workplace.open_window()
    page = window.page
    await page.goto(f"{window.base_url}/sign-in")
    await page.get_by_label("API key").fill("fp_wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("This key is not valid")).to_be_visible()


@pytest.mark.action(
    "global.inbox",
    "global.sessions",
    "global.schedules",
    "global.usage",
    "global.policy",
    "global.settings",
    "global.health",
    "global.new-session",
)
async def test_every_page_opens_by_keyboard(window: DashboardWindow) -> None:
    page = window.page
    for keys, path in [
        ("gs", "/sessions"),
        ("gc", "/schedules"),
        ("gu", "/usage"),
        ("gp", "/policy"),
        ("gt", "/settings"),
        ("gh", "/health"),
        ("n", "/new"),
        ("gi", "/inbox"),
    ]:
        await page.get_by_role("heading", level=1).click()
        for key in keys:
            await page.keyboard.press(key)
        await expect(page).to_have_url(re.compile(f"{path}$"))


@pytest.mark.action("global.palette", "global.shortcuts", "global.copy-link")
async def test_palette_shortcuts_and_link(window: DashboardWindow) -> None:
    page = window.page
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill("usage")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/usage$"))
    assert "global.palette" in await window.list_actions()
    await page.keyboard.press("y")
    await expect(page.get_by_text("Link copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == page.url


@pytest.mark.action("global.theme-light", "global.theme-dark", "global.theme-system")
async def test_the_theme_stays_after_a_reload(window: DashboardWindow) -> None:
    page = window.page
    for query, theme in [("dark", "dark"), ("light", "light"), ("theme of", "light"), ("dark theme", "dark")]:
        await page.keyboard.press("Control+k")
        await page.get_by_placeholder("Search actions and sessions").fill(query)
        await page.keyboard.press("Enter")
        await expect(page.locator("html")).to_have_attribute("data-theme", theme)
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.smoke
async def test_a_phone_reaches_every_page_with_the_bar_at_the_bottom(workplace: Workplace) -> None:
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    for name, title in PAGES.items():
        bar = page.get_by_role("navigation", name="Main").last
        link = bar.get_by_role("link", name=title)
        if await link.count():
            await link.tap()
        else:
            await bar.get_by_role("button", name="More").tap()
            await page.get_by_role("menuitem", name=title).tap()
        await expect(page).to_have_url(re.compile(f"/{name}"))
        await expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE[0], f"{name} is {width} px wide"


async def test_the_first_load_is_small(workplace: Workplace) -> None:
    """Compressed bytes of everything that the inbox loads before it is live."""
    window = await workplace.open_window()
    loaded: dict[str, int] = {}

    def note(name: str) -> None:
        path = DIRECTORY / f"{name}.br"
        loaded[name] = (path if path.is_file() else DIRECTORY / name).stat().st_size

    window.page.on(
        "response",
        lambda response: (
            note(response.url.removeprefix(window.base_url).lstrip("/"))
            if re.search(r"\.(js|css|svg)$", response.url)
            else None
        ),
    )
    await window.page.goto(f"{window.base_url}/inbox")
    await window.page.get_by_label("API key").fill(workplace.key)
    await window.page.keyboard.press("Enter")
    await window.wait_until_live()
    assert sum(loaded.values()) < 400_000, loaded


@pytest.mark.timing
async def test_a_killed_api_is_found_again_without_a_reload(workplace: Workplace) -> None:
    workplace.expect(r"ERR_|502|503")
    window = await workplace.sign_in(path="/sessions")
    await window.page.evaluate("window.isSamePage = true")
    await workplace.cluster.kill_api(0)
    await window.page.wait_for_selector("[data-feed-state=offline]", state="attached")
    await workplace.cluster.restart_api(0)
    await window.wait_until_live()
    await workplace.start_session(replies([text("Hello.")]), title="Begun after the restart")
    await expect(window.page.get_by_text("Begun after the restart").first).to_be_visible()
    assert await window.page.evaluate("window.isSamePage")


async def test_a_failed_sign_in_is_explained(workplace: Workplace) -> None:
    window = await workplace.open_window()
    await window.page.goto(f"{window.base_url}/sign-in?error=no_role")
    await expect(window.page.get_by_role("alert")).to_contain_text("None of your groups gives you a role here")


async def test_a_lost_network_is_shown_and_what_failed_is_read_again(workplace: Workplace) -> None:
    workplace.expect("ERR_INTERNET_DISCONNECTED|dynamically imported module|The server cannot be reached")
    await workplace.start_session(replies([text("Hello.")]), title="Here again")
    window = await workplace.sign_in()
    page = window.page
    # A page that was open before needs no more code.
    await page.get_by_role("link", name="Sessions").first.click()
    await expect(page.get_by_text("Here again").first).to_be_visible()
    await page.get_by_role("link", name="Inbox").first.click()
    await window.context.set_offline(True)
    await page.wait_for_selector("[data-feed-state=offline]", state="attached")
    await page.get_by_role("link", name="Sessions").first.click()
    await page.get_by_role("tab", name="Done").click()
    await expect(page.get_by_text("The sessions could not be loaded")).to_be_visible()
    await page.get_by_role("link", name="Usage").first.click()
    await expect(page.get_by_text("The page could not be loaded")).to_be_visible()
    await window.context.set_offline(False)
    await expect(page.get_by_text("Days are in UTC")).to_be_visible()
    await window.wait_until_live()
    await page.go_back()
    await expect(page.get_by_text("Here again").first).to_be_visible()


async def test_a_tab_without_a_network_loads_when_it_is_back(workplace: Workplace) -> None:
    workplace.expect("ERR_INTERNET_DISCONNECTED|The server cannot be reached")
    session_id = await workplace.start_session(replies([text("Hello.")]), title="On a train")
    window = await workplace.sign_in(path=f"/sessions/{session_id}")
    page = window.page
    await expect(page.get_by_text("Hello.").first).to_be_visible()
    await page.evaluate("window.isSamePage = true")
    await window.context.set_offline(True)
    await page.wait_for_selector("[data-feed-state=offline]", state="attached")
    await page.get_by_role("tab", name="Forks").click()
    failure = page.get_by_role("alert").filter(has_text="Forks could not be loaded")
    await expect(failure).to_contain_text("this part loads by itself when it is back")
    await failure.get_by_role("button", name="Try again").click()
    await expect(failure).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_text("The palette could not be loaded").first).to_be_visible()
    await window.context.set_offline(False)
    await expect(failure).to_have_count(0)
    await expect(page.get_by_text("No forks")).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_placeholder("Search actions and sessions")).to_be_visible()
    assert await page.evaluate("window.isSamePage")


async def test_code_that_fails_with_a_network_is_tried_again_and_then_needs_a_reload(workplace: Workplace) -> None:
    workplace.expect("ERR_FAILED|The connection was lost for a moment")
    window = await workplace.sign_in(path="/settings?section=members")
    page = window.page
    await expect(page.get_by_role("list", name="Members")).to_be_visible()
    await page.route("**/assets/*", lambda route: route.abort())
    await page.get_by_role("navigation", name="Sections").get_by_role("link", name="Teams").click()
    failure = page.get_by_role("alert").filter(has_text="Teams could not be loaded")
    await failure.get_by_role("button", name="Try again").click()
    await page.unroute("**/assets/*")
    await failure.get_by_role("button", name="Reload the page").click()
    await expect(page.get_by_text("No teams yet")).to_be_visible()


async def test_an_arabic_title_is_cut_at_its_end(workplace: Workplace) -> None:
    title = "\u062a\u062d\u062f\u064a\u062b " * 60
    session_id = await workplace.start_session(replies([text("Hello.")]), title=title.strip())
    page = (await workplace.sign_in(path=f"/sessions/{session_id}")).page
    shown = page.get_by_role("heading", level=1).locator("bdi")
    await expect(shown).to_contain_text("\u062a\u062d\u062f\u064a\u062b")
    await expect(shown).to_have_css("text-overflow", "ellipsis")
    # It begins at the right edge and goes beyond the left one.
    assert await shown.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert await shown.evaluate("element => element.scrollWidth > element.clientWidth")


async def test_a_new_session_is_one_click_away_on_every_page(window: DashboardWindow) -> None:
    await window.page.get_by_role("navigation", name="Main").get_by_role("link", name="New session").click()
    await expect(window.page).to_have_url(re.compile("/new$"))
