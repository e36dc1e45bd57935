"""No page has a serious accessibility problem, in both themes, and the keyboard reaches everything that can be clicked.

axe-core checks each page with realistic content, on a desktop and on a phone. Then the Tab key goes through the page:
every control must receive the focus, or belong to a group in which the arrow keys move it.
"""

import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from playwright.async_api import Page, async_playwright

from bench.ci.lanes import ROOT
from bench.prove.figure import Figure, require
from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_pages import create_pages_content, list_pages, open_listed_page
from bench.support.browser.dashboard_window import DESKTOP, FLAGS, PHONE, DashboardWindow, Theme, Workplace
from bench.support.dashboard_content import open_content_cluster

_AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
_THEMES: Sequence[Theme] = ("light", "dark")
_QUICK_PAGES = ("inbox", "sessions", "session-conversation", "new-session")
_SERIOUS = frozenset({"serious", "critical"})
_SETTLE_MS = 1500
_MAX_TABS = 600
_RUN_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
  ({id, impact, help, nodes}) => ({id, impact, help, nodes: nodes.slice(0, 3).map((node) => node.html.slice(0, 200))})
)"""
# Controls that the Tab key alone does not reach: arrow keys move between those of a group.
_UNREACHED = """() => {
  const grouped = "[role=tab], [role=menuitem], [role=menuitemradio], [role=option], [role=radio], [role=treeitem]";
  const controls = "a[href], button, input, select, textarea, [role=button], [role=checkbox], [role=switch]";
  return [...document.querySelectorAll(controls)].filter((element) =>
    element.checkVisibility({visibilityProperty: true}) && !element.disabled && !element.matches(grouped) &&
    !element.closest("[aria-hidden=true], [inert], [data-roving]") && element.ariaHidden !== "true" &&
    !element.dataset.focused
  ).map((element) => element.outerHTML.slice(0, 200));
}"""
# The parts of a date are several stops of one control. Focus that comes back to another control has been everywhere.
_MARK_FOCUSED = """() => {
  const element = document.activeElement;
  if (element === null || element === document.body) { return false; }
  const isSame = element === window.lastFocused;
  if (element.dataset.focused && !isSame) { return false; }
  window.lastFocused = element;
  element.dataset.focused = "yes";
  return true;
}"""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    require(holds=_AXE.is_file(), otherwise="axe-core is not installed: run `just web-install`")
    found: list[str] = []
    visits = 0
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(open_content_cluster())
        pages = list_pages(await create_pages_content(cluster))
        chosen = {name: pages[name] for name in _QUICK_PAGES} if quick else pages
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(FLAGS))
        stack.push_async_callback(browser.close)
        workplace = await Workplace.open(cluster, browser, stack)
        for theme, size in itertools.product(_THEMES, (DESKTOP, PHONE)):
            window = await workplace.sign_in(size=size, theme=theme, key=cluster.key)
            for name, path in chosen.items():
                problems = await _check(window, path, tabs=size == DESKTOP and theme == "light")
                found += [f"{name}, {theme}, {size[0]} px: {problem}" for problem in problems]
                visits += 1
            await window.context.close()
    for problem in found:
        print(f"  {problem}")
    return Figure(
        headline=f"{visits} visits of {len(chosen)} pages: {len(found)} serious findings",
        summary=f"{visits} visits of {len(chosen)} pages, in 2 themes and 2 sizes: {len(found)} serious findings or "
        f"controls without keyboard{f'; the first: {found[0]}' if found else ''}",
        holds=not found,
        details={"pages": [*chosen], "findings": [*found]},
    )


async def _check(window: DashboardWindow, path: str, *, tabs: bool) -> list[str]:
    page = window.page
    await open_listed_page(window, path)
    await page.wait_for_timeout(_SETTLE_MS)
    await page.evaluate(_AXE.read_text())
    violations: list[dict[str, Any]] = await page.evaluate(_RUN_AXE)
    found = [f"{each['id']}: {each['help']}: {each['nodes']}" for each in violations if each["impact"] in _SERIOUS]
    return [*found, *(await _find_unreached(page) if tabs else [])]


async def _find_unreached(page: Page) -> list[str]:
    await page.evaluate("document.activeElement?.blur()")
    for _ in range(_MAX_TABS):
        await page.keyboard.press("Tab")
        if not await page.evaluate(_MARK_FOCUSED):
            break
    return [f"the Tab key does not reach {html}" for html in await page.evaluate(_UNREACHED)]
