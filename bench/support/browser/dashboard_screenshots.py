"""Takes a screenshot of each page of the dashboard, light and dark, on a desktop and a phone:
`python -m bench.support.browser.dashboard_screenshots [--output DIRECTORY] [PAGE …]`. It starts a server with realistic
content of its own. The images are WebP, so that a repository can hold them.
"""

import argparse
import asyncio
import base64
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, get_args

from playwright.async_api import Page, async_playwright, expect

from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_pages import create_pages_content, list_pages, open_listed_page
from bench.support.browser.dashboard_window import DESKTOP, FLAGS, PATIENCE_MS, PHONE, DashboardWindow, Theme, Workplace
from bench.support.dashboard_content import open_content_cluster

OUTPUT: Final = Path("docs/dashboard")
_QUALITY: Final = 60
"""Of WebP, from 0 to 100. Text is still sharp."""
_SETTLED_MS: Final = 800
_FRAME_MS: Final = 250
_MAX_FRAMES: Final = 6
SIZES: Final = {"desktop": DESKTOP, "phone": PHONE}
NOT_SHOWN: Final = frozenset({"design", "device-refused"})
"""A page for contributors, and an error."""
_SHELL_MS: Final = 180_000
_LAST_OUTPUT: Final = "FAILED (failures=1)"
_COMMANDS: Final = ("git log --oneline", "python3 build.py", "python3 -m unittest")


async def _work_in_the_terminal(window: DashboardWindow) -> None:
    """Opens a shell and types commands. A window that is opened later shows the same shell."""
    page = window.page
    state, screen = page.get_by_role("status", name="Terminal"), page.locator(".xterm-rows")
    await expect(state).to_contain_text(re.compile("No shell is open|The shell opens|You can type|You watch"))
    if "No shell is open" in await state.inner_text():
        await page.keyboard.press("s")
    await expect(state).to_contain_text(re.compile("You can type|You watch"), timeout=_SHELL_MS)
    await expect(screen).to_contain_text("$")
    if _LAST_OUTPUT not in await screen.inner_text():
        if "You watch" in await state.inner_text():
            await page.keyboard.press("w")
            await expect(state).to_contain_text("You can type")
        for command in _COMMANDS:
            await page.keyboard.type(command)
            await page.keyboard.press("Enter")
    await expect(screen).to_contain_text(_LAST_OUTPUT)


async def _change_a_rule(window: DashboardWindow) -> None:
    page = window.page
    asked = page.get_by_label("Ask", exact=True)
    await expect(asked).to_have_value(re.compile("git push"))
    await asked.fill(f"{await asked.input_value()}\nBash(sed *)")
    await page.get_by_role("button", name="Test on past calls").click()
    await expect(page.get_by_text(re.compile("would be decided"))).to_be_visible()


PREPARATIONS: Final[Mapping[str, Callable[[DashboardWindow], Awaitable[None]]]] = {
    "session-terminal": _work_in_the_terminal,
    "policy-edit": _change_a_rule,
}
"""What is done on a page before its screenshot."""


async def take_screenshot(page: Page, path: Path) -> None:
    """Takes it again until two are the same: on a busy machine, a frame may be painted in part."""
    session = await page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": _QUALITY}
    before = ""
    for _ in range(_MAX_FRAMES):
        taken = (await session.send("Page.captureScreenshot", options))["data"]
        if taken == before:
            break
        before = taken
        await page.wait_for_timeout(_FRAME_MS)
    await asyncio.to_thread(path.write_bytes, base64.b64decode(before))
    await session.detach()


async def take_screenshots(output: Path, wanted: Sequence[str]) -> None:
    await asyncio.to_thread(output.mkdir, parents=True, exist_ok=True)
    async with AsyncExitStack() as closing:
        cluster = await closing.enter_async_context(open_content_cluster())
        pages = list_pages(await create_pages_content(cluster))
        pages = {name: address for name, address in pages.items() if name not in NOT_SHOWN}
        if unknown := set(wanted) - set(pages):
            sys.exit(f"There is no page {', '.join(sorted(unknown))}. The pages are {', '.join(pages)}.")
        playwright = await closing.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(FLAGS))
        closing.push_async_callback(browser.close)
        expect.set_options(timeout=PATIENCE_MS)
        workplace = await Workplace.open(cluster, browser, closing)
        for size_name, size in SIZES.items():
            window = await workplace.sign_in(size=size, key=cluster.key)
            await window.context.grant_permissions(["notifications"])
            for name, address in pages.items():
                if not wanted or name in wanted:
                    await take_both_themes(window, name, address, output, size_name)
            await window.context.close()


async def take_both_themes(window: DashboardWindow, name: str, address: str, output: Path, size_name: str) -> None:
    """Opens the page once: it changes its theme while it is open."""
    first, *_ = get_args(Theme)
    await window.page.emulate_media(color_scheme=first, reduced_motion="reduce")
    await open_listed_page(window, address)
    if prepare := PREPARATIONS.get(name):
        await prepare(window)
    await expect(window.page.get_by_text("Loading …")).to_have_count(0)
    for theme in get_args(Theme):
        await window.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await window.page.wait_for_timeout(_SETTLED_MS)
        path = output / f"{name}-{size_name}-{theme}.webp"
        await take_screenshot(window.page, path)
        print(f"{path} {path.stat().st_size // 1024} KB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes a screenshot of each page of the dashboard.")
    parser.add_argument("pages", nargs="*", help="names of pages; without them, all")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    asyncio.run(take_screenshots(arguments.output, arguments.pages))


if __name__ == "__main__":
    main()
