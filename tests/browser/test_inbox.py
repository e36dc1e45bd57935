"""The inbox: deciding calls, answering, snoozing and assigning by keyboard and by touch, and two windows that agree."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from playwright.async_api import Page, expect

from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import Step, http_error, text, tool

ASKS = {"ask": ["Bash(echo *)"], "allow": ["Edit", "Write"]}
ASKS_BY_DEFAULT: dict[str, Any] = {"allow": ["Edit"]}


def _bash(command: str) -> Step:
    return tool("bash", {"command": command})


async def _ask(workplace: Workplace, command: str, *, permissions: dict[str, Any] = ASKS) -> str:
    """Starts a session that waits for approval of the command."""
    script = replies([text(f"I run {command}."), _bash(command)], [text("Done.")], [text("Done again.")])
    return await workplace.start_session(script, title=f"Run {command[:80]}", permissions=permissions)


def _items(page: Page) -> Any:
    return page.get_by_role("list", name="Items").get_by_role("link")


def _call(page: Page) -> Any:
    return page.get_by_test_id("call")


async def _wait_for_confirmation(workplace: Workplace, page: Page, session_id: str) -> dict[str, Any]:
    """Returns the first decision of the session. The page shows the next item before the server has it."""
    for _ in range(100):
        for event in await workplace.client.events(session_id):
            if event["type"] == "user.tool_confirmation":
                return event
        await page.wait_for_timeout(200)
    raise AssertionError("nothing was decided")


@pytest.mark.smoke
@pytest.mark.action("inbox.allow", "inbox.next", "inbox.previous")
async def test_two_windows_see_each_others_decisions(workplace: Workplace) -> None:
    first_id = await _ask(workplace, "echo one")
    await _ask(workplace, "echo two")
    ann = (await workplace.sign_in()).page
    bob = (await workplace.sign_in()).page
    await expect(_items(ann)).to_have_count(2)
    await expect(_items(bob)).to_have_count(2)
    for key, selected in [("j", 1), ("k", 0)]:
        await ann.keyboard.press(key)
        await expect(_items(ann).nth(selected)).to_have_attribute("aria-current", re.compile("true|page"))
    shown = await _call(ann).inner_text()
    command = "echo one" if "echo one" in shown else "echo two"
    await ann.wait_for_timeout(400)
    await ann.keyboard.press("a")
    await expect(ann.get_by_text("Allowed", exact=True)).to_be_visible()
    await expect(_items(ann)).to_have_count(1)
    await expect(_items(bob)).to_have_count(1)
    await expect(bob.get_by_text("Allowed by somebody else")).to_be_visible()
    await expect(_call(bob)).not_to_contain_text(command)
    if command == "echo one":
        assert (await _wait_for_confirmation(workplace, ann, first_id))["result"] == "allow"


@pytest.mark.action("inbox.deny", "inbox.edit", "inbox.allow-in-session")
async def test_deny_edit_and_allow_in_session(workplace: Workplace) -> None:
    session_id = await _ask(workplace, "touch a.txt", permissions=ASKS_BY_DEFAULT)
    page = (await workplace.sign_in()).page
    await expect(_call(page)).to_contain_text("touch a.txt")
    await expect(page.get_by_text("Bash(touch a.txt)")).to_be_visible()
    await page.keyboard.press("e")
    await page.get_by_role("textbox", name="command").fill("touch b.txt")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("Nothing needs you")).to_be_visible()
    assert (await _wait_for_confirmation(workplace, page, session_id))["updated_input"]["command"] == "touch b.txt"

    session_id = await _ask(workplace, "touch c.txt", permissions=ASKS_BY_DEFAULT)
    await expect(_call(page)).to_contain_text("touch c.txt")
    await page.keyboard.press("d")
    await page.get_by_label("What should the agent do instead?").fill("Use the file that is there.")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Nothing needs you")).to_be_visible()
    assert (await _wait_for_confirmation(workplace, page, session_id))["deny_message"] == "Use the file that is there."

    session_id = await _ask(workplace, "touch d.txt", permissions=ASKS_BY_DEFAULT)
    await expect(_call(page)).to_contain_text("touch d.txt")
    await page.wait_for_timeout(400)
    await page.keyboard.press("s")
    await expect(page.get_by_text("Nothing needs you")).to_be_visible()
    assert (await _wait_for_confirmation(workplace, page, session_id))["session_rule"] == "Bash(touch d.txt)"


async def test_a_held_key_allows_nothing_that_was_not_seen(workplace: Workplace) -> None:
    for number in range(3):
        await _ask(workplace, f"echo {number}")
    page = (await workplace.sign_in()).page
    await expect(_items(page)).to_have_count(3)
    await page.wait_for_timeout(400)
    for _ in range(5):
        await page.keyboard.down("a")  # repeats of one key press
    await page.keyboard.up("a")
    await expect(_items(page)).to_have_count(2)
    await page.wait_for_timeout(400)
    await expect(_items(page)).to_have_count(2)


async def test_the_whole_call_is_shown_with_its_hidden_characters(workplace: Workplace) -> None:
    command = f"echo \u202egpj.exe\u202c <img src=x onerror=alert(1)> {'x' * 3000} end"
    await _ask(workplace, command)
    page = (await workplace.sign_in()).page
    await expect(_call(page)).to_contain_text("U+202E")
    await expect(_call(page)).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(_call(page)).to_contain_text("x end")
    await expect(page.get_by_text("This call has 2 characters that you cannot see")).to_be_visible()
    await expect(page.get_by_text("Bash(echo *)").first).to_be_visible()


@pytest.mark.action("inbox.reply")
async def test_deciding_a_question_by_keyboard(workplace: Workplace) -> None:
    options = [{"label": "PostgreSQL 16", "description": "today"}, {"label": "PostgreSQL 17", "description": "new"}]
    question = {"question": "Which version?", "header": "Version", "options": options}
    script = replies([tool("ask_user", {"questions": [question]})], [text("Thank you.")])
    session_id = await workplace.start_session(script, title="Upgrade")
    page = (await workplace.sign_in()).page
    await expect(page.get_by_role("group", name="Which version?")).to_be_visible()
    (asked,) = (await workplace.client.sdk.get("/v1/questions", cast_to=dict[str, Any]))["data"]
    await page.keyboard.press("r")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Nothing needs you")).to_be_visible()
    found = await workplace.client.sdk.get(f"/v1/questions/{asked['id']}", cast_to=dict[str, Any])
    assert (found["session_id"], found["answers"]) == (session_id, {"Which version?": "PostgreSQL 17"})


@pytest.mark.action("inbox.dismiss", "inbox.open-session")
async def test_a_failure_continues_with_a_message_or_is_dismissed(workplace: Workplace) -> None:
    script = replies([http_error(400, message="too many tokens")], [text("It works now.")])
    session_id = await workplace.start_session(script, title="Fails")
    page = (await workplace.sign_in()).page
    await expect(page.get_by_label("Selected item").get_by_text("too many tokens")).to_be_visible()
    await page.keyboard.press("o")
    await expect(page).to_have_url(re.compile(session_id))
    await page.go_back()
    await page.keyboard.press("x")
    await expect(page.get_by_text("Nothing needs you")).to_be_visible()


@pytest.mark.action("inbox.snooze", "inbox.assign", "inbox.needs-you", "inbox.mine", "inbox.snoozed")
async def test_snoozing_and_assigning_with_undo(workplace: Workplace) -> None:
    await _ask(workplace, "echo one")
    page = (await workplace.sign_in()).page
    await expect(_items(page)).to_have_count(1)
    await page.keyboard.press("m")
    await page.get_by_role("menuitem", name="Me", exact=True).click()
    await expect(page.get_by_text("Assigned to you")).to_be_visible()
    await page.keyboard.press("2")
    await expect(page).to_have_url(re.compile("view=mine"))
    await expect(_items(page)).to_have_count(1)
    await page.keyboard.press("z")
    await page.get_by_role("menuitem", name="For 1 hour").click()
    await expect(_items(page)).to_have_count(0)
    await page.keyboard.press("3")
    await expect(_items(page)).to_have_count(1)
    await page.get_by_role("button", name="Undo").first.click()
    await expect(_items(page)).to_have_count(0)
    await page.keyboard.press("1")
    await expect(_items(page)).to_have_count(1)


@pytest.mark.action("inbox.filter-kind", "inbox.filter-project", "inbox.clear-filters")
async def test_filters_are_in_the_address(window: DashboardWindow) -> None:
    page = window.page
    await page.get_by_label("Kind").click()
    await page.get_by_role("option", name="Questions").click()
    await expect(page).to_have_url(re.compile("kind=question"))
    await page.reload()
    await expect(page.get_by_text("Nothing matches these filters")).to_be_visible()
    await page.get_by_label("Project", exact=True).click()
    await page.get_by_role("option", name="All projects").click()
    await page.get_by_role("button", name="Clear the filters").click()
    await expect(page.get_by_text("Nothing needs you")).to_be_visible()


@pytest.mark.smoke
async def test_a_phone_decides_with_one_thumb(workplace: Workplace) -> None:
    await _ask(workplace, "echo one")
    page = (await workplace.sign_in(size=PHONE)).page
    await _items(page).first.tap()
    allow = page.get_by_role("button", name="Allow")
    box = await allow.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert box["y"] > PHONE[1] / 2, "out of reach of the thumb"
    await page.wait_for_timeout(400)
    await allow.tap()
    await expect(page.get_by_text("Nothing needs you")).to_be_visible()


async def test_a_link_to_an_item_that_is_decided_reports_it(workplace: Workplace) -> None:
    workplace.expect(r"404.*inbox")
    window = await workplace.sign_in()
    await window.page.goto(f"{window.base_url}/inbox?item=sevt_01m7rs9jcqejp34gsarbw348pn")
    await expect(window.page.get_by_text("This does not wait any more")).to_be_visible()


async def test_letters_are_shortcuts_while_a_choice_has_the_focus(workplace: Workplace) -> None:
    session_id = await _ask(workplace, "echo focus")
    page = (await workplace.sign_in()).page
    await expect(_call(page)).to_contain_text("echo focus")
    kind = page.get_by_label("Kind")
    await kind.click()
    await page.get_by_role("option", name="Approvals").click()
    await expect(kind).to_be_focused()
    await expect(_call(page)).to_contain_text("echo focus")
    await page.wait_for_timeout(400)
    await page.keyboard.press("a")
    await expect(_items(page)).to_have_count(0)
    await expect(kind).to_contain_text("Approvals")
    assert (await _wait_for_confirmation(workplace, page, session_id))["result"] == "allow"


async def test_an_item_is_back_when_its_decision_does_not_arrive(workplace: Workplace) -> None:
    workplace.expect("ERR_INTERNET_DISCONNECTED|ERR_FAILED|Failed to load")
    await _ask(workplace, "echo back")
    page = (await workplace.sign_in()).page
    await expect(_call(page)).to_contain_text("echo back")
    await page.route("**/v1/sessions/*/events", lambda route: route.abort())
    await page.route("**/v1/inbox?*", lambda route: route.abort())
    await page.wait_for_timeout(400)
    await page.keyboard.press("a")
    await expect(page.get_by_text("The decision was not accepted").first).to_be_visible()
    await expect(_items(page)).to_have_count(1)
