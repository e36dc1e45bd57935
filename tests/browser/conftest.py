"""Fixtures of the browser tests: a real cluster, Chromium, and windows that are signed in.

An error in the console, an exception in the page or a violation of its content security policy fails the test.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import pytest
import pytest_asyncio
from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_window import FLAGS, DashboardWindow, Workplace
from bench.support.cluster import Cluster, open_cluster
from playwright.async_api import Browser, async_playwright, expect

from footplate.api.routes.dashboard import DIRECTORY
from footplate.stack import Stack

_EXPECTATION_MS: Final = 30_000
"""A session starts slowly on a machine that is busy with other tests."""
SETTINGS: Final = {"FOOTPLATE_WEBHOOK_HTTP": "true", "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1"}
"""The push service of the tests is on this machine."""
expect.set_options(timeout=_EXPECTATION_MS)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    """One for all tests: each of them has an organisation of its own."""
    if not (DIRECTORY / "index.html").is_file():
        pytest.fail("The dashboard is not built. Run `just web-install web-types web-build`.")
    async with open_cluster(stack=stack, environment=SETTINGS) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    executable = find_browser()
    if executable is None:
        if os.environ.get("FOOTPLATE_TESTS_NEED_CHROMIUM"):
            pytest.fail("Chromium is not installed. Install Debian's package chromium.")
        pytest.skip("Chromium is not installed.")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, headless=True, args=list(FLAGS))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def workplace(cluster: Cluster, chromium: Browser) -> AsyncIterator[Workplace]:
    """An organisation that has nothing yet, its administrator's key, and a browser."""
    async with AsyncExitStack() as closing:
        opened = await Workplace.open(cluster, chromium, closing)
        yield opened
    assert opened.problems == []


@pytest_asyncio.fixture(loop_scope="session")
async def window(workplace: Workplace) -> DashboardWindow:
    """A window that signed in through the form, on the inbox."""
    return await workplace.sign_in()
