"""Hostile text from models, tools, files and names runs nothing in the dashboard, contacts nobody, and hides nothing.

Each text is at once the title of a session, the name of its agent, what the model thinks and writes, the output of a
command, the name and the content of a file, and a command that needs approval. Chromium opens each page that shows it.
"""

import re
import secrets
import shlex
import time
from contextlib import AsyncExitStack
from typing import Any

from playwright.async_api import Page, Request, async_playwright

from bench.prove.figure import Figure, require, time_limit
from bench.support.browser.chromium import find_browser
from bench.support.browser.dashboard_window import FLAGS, Workplace
from bench.support.browser.hostile_content import TEXTS
from bench.support.clients import TOOLSET
from bench.support.cluster import open_cluster
from footplate.stack.orphan_processes import wait_until
from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import text, thinking, tool

_MIN_CASES = 80
_QUICK_STEP = 6
_SETTLE_MS = 1000
_RESPONSE_SECONDS = 2.0
"""Within which a page must respond after it has shown the content, on an idle machine."""
_MAX_NAME, _MAX_TITLE, _MAX_COMMAND, _MAX_MESSAGE = 200, 1900, 60_000, 100_000
_MAX_FILE_NAME_BYTES = 200
_PERMISSIONS = {"ask": ["Bash(echo *)"], "allow": ["Bash(*)", "Write"]}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    chosen = dict(list(TEXTS.items())[:: _QUICK_STEP if quick else 1])
    faults: list[str] = []
    cases = 0
    limit = time_limit(_RESPONSE_SECONDS, quick=quick)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(open_cluster())
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(FLAGS))
        stack.push_async_callback(browser.close)
        workplace = await Workplace.open(cluster, browser, stack)
        sessions = {name: await _start_session(workplace, hostile) for name, hostile in chosen.items()}
        window = await workplace.sign_in()
        foreign: list[str] = []
        window.context.on("request", lambda request: _note_foreign(foreign, request, window.base_url))
        window.page.on("dialog", lambda dialog: foreign.append(f"dialog {dialog.message}"))
        for name, session_id in sessions.items():
            await _wait_for_approval(workplace, session_id)
            for page_name, path in (await _list_pages(workplace, session_id)).items():
                await window.page.goto(window.base_url + path)
                seconds = await _settle(window.page)
                found = await _find_faults(window.page, page_name, _command(chosen[name]))
                found += [f"took {seconds:.1f} s to respond"] if seconds > limit else []
                found += foreign + workplace.problems
                faults += [f"{name} on {page_name}: {fault[:300]}" for fault in found]
                foreign.clear()
                workplace.problems.clear()
                cases += 1
    for fault in faults:
        print(f"  {fault}")
    return Figure(
        headline=f"{cases} cases of hostile content: {len(faults)} faults",
        summary=f"{len(chosen)} hostile texts on 5 pages ({cases} cases): {len(faults)} executed, contacted "
        f"another server, froze the page or hid a call{f'; the first: {faults[0]}' if faults else ''}",
        holds=not faults and (quick or cases >= _MIN_CASES),
        details={"texts": [*chosen], "faults": [*faults]},
    )


async def _start_session(workplace: Workplace, hostile: str) -> str:
    """Starts a session that ends up waiting for the approval of a command with the text."""
    file_name = _fit_bytes(hostile.replace("/", "\u2215").replace("\n", " "), _MAX_FILE_NAME_BYTES)
    script = replies(
        [
            *(thinking(hostile), text(hostile)),
            tool("write", {"file_path": file_name, "content": hostile}),
            tool("bash", {"command": f"cat {shlex.quote(f'./{file_name}')}"}),
        ],
        [text(hostile), tool("bash", {"command": _command(hostile)})],
    )
    agent = await workplace.client.agent(
        name=hostile[:_MAX_NAME], tools=[TOOLSET], extra_body={"harness": "native", "permissions": _PERMISSIONS}
    )
    name = f"hostile-{secrets.token_hex(6)}"
    await workplace.cluster.model.install(name, script)
    session_id = await workplace.client.session(agent, title=hostile[:_MAX_TITLE])
    await workplace.client.send_text(session_id, f"{hostile[:_MAX_MESSAGE]}\n[[script:{name}]]")
    return session_id


def _command(hostile: str) -> str:
    return f"echo {shlex.quote(hostile[:_MAX_COMMAND])}"


def _fit_bytes(hostile: str, limit: int) -> str:
    return hostile.encode()[:limit].decode(errors="ignore")


async def _wait_for_approval(workplace: Workplace, session_id: str) -> None:
    async def is_waiting() -> bool:
        path = f"/v1/sessions/{session_id}"
        body: Any = await workplace.client.sdk.get(path, cast_to=dict[str, Any])
        return bool(body["activity"]["state"] == "waiting_for_approval")

    require(holds=await wait_until(is_waiting, 120), otherwise=f"the session {session_id} asks for no approval")


async def _list_pages(workplace: Workplace, session_id: str) -> dict[str, str]:
    listed: Any = await workplace.client.sdk.get("/v1/inbox?limit=100", cast_to=dict[str, Any])
    item = next(each["id"] for each in listed["data"] if each["session"]["id"] == session_id)
    tabs = {tab: f"/sessions/{session_id}?tab={tab}" for tab in ("conversation", "changes", "files")}
    return {"sessions": "/sessions", **tabs, "inbox": f"/inbox?item={item}"}


def _note_foreign(foreign: list[str], request: Request, base_url: str) -> None:
    if not request.url.startswith((base_url, "data:", "blob:", "about:")):
        foreign.append(f"request to {request.url}")


async def _settle(page: Page) -> float:
    """Waits until the page has shown its content. Returns the seconds in which it then responds."""
    await page.wait_for_selector("[data-feed-state=live]", state="attached")
    await page.wait_for_timeout(_SETTLE_MS)
    started = time.monotonic()
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
    return time.monotonic() - started


async def _find_faults(page: Page, page_name: str, command: str) -> list[str]:
    found = ["something was executed"] if await page.evaluate("window.__executed !== undefined") else []
    links = await page.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.protocol)")
    found += [f"a link with {each}" for each in {*links} - {"http:", "https:", "mailto:", "blob:"}]
    if page_name == "inbox":
        shown = await page.get_by_test_id("call").first.inner_text()
        if _visible(command) not in _visible(shown):
            found.append("the call is not shown whole")
    return found


def _visible(value: str) -> str:
    """Returns the letters and digits, without the marks of invisible characters."""
    return re.sub(r"[^a-zA-Z0-9]", "", re.sub(r"U\+[0-9A-F]{4,6}", "", value))
