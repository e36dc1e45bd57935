"""Children and forks of a session: the tree, what came of a group, cancelling, the graph of forks, and comparing."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Locator, Page, expect

from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import text, tool

ALLOWS: dict[str, Any] = {"allow": ["Bash(*)", "Edit", "Write"]}
HOSTILE = "<script>alert(1)</script> \u202egpj.exe"


async def _post(workplace: Workplace, path: str, body: dict[str, Any] | None = None) -> Any:
    return await workplace.client.sdk.post(path, body=body or {}, cast_to=dict[str, Any])


async def _group(workplace: Workplace, *sessions: dict[str, Any], **fields: Any) -> str:
    """Creates a session with a parallel step `work`. Returns its id without waiting."""
    agent = await workplace.client.agent(extra_body={"harness": "native", "permissions": ALLOWS})
    session_id = await workplace.client.session(agent, title="Parent")
    step = {"kind": "parallel", "name": "work", "sessions": list(sessions), **fields}
    await _post(workplace, f"/v1/sessions/{session_id}/steps", {"steps": [step]})
    return session_id


async def _open(workplace: Workplace, session_id: str, tab: str, **options: Any) -> Page:
    return (await workplace.sign_in(path=f"/sessions/{session_id}?tab={tab}", **options)).page


def _children(page: Page) -> Locator:
    return page.get_by_role("list", name="Children").get_by_role("listitem")


def _forks(page: Page) -> Locator:
    return page.get_by_role("list", name="Forks").get_by_role("listitem")


async def _select(page: Page, row: Locator, key: str = "j") -> None:
    """Moves the selection by keyboard until it is on the row."""
    for _ in range(10):
        if await row.locator("[data-selected]").count():
            return
        await page.keyboard.press(key)
        await page.wait_for_timeout(100)
    raise AssertionError("the row was not reached by keyboard")


@pytest.mark.action(
    "session.next-child",
    "session.previous-child",
    "session.fold-child",
    "session.pick-child",
    "session.compare-children",
    "session.open-child",
)
async def test_the_tree_of_a_group_by_keyboard(workplace: Workplace) -> None:
    session_id = await _group(
        workplace,
        {"name": "first", "shell": "echo 1 > answer"},
        {"name": "second", "shell": "echo 42 > answer"},
        branches="best",
        check="grep -q 42 answer",
    )
    page = await _open(workplace, session_id, "children")
    await expect(_children(page).first).to_contain_text("best of the attempts · 1 of 2 completed, chosen: second")
    await expect(_children(page).nth(1)).to_contain_text("failed")
    await expect(_children(page).nth(2)).to_contain_text("taken over")
    await expect(page.get_by_text("3 sessions")).to_be_visible()
    await _select(page, _children(page).first)
    await page.keyboard.press("h")
    await expect(_children(page)).to_have_count(1)
    await page.keyboard.press("h")
    await expect(_children(page)).to_have_count(3)
    await page.keyboard.press("j")
    await page.keyboard.press("m")
    await page.keyboard.press("j")
    await page.keyboard.press("m")
    await expect(page).to_have_url(re.compile("picked="))
    await page.keyboard.press("k")
    await page.keyboard.press("c")
    await expect(page).to_have_url(re.compile(r"/compare\?sessions=sesn_\w+(,|%2C)sesn_\w+"))
    await page.go_back()
    await _select(page, _children(page).nth(1))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("first")


@pytest.mark.smoke
@pytest.mark.action("session.cancel-child")
async def test_a_child_is_cancelled_and_another_window_sees_it(workplace: Workplace) -> None:
    session_id = await _group(
        workplace, {"name": "slow", "shell": "sleep 600"}, {"name": "odd", "title": HOSTILE, "shell": "sleep 600"}
    )
    ann = await _open(workplace, session_id, "children")
    bob = await _open(workplace, session_id, "children", size=PHONE)
    slow = _children(ann).filter(has_text="slow")
    await expect(slow).to_contain_text("running")
    await expect(_children(bob).filter(has_text="slow")).to_contain_text("running")
    await _select(ann, slow)
    await ann.keyboard.press("x")
    await ann.get_by_role("button", name="Cancel the session").click()
    await expect(slow).to_contain_text("Cancelled in the dashboard")
    await expect(_children(bob).filter(has_text="slow")).to_contain_text("Cancelled in the dashboard")
    assert await bob.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


async def test_a_viewer_cannot_cancel_a_child(workplace: Workplace) -> None:
    session_id = await _group(workplace, {"name": "slow", "shell": "sleep 600"})
    page = await _open(workplace, session_id, "children", key=await workplace.create_viewer_key())
    await expect(_children(page).filter(has_text="slow")).to_contain_text("running")
    await expect(page.get_by_role("button", name="Cancel slow")).to_have_count(0)


async def test_a_subagent_is_shown_and_opened(workplace: Workplace) -> None:
    body = {"harness": "native", "permissions": {"allow": ["Agent(*)", *ALLOWS["allow"]]}}
    helper = await workplace.client.agent(name="helper", extra_body=body)
    lead = await workplace.client.agent(
        name="lead", extra_body={**body, "multiagent": {"type": "coordinator", "agents": [helper]}}
    )
    await workplace.cluster.model.install("browser-helper", replies([text("One problem.")]))
    task = {"description": "Review", "prompt": "Go. [[script:browser-helper]]", "subagent_type": "helper"}
    await workplace.cluster.model.install("browser-lead", replies([tool("Agent", task)], [text("Done.")]))
    session_id = await workplace.client.session(lead, title="Delegate")
    await workplace.client.send_text(session_id, "Begin [[script:browser-lead]]")
    page = await _open(workplace, session_id, "children")
    row = _children(page).filter(has_text="helper")
    await expect(row).to_contain_text("done")
    await row.get_by_role("link").click()
    await expect(page).to_have_url(re.compile("thread=sthr_"))


@pytest.mark.action(
    "session.next-fork",
    "session.previous-fork",
    "session.pick-fork",
    "session.compare-forks",
    "session.open-fork",
)
async def test_forks_are_a_graph_that_grows_while_it_is_watched(workplace: Workplace) -> None:
    session_id = await workplace.start_session(replies([text("One.")], [text("Two.")]), title="Original")
    page = await _open(workplace, session_id, "forks")
    await expect(page.get_by_text("No forks")).to_be_visible()
    await expect(page.locator("main")).to_contain_text("done")
    first = await _post(workplace, f"/v1/sessions/{session_id}/fork", {"title": "First"})
    await expect(_forks(page).nth(1)).to_contain_text("First")
    await expect(_forks(page).nth(1)).to_contain_text("forked at turn 1")
    await _post(workplace, f"/v1/sessions/{first['id']}/fork", {"title": HOSTILE})
    await expect(_forks(page).nth(2)).to_contain_text("<script>alert(1)</script> U+202E")
    await expect(page.get_by_text("3 sessions")).to_be_visible()
    await _select(page, _forks(page).nth(1))
    await page.keyboard.press("m")
    await page.keyboard.press("j")
    await page.keyboard.press("m")
    await page.keyboard.press("c")
    await expect(page).to_have_url(re.compile(r"/compare\?sessions=sesn_\w+(,|%2C)sesn_\w+"))
    await page.go_back()
    await _select(page, _forks(page).nth(2))
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("First")


async def test_a_fork_of_a_deleted_session(workplace: Workplace) -> None:
    session_id = await workplace.start_session(replies([text("One.")]), title="Original")
    workplace.expect(r"404.*sessions")
    page = await _open(workplace, session_id, "forks")
    await expect(page.locator("main")).to_contain_text("done")
    fork = await _post(workplace, f"/v1/sessions/{session_id}/fork", {"title": "Left"})
    await workplace.client.sdk.delete(f"/v1/sessions/{session_id}", cast_to=dict[str, Any])
    page = await _open(workplace, fork["id"], "forks")
    await expect(page.get_by_text("that was deleted or that you cannot see")).to_be_visible()
    await expect(_forks(page)).to_have_count(1)
