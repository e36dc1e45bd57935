"""Takes a screenshot of each page of the dashboard, light and dark, on a desktop and a phone:
`python -m bench.support.browser.dashboard_screenshots [--output DIRECTORY] [PAGE …]`. It starts a server with realistic
content of its own. The images are WebP, so that a repository can hold them.
"""

import argparse
import asyncio
import base64
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, get_args

from playwright.async_api import Page, async_playwright

from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_window import DESKTOP, FLAGS, PHONE, Theme, Workplace
from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.dashboard_content import create_content, open_content_cluster

OUTPUT: Final = Path("docs/dashboard")
_QUALITY: Final = 60
"""Of WebP, from 0 to 100. Text is still sharp."""
_SETTLED_MS: Final = 1500
_SIZES: Final = {"desktop": DESKTOP, "phone": PHONE}
_PIPELINE: Final[list[dict[str, Any]]] = [
    {"kind": "shell", "name": "build", "command": "make build || echo built"},
    {"kind": "shell", "name": "tests", "command": "echo '2 failed, 5 passed'; exit 1", "on_failure": "continue"},
    {
        "kind": "parallel",
        "name": "attempts",
        "branches": "best",
        "check": "grep -q 42 answer",
        "sessions": [{"name": "small", "shell": "echo 1 > answer"}, {"name": "clear", "shell": "echo 42 > answer"}],
    },
    {"kind": "external", "name": "review", "instructions": "Read the changes, and say whether they can be merged."},
    {"kind": "prompt", "name": "fix", "content": "Make the tests pass. They report:\n${steps.tests.stdout}"},
    {"kind": "merge", "name": "deliver", "into": "release", "message": "Make the tests pass"},
]


def list_pages(ids: Mapping[str, str]) -> dict[str, str]:
    """Returns the address of each page by the name of its image. `ids`: those of the sessions by title."""
    work, pipeline = f"/sessions/{ids['Make the tests pass']}", f"/sessions/{ids['Release pipeline']}"
    return {
        "inbox": "/inbox",
        "sessions": "/sessions",
        "new-session": "/new",
        "session-conversation": work,
        "session-changes": f"{work}?tab=changes",
        "session-files": f"{work}?tab=files",
        "session-terminal": f"{work}?tab=terminal",
        "session-steps": f"{pipeline}?tab=steps",
        "session-children": f"{pipeline}?tab=children",
        "session-forks": f"{work}?tab=forks",
        "schedules": "/schedules",
        "usage": "/usage",
        "policy": "/policy",
        "settings": "/settings",
        "health": "/health",
    }


async def add_content(cluster: Cluster) -> dict[str, str]:
    """Creates the sessions of the dashboard's content, and a queue and forks for the tabs that show them."""
    ids = await create_content(cluster)
    async with Client(cluster) as client:

        async def post(path: str, body: dict[str, Any]) -> Any:
            return await client.sdk.post(path, body=body, cast_to=dict[str, Any])

        original = ids["Make the tests pass"]
        first = await post(f"/v1/sessions/{original}/fork", {"title": "Fix it with statistics.median"})
        await post(f"/v1/sessions/{first['id']}/fork", {"title": "Explain it"})
        await post(f"/v1/sessions/{original}/fork", {"title": "Continue with the mean"})
        allows = {"harness": "native", "permissions": {"allow": ["Bash(*)"]}}
        pipeline = await client.session(await client.agent(extra_body=allows), title="Release pipeline")
        await post(f"/v1/sessions/{pipeline}/steps", {"steps": _PIPELINE})
    return {**ids, "Release pipeline": pipeline}


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
        pages = list_pages(await add_content(cluster))
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
                    await window.open_page(address)
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
