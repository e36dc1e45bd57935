"""Takes a screenshot of each page of the dashboard, light and dark, on a desktop and a phone:
`python -m bench.support.browser.dashboard_screenshots [--output DIRECTORY] [PAGE …]`. It starts a server with realistic
content of its own. The images are WebP, so that a repository can hold them.
"""

import argparse
import asyncio
import base64
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, get_args

from playwright.async_api import Page, async_playwright

from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_pages import create_pages_content, list_pages, open_listed_page
from bench.support.browser.dashboard_window import DESKTOP, FLAGS, PHONE, Theme, Workplace
from bench.support.dashboard_content import open_content_cluster

OUTPUT: Final = Path("docs/dashboard")
_QUALITY: Final = 60
"""Of WebP, from 0 to 100. Text is still sharp."""
_SETTLED_MS: Final = 1500
_SIZES: Final = {"desktop": DESKTOP, "phone": PHONE}


async def take_screenshot(page: Page, path: Path) -> None:
    session = await page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": _QUALITY}
    taken = await session.send("Page.captureScreenshot", options)
    await asyncio.to_thread(path.write_bytes, base64.b64decode(taken["data"]))
    await session.detach()


async def take_screenshots(output: Path, wanted: Sequence[str]) -> None:
    await asyncio.to_thread(output.mkdir, parents=True, exist_ok=True)
    async with AsyncExitStack() as closing:
        cluster = await closing.enter_async_context(open_content_cluster())
        pages = list_pages(await create_pages_content(cluster))
        if unknown := set(wanted) - set(pages):
            sys.exit(f"There is no page {', '.join(sorted(unknown))}. The pages are {', '.join(pages)}.")
        playwright = await closing.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(FLAGS))
        closing.push_async_callback(browser.close)
        workplace = await Workplace.open(cluster, browser, closing)
        for size_name, size in _SIZES.items():
            for theme in get_args(Theme):
                window = await workplace.sign_in(size=size, theme=theme, key=cluster.key)
                for name, address in pages.items():
                    if wanted and name not in wanted:
                        continue
                    await open_listed_page(window, address)
                    await window.page.wait_for_timeout(_SETTLED_MS)
                    path = output / f"{name}-{size_name}-{theme}.webp"
                    await take_screenshot(window.page, path)
                    print(f"{path} {path.stat().st_size // 1024} KB", flush=True)
                await window.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Takes a screenshot of each page of the dashboard.")
    parser.add_argument("pages", nargs="*", help="names of pages; without them, all")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    asyncio.run(take_screenshots(arguments.output, arguments.pages))


if __name__ == "__main__":
    main()
