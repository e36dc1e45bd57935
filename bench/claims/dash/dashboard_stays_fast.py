"""The dashboard stays fast at size: 100,000 sessions scroll with no task over 50 ms.

The sessions are rows of the database, and the list is the real page in Chromium. It is scrolled from its start while
further pages are read, then at its end with all sessions loaded, while a session changes, and with the keyboard.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

from playwright.async_api import async_playwright

from bench.prove.figure import Figure, NotHeld, require, time_limit
from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_window import FLAGS, DashboardWindow, Workplace
from bench.support.browser.long_tasks import LONG_MS, observe_long_tasks, scroll, scroll_until, take_long_tasks
from bench.support.cluster import Cluster, open_cluster
from bench.support.scale.listed_sessions import insert_listed_sessions

_SESSIONS: Final = 100_000
_SAMPLE: Final = 2_000
_ROUNDS: Final = 5
_ROW_PIXELS: Final = 36
_PIXELS_PER_FRAME: Final = 240
_SECONDS: Final = 5.0
_LOADING_SECONDS: Final = 900.0
_KEYS: Final = 100
_LIST: Final = "[data-testid=rows]"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    sessions, rounds = (_SAMPLE, 1) if quick else (_SESSIONS, _ROUNDS)
    longest: list[float] = []
    frames: list[float] = []
    count = 0
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(open_cluster(workers=1))
        workplace = await _open_workplace(cluster, exits)
        session_id = await workplace.client.session(title="Template")
        await insert_listed_sessions(cluster.settings.database_url, session_id, sessions)
        for _ in range(rounds):
            window = await workplace.sign_in()
            tasks, rate = await _scroll_list(workplace, window, session_id, sessions)
            await window.context.close()
            longest.append(max(tasks, default=0.0))
            frames.append(rate)
            count += len(tasks)
    limit = time_limit(LONG_MS, quick=quick)
    median = sorted(longest)[len(longest) // 2]
    return Figure(
        headline=f"{sessions:,} sessions scroll: longest task {median:.0f} ms",
        summary=f"{sessions:,} sessions are read and scrolled {rounds} times, at their start and with all of them "
        f"loaded, while a session changes and with the keyboard: {count} tasks over {LONG_MS} ms; the longest one of a "
        f"round takes {median:.0f} ms in the median (0: none was over {LONG_MS} ms), at {min(frames):.0f} frames a "
        "second or more.",
        holds=median <= limit,
        details={"sessions": sessions, "longest_ms": [*longest], "long_tasks": count, "frames_per_second": [*frames]},
    )


async def _open_workplace(cluster: Cluster, exits: AsyncExitStack) -> Workplace:
    executable = find_browser()
    if executable is None:
        raise NotHeld("Chromium is not installed")
    playwright = await exits.enter_async_context(async_playwright())
    browser = await playwright.chromium.launch(executable_path=executable, headless=True, args=list(FLAGS))
    exits.push_async_callback(browser.close)
    return await Workplace.open(cluster, browser, exits)


async def _scroll_list(
    workplace: Workplace, window: DashboardWindow, session_id: str, sessions: int
) -> tuple[list[float], float]:
    """Returns the long tasks in milliseconds, and the lowest frame rate."""
    page = window.page
    await window.open_page("/sessions")
    await page.wait_for_selector("[data-session]")
    await observe_long_tasks(page)
    start = await scroll(page, _LIST, seconds=_SECONDS, pixels=_PIXELS_PER_FRAME)
    height = sessions * _ROW_PIXELS
    reached = await scroll_until(page, _LIST, height=height, seconds=_LOADING_SECONDS)
    require(holds=reached >= height, otherwise=f"only {reached // _ROW_PIXELS:,} of {sessions:,} sessions were read")
    loading = await take_long_tasks(page)
    up = await scroll(page, _LIST, seconds=_SECONDS, pixels=-_PIXELS_PER_FRAME)
    await page.evaluate(f"document.querySelector('{_LIST}').scrollTop = 0")
    await asyncio.gather(
        workplace.client.sdk.post(f"/v1/sessions/{session_id}", body={"title": "Changed"}, cast_to=object),
        page.get_by_text("Changed").first.wait_for(),
    )
    for _ in range(_KEYS):
        await page.keyboard.press("j")
    other = await take_long_tasks(page)
    await workplace.client.sdk.post(f"/v1/sessions/{session_id}", body={"title": "Template"}, cast_to=object)
    tasks = [*start.long_tasks, *loading, *up.long_tasks, *other]
    return tasks, min(start.frames_per_second, up.frames_per_second)
