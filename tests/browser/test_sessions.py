"""The sessions: a live list and board, filters in the address, the keyboard, and changes of several at once."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from playwright.async_api import Locator, Page, expect

from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import hang, http_error, text, tool

ASKS = {"ask": ["Bash(echo *)"], "allow": ["Edit", "Write"]}
MANY = 130


def _rows(page: Page) -> Locator:
    return page.get_by_role("list", name="Sessions").get_by_role("listitem")


def _row(page: Page, title: str) -> Locator:
    return _rows(page).filter(has_text=title)


def _column(page: Page, state: str) -> Locator:
    return page.get_by_role("region", name=f"Sessions: {state}").get_by_role("listitem")


async def _create(workplace: Workplace, *titles: str) -> list[str]:
    """Creates sessions without work, the first title last, so that it is at the top."""
    agent = await workplace.client.agent(name="resting", extra_body={"harness": "native"})
    ids = {title: await workplace.client.session(agent, title=title) for title in reversed(titles)}
    return [ids[title] for title in titles]


async def _read(workplace: Workplace, session_id: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(f"/v1/sessions/{session_id}", cast_to=dict[str, Any])


async def _create_key(workplace: Workplace, role: str) -> str:
    body = {"name": role.title(), "roles": [role]}
    created = await workplace.client.sdk.post("/v1/api_keys", body=body, cast_to=dict[str, Any])
    return str(created["secret"])


@pytest.mark.smoke
@pytest.mark.action("sessions.next", "sessions.previous", "sessions.archive")
async def test_two_windows_see_each_others_changes(workplace: Workplace) -> None:
    await _create(workplace, "First", "Second")
    windows = [await workplace.sign_in() for _ in range(2)]
    for window in windows:
        await window.open_page("/sessions")
    ann, bob = (window.page for window in windows)
    await expect(_rows(ann)).to_have_count(2)
    await expect(_rows(bob)).to_have_count(2)
    for key in "jjk":
        await ann.keyboard.press(key)
    await expect(_row(ann, "First")).to_have_attribute("aria-current", "true")
    await workplace.start_session(replies([text("Working."), hang()]), title="Third")
    for page in (ann, bob):
        await expect(_rows(page).first).to_contain_text("Third")
        await expect(_rows(page).first).to_contain_text("running")
    await expect(_row(ann, "First")).to_have_attribute("aria-current", "true")
    await ann.keyboard.press("e")
    await expect(_row(bob, "First")).to_have_count(0)
    await expect(_rows(bob)).to_have_count(2)
    await expect(bob.get_by_role("tab", name=re.compile("All"))).to_contain_text("2")


async def test_every_row_states_what_happens_or_why_nothing_does(workplace: Workplace) -> None:
    await workplace.start_session(replies([tool("bash", {"command": "echo hi"})]), title="Asks", permissions=ASKS)
    await workplace.start_session(replies([http_error(400, message="too many tokens")]), title="Fails")
    await workplace.start_session(replies([tool("bash", {"command": "sleep 60"})]), title="Works")
    page = (await workplace.sign_in()).page
    await page.keyboard.press("g")
    await page.keyboard.press("s")
    await expect(_row(page, "Asks")).to_contain_text("needs you")
    await expect(_row(page, "Asks")).to_contain_text(re.compile(r"bash: echo hi\s*since \d\d:\d\d"))
    await expect(_row(page, "Fails")).to_contain_text("failed")
    await expect(_row(page, "Fails")).to_contain_text("too many tokens")
    # What runs is read again although the session's state does not change.
    await expect(_row(page, "Works")).to_contain_text(re.compile(r"bash: sleep 60\s*\d"))


@pytest.mark.action("sessions.select", "sessions.select-range", "sessions.clear-selection")
@pytest.mark.action("sessions.open", "sessions.pin", "sessions.search")
async def test_the_keyboard_is_enough(workplace: Workplace) -> None:
    ids = await _create(workplace, "One", "Two", "Three", "Four")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/sessions")
    await expect(_rows(page)).to_have_count(4)
    for key in ("j", "x", "j", "j", "Shift+X"):
        await page.keyboard.press(key)
    await expect(page.get_by_text("3 selected")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("3 selected")).to_have_count(0)
    await page.keyboard.press("p")
    await expect(_row(page, "Three").get_by_label("pinned")).to_be_visible()
    sidebar = page.get_by_role("navigation", name="Main")
    await expect(sidebar.get_by_text("Three")).to_be_visible()
    await page.keyboard.press("p")
    await expect(sidebar.get_by_text("Three")).to_have_count(0)
    await expect(page).to_have_url(re.compile(f"selected={ids[2]}"))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/sessions/{ids[2]}"))
    await page.go_back()
    await expect(_row(page, "Three")).to_have_attribute("aria-current", "true")
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.type("nothing has these words")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No session matches these filters")).to_be_visible()


@pytest.mark.action("sessions.filter", "sessions.pinned-only", "sessions.stuck-only")
@pytest.mark.action("sessions.reverse-order", "sessions.clear-filters")
async def test_filters_are_in_the_address_and_survive_a_reload(workplace: Workplace) -> None:
    ids = await _create(workplace, "New", "Old")
    await workplace.client.sdk.put(f"/v1/sessions/{ids[1]}/pin", cast_to=dict[str, Any])
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/sessions")
    await expect(_rows(page)).to_have_count(2)
    await page.keyboard.press("f")
    await page.get_by_label("Agent", exact=True).click()
    await page.get_by_role("option", name="resting").click()
    await expect(page).to_have_url(re.compile("agent_id=agent_"))
    await page.get_by_label("Owner").click()
    await page.get_by_role("option", name=re.compile("you")).click()
    await expect(page).to_have_url(re.compile("owner_id="))
    await page.get_by_label("Harness").click()
    await page.get_by_role("option", name="native").click()
    await page.get_by_role("switch", name="Pinned").click()
    await page.keyboard.press("Escape")
    await page.get_by_role("tab", name=re.compile("Done")).click()
    await page.get_by_role("button", name=re.compile("^Age")).click()
    await expect(page).to_have_url(re.compile("order=asc"))
    await expect(_rows(page)).to_have_count(1)
    await page.reload()
    for name in ("agent_id", "owner_id", "harness=native", "pinned=true", "state=done", "order=asc"):
        assert name in page.url
    await expect(_rows(page)).to_have_count(1)
    await expect(_rows(page)).to_contain_text("Old")
    await page.get_by_role("button", name="Clear", exact=True).click()
    await expect(_rows(page)).to_have_count(2)
    await expect(_rows(page).first).to_contain_text("Old")
    await _run(page, "Show only pinned sessions")
    await expect(page).to_have_url(re.compile("pinned=true"))
    await expect(_rows(page)).to_have_count(1)
    await _run(page, "Show only stuck sessions")
    await expect(page).to_have_url(re.compile("stuck=true"))
    await expect(page.get_by_text("No session matches these filters")).to_be_visible()
    await _run(page, "Clear the filters of the sessions")
    await expect(_rows(page)).to_have_count(2)


async def _run(page: Page, action: str) -> None:
    """Runs an action by the palette."""
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(action)
    await expect(page.get_by_role("option", name=action, selected=True)).to_be_visible()
    await page.keyboard.press("Enter")


@pytest.mark.action("sessions.compare")
async def test_two_selected_sessions_are_compared_older_one_first(workplace: Workplace) -> None:
    ids = await _create(workplace, "Second", "First")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/sessions")
    await _row(page, "Second").get_by_role("checkbox").check()
    compare = page.get_by_role("toolbar").get_by_role("button", name="Compare")
    await expect(compare).to_be_disabled()
    await _row(page, "First").get_by_role("checkbox").check()
    await compare.click()
    await expect(page).to_have_url(re.compile(f"/compare\\?sessions={ids[1]}.*{ids[0]}"))
    await page.go_back()
    for title in ("First", "Second"):
        await _row(page, title).get_by_role("checkbox").check()
    await page.keyboard.press("c")
    await expect(page).to_have_url(re.compile(f"/compare\\?sessions={ids[1]}.*{ids[0]}"))


@pytest.mark.action("sessions.pause", "sessions.play", "sessions.interrupt", "sessions.delete")
async def test_several_at_once_with_a_partial_failure(workplace: Workplace) -> None:
    workplace.expect("400")
    ids = await _create(workplace, "Idle", "Ended")
    await workplace.client.sdk.post(f"/v1/sessions/{ids[1]}/end", body={}, cast_to=dict[str, Any])
    busy = await workplace.start_session(replies([text("Working."), hang()]), title="Busy")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/sessions")
    await expect(_row(page, "Busy")).to_contain_text("running")
    for title in ("Idle", "Ended"):
        await _row(page, title).get_by_role("checkbox").check()
    await page.get_by_role("toolbar").get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog", name="1 session not paused")
    await expect(dialog).to_contain_text("Ended")
    await expect(dialog).to_contain_text("1 session paused")
    await dialog.get_by_role("button", name="Try again").click()
    await expect(dialog).to_be_visible()
    await dialog.get_by_role("button", name="Close").last.click()
    assert (await _playback(workplace, ids[0]))["is_playing"] is False

    await _row(page, "Idle").get_by_role("checkbox").check()
    await _run(page, "Play")
    await expect(page.get_by_text("1 session playing")).to_be_visible()
    assert (await _playback(workplace, ids[0]))["is_playing"] is True

    await _row(page, "Busy").get_by_role("checkbox").check()
    await page.keyboard.press("Shift+I")
    await expect(_row(page, "Busy")).to_contain_text("interrupted")
    assert (await _read(workplace, busy))["activity"]["state"] == "interrupted"
    # The feed can be faster than the response to the request, which ends the selection.
    await expect(page.get_by_text("1 selected")).to_have_count(0)

    for title in ("Idle", "Busy"):
        await _row(page, title).get_by_role("checkbox").check()
    await page.keyboard.press("Shift+D")
    dialog = page.get_by_role("dialog", name="Delete 2 sessions?")
    await expect(dialog).to_contain_text("Busy")
    await dialog.get_by_role("button", name="Keep them").click()
    await expect(page.get_by_role("dialog", name=re.compile("^Delete"))).to_have_count(0)
    await expect(_rows(page)).to_have_count(3)
    await page.keyboard.press("Shift+D")
    await dialog.get_by_role("button", name="Delete 2 sessions").click()
    await expect(_rows(page)).to_have_count(1)
    await expect(_rows(page)).to_contain_text("Ended")


async def _playback(workplace: Workplace, session_id: str) -> dict[str, Any]:
    found = await workplace.client.sdk.get(f"/v1/sessions/{session_id}/playback", cast_to=dict[str, Any])
    return {"is_playing": found["playing"]}


@pytest.mark.action("sessions.toggle-layout")
async def test_a_card_moves_between_the_columns_of_the_board(workplace: Workplace) -> None:
    await _create(workplace, "Rests")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/sessions")
    await expect(_rows(page)).to_have_count(1)
    await page.keyboard.press("l")
    await expect(page).to_have_url(re.compile("layout=board"))
    await expect(_column(page, "done")).to_contain_text("Rests")
    script = replies([text("I ask."), tool("bash", {"command": "echo hi"})], [text("Done.")])
    session_id = await workplace.start_session(script, title="Moves", permissions=ASKS)
    await expect(_column(page, "needs you")).to_contain_text("bash: echo hi")
    (approval,) = (await workplace.client.sdk.get("/v1/approvals", cast_to=dict[str, Any]))["data"]
    decision = {"type": "user.tool_confirmation", "tool_use_id": approval["id"], "result": "allow"}
    await workplace.client.send(session_id, decision)
    await expect(_column(page, "done").filter(has_text="Moves")).to_be_visible()
    await expect(_column(page, "needs you")).to_have_count(0)
    await page.keyboard.press("l")
    await expect(_rows(page)).to_have_count(2)


async def test_on_a_phone_the_columns_are_a_switch(workplace: Workplace) -> None:
    await _create(workplace, "Rests")
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page("/sessions?layout=board")
    await expect(_column(page, "running")).to_have_count(0)
    await page.get_by_role("tab", name=re.compile("Done")).tap()
    await expect(_column(page, "done")).to_contain_text("Rests")
    await page.get_by_role("button", name="Show as a list").tap()
    await _rows(page).first.get_by_role("link").tap()
    await expect(page).to_have_url(re.compile("/sessions/sesn_"))


async def test_scrolling_reads_more_and_nothing_jumps(workplace: Workplace) -> None:
    await _create(workplace, *(f"Number {number}" for number in range(MANY)))
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/sessions")
    await expect(_rows(page).first).to_contain_text("Number 0")
    scroller = page.get_by_test_id("rows")
    await scroller.evaluate("element => element.scrollTo(0, 60 * 36)")
    await expect(_row(page, "Number 61")).to_be_visible()
    before = await _row(page, "Number 61").bounding_box()
    await _create(workplace, "Appears above")
    await expect(page.get_by_role("tab", name=re.compile("All"))).to_contain_text(str(MANY + 1))
    assert await _row(page, "Number 61").bounding_box() == before
    await _row(page, "Number 61").get_by_role("link").click()
    await expect(page).to_have_url(re.compile("/sessions/sesn_"))
    await page.go_back()
    await expect(_row(page, "Number 61")).to_be_visible()
    await scroller.evaluate("element => element.scrollTo(0, 1e6)")
    await expect(_row(page, f"Number {MANY - 1}")).to_be_visible()
    await scroller.evaluate("element => element.scrollTo(0, 0)")
    await expect(_rows(page).first).to_contain_text("Appears above")


async def test_a_viewer_sees_and_pins_but_changes_nothing(workplace: Workplace) -> None:
    (session_id,) = await _create(workplace, "Seen")
    window = await workplace.sign_in(key=await _create_key(workplace, "viewer"))
    page = window.page
    await window.open_page("/sessions")
    await _row(page, "Seen").get_by_role("checkbox").check()
    toolbar = page.get_by_role("toolbar")
    await expect(toolbar).to_contain_text("Your role does not permit to change sessions.")
    for name in ("Interrupt", "Pause", "Play", "Archive", "Delete"):
        await expect(toolbar.get_by_role("button", name=name)).to_be_disabled()
    await page.keyboard.press("e")
    await expect(page.get_by_role("alert")).to_contain_text("Not permitted")
    await toolbar.get_by_role("button", name="Pin", exact=True).click()
    await expect(_row(page, "Seen").get_by_label("pinned")).to_be_visible()
    assert (await _read(workplace, session_id))["archived_at"] is None


async def test_an_empty_list_and_a_failed_request_say_what_to_do(window: DashboardWindow, workplace: Workplace) -> None:
    page = window.page
    await window.open_page("/sessions")
    await expect(page.get_by_text("No sessions yet")).to_be_visible()
    workplace.expect("500|Failed to load")
    await page.route("**/v1/sessions?*order=asc*", lambda route: route.fulfill(status=500, json={}))
    await page.get_by_role("button", name=re.compile("^Age")).click()
    await expect(page.get_by_text("The sessions could not be loaded")).to_be_visible()
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No sessions yet")).to_be_visible()
