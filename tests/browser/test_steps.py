"""The queue of a session: adding, editing, moving, repeating and removing steps; play, pause and next; two windows."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Locator, Page, expect

OWN_TREE = {"allow": ["Bash(*)", "Edit", "Write"]}
HOSTILE = "echo '<img src=x onerror=alert(1)>' \u202egpj.exe\u202c \u0007 [x](https://example.com/)"


async def _agent(workplace: Workplace) -> str:
    return await workplace.client.agent(extra_body={"harness": "native", "permissions": OWN_TREE})


async def _post(workplace: Workplace, path: str, body: dict[str, Any] | None = None) -> Any:
    return await workplace.client.sdk.post(path, body=body or {}, cast_to=dict[str, Any])


async def _queue(workplace: Workplace, *steps: dict[str, Any], paused: bool = True, title: str = "Queue") -> str:
    """Creates a session with these steps. A paused one does not start them."""
    session_id = await workplace.client.session(await _agent(workplace), title=title)
    if paused:
        await _post(workplace, f"/v1/sessions/{session_id}/pause")
    if steps:
        await _post(workplace, f"/v1/sessions/{session_id}/steps", {"steps": list(steps)})
    return session_id


def _shell(name: str, command: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"kind": "shell", "name": name, "command": command or f"echo {name}", **fields}


async def _open(workplace: Workplace, session_id: str, **options: Any) -> Page:
    window = await workplace.sign_in(path=f"/sessions/{session_id}?tab=steps", **options)
    return window.page


def _waiting(page: Page) -> Locator:
    return page.get_by_role("list", name="Waiting steps").get_by_role("listitem")


def _playback(page: Page) -> Locator:
    return page.get_by_role("region", name="Playback")


def _row(page: Page, text: str) -> Locator:
    return page.locator("[data-step]").filter(has_text=text)


async def _place(page: Page, name: str) -> tuple[float, float]:
    """The middle of the step's handle."""
    box = await page.get_by_label(f"Move {name}").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def _expect_order(page: Page, *names: str) -> None:
    for position, name in enumerate(names):
        await expect(_waiting(page).nth(position)).to_contain_text(name)


@pytest.mark.smoke
@pytest.mark.action(
    "session.move-step-down",
    "session.next-step",
    "session.run-next-step",
    "session.play-queue",
    "session.pause-queue",
)
async def test_two_windows_agree_on_the_queue(workplace: Workplace) -> None:
    session_id = await _queue(workplace, _shell("one"), _shell("two"), _shell("three"))
    ann = await _open(workplace, session_id)
    bob = await _open(workplace, session_id)
    await _expect_order(bob, "one", "two", "three")
    await expect(_playback(ann)).to_contain_text("Paused")
    await ann.keyboard.press("j")
    await ann.keyboard.press("Alt+ArrowDown")
    await _expect_order(ann, "two", "one", "three")
    await _expect_order(bob, "two", "one", "three")
    await expect(bob.get_by_text("The queue was reordered in another window")).to_be_visible()
    await ann.keyboard.press(".")
    await expect(_row(bob, "two")).to_contain_text("done")
    await expect(_waiting(bob)).to_have_count(2)
    await _playback(bob).get_by_role("button", name="Play").click()
    await expect(_playback(ann).get_by_role("button", name="Pause")).to_be_visible()
    await expect(_row(ann, "three")).to_contain_text("done")
    await _playback(ann).get_by_role("button", name="Pause").click()
    await expect(_playback(bob).get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.action("session.move-step-up", "session.previous-step", "session.open-step")
async def test_reordering_by_drag_and_by_keyboard(workplace: Workplace) -> None:
    session_id = await _queue(workplace, _shell("one"), _shell("two"), _shell("three"))
    page = await _open(workplace, session_id)
    await _expect_order(page, "one", "two", "three")
    (x, start), (_, end) = await _place(page, "three"), await _place(page, "one")
    await page.mouse.move(x, start)
    await page.mouse.down()
    for share in (0.2, 0.5, 0.8, 1):
        await page.mouse.move(x, start + (end - 4 - start) * share, steps=4)
    await page.mouse.up()
    await _expect_order(page, "three", "one", "two")
    await page.get_by_role("heading", level=1).click()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await page.keyboard.press("Alt+ArrowUp")
    await _expect_order(page, "one", "three", "two")
    await page.keyboard.press("Enter")
    await expect(_row(page, "echo one")).to_contain_text("If it fails")
    await expect(page).to_have_url(re.compile("step=step_"))
    await page.reload()
    await expect(_row(page, "echo one")).to_contain_text("If it fails")


async def test_messages_in_the_queue_have_their_text_and_are_reordered(workplace: Workplace) -> None:
    session_id = await _queue(workplace)
    for text in ("Measure the speed", "Update the changelog", "Add tests"):
        await workplace.client.send_text(session_id, text)
    page = (await workplace.sign_in(path=f"/sessions/{session_id}")).page
    await page.get_by_role("link", name="Move or remove it").last.click()
    await _expect_order(page, "Measure the speed", "Update the changelog", "Add tests")
    await page.get_by_role("button", name="Move up", exact=True).click()
    await _expect_order(page, "Measure the speed", "Add tests", "Update the changelog")
    await page.get_by_role("button", name="Move up", exact=True).click()
    await _expect_order(page, "Add tests", "Measure the speed", "Update the changelog")
    await page.get_by_role("tab", name="Conversation").click()
    waiting = page.locator("[data-event]").filter(has_text="In the queue.")
    for position, text in enumerate(("Add tests", "Measure the speed", "Update the changelog")):
        await expect(waiting.nth(position)).to_contain_text(text)


@pytest.mark.action("session.add-step", "session.edit-step", "session.remove-step")
async def test_adding_editing_and_removing_with_undo(workplace: Workplace) -> None:
    session_id = await _queue(workplace)
    page = await _open(workplace, session_id)
    await expect(page.get_by_text("No steps yet")).to_be_visible()
    await page.keyboard.press("a")
    dialog = page.get_by_role("dialog", name="Add a step")
    await dialog.get_by_label("Prompt").fill("Make the tests pass")
    await page.keyboard.press("Control+Enter")
    await expect(_waiting(page)).to_have_count(1)

    await page.keyboard.press("a")
    await dialog.get_by_label("What it does").click()
    await page.get_by_role("option", name="Shell").click()
    await dialog.get_by_label("Command").fill("exit 3")
    await dialog.get_by_text("Name, condition and failures").click()
    await dialog.get_by_label("Name", exact=True).fill("Not A Name")
    workplace.expect(r"400.*steps")
    await dialog.get_by_role("button", name="Add").click()
    await expect(dialog.get_by_role("alert").first).to_be_visible()
    await dialog.get_by_label("Name", exact=True).fill("two")
    await dialog.get_by_label("If it fails").click()
    await page.get_by_role("option", name="Try again").click()
    await dialog.get_by_label("Attempts").fill("2")
    await dialog.get_by_role("button", name="Add").click()
    await expect(_waiting(page)).to_have_count(2)

    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    edited = page.get_by_role("dialog", name="Edit the step")
    await edited.get_by_label("Command").fill("echo edited")
    await page.keyboard.press("Control+Enter")
    await expect(edited).to_be_hidden()
    await expect(_row(page, "two")).to_contain_text("echo edited")
    (_, step) = (await workplace.client.sdk.get(f"/v1/sessions/{session_id}/steps", cast_to=dict[str, Any]))["data"]
    assert (step["command"], step["on_failure"], step["max_attempts"]) == ("echo edited", "retry", 2)

    await page.keyboard.press("k")
    await page.keyboard.press("x")
    await expect(_waiting(page)).to_have_count(1)
    await page.get_by_role("button", name="Undo").click()
    await expect(_waiting(page)).to_have_count(2)
    await expect(_waiting(page).first).to_contain_text("Make the tests pass")


async def test_editing_a_step_that_another_window_changes(workplace: Workplace) -> None:
    session_id = await _queue(workplace, _shell("one"))
    page = await _open(workplace, session_id)
    steps = f"/v1/sessions/{session_id}/steps"
    (step,) = (await workplace.client.sdk.get(steps, cast_to=dict[str, Any]))["data"]
    await _expect_order(page, "one")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    dialog = page.get_by_role("dialog", name="Edit the step")
    await dialog.get_by_label("Command").fill("echo mine")
    await _post(workplace, f"{steps}/{step['id']}", {"command": "echo theirs"})
    await expect(dialog.get_by_text("changed in another window")).to_be_visible()
    await expect(dialog.get_by_label("Command")).to_have_value("echo mine")
    await dialog.get_by_role("button", name="Show that version").click()
    await expect(dialog.get_by_label("Command")).to_have_value("echo theirs")
    await dialog.get_by_label("Command").fill("echo again mine")
    await _post(workplace, f"/v1/sessions/{session_id}/next")
    await expect(dialog.get_by_text("cannot be edited")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    await expect(dialog.get_by_label("Command")).to_have_value("echo again mine")


@pytest.mark.action("session.repeat-step", "session.submit-step-result", "session.open-step-turn")
async def test_a_failed_step_pauses_and_is_repeated_and_a_result_is_submitted(workplace: Workplace) -> None:
    session_id = await _queue(
        workplace,
        _shell("one", "test -e fixed"),
        {"kind": "external", "name": "two", "instructions": "Read the changes."},
        _shell("three", "echo ${steps.two.stdout}"),
        paused=False,
    )
    page = await _open(workplace, session_id)
    await expect(_playback(page)).to_contain_text("Paused because a step failed")
    await expect(_row(page, "one").first).to_contain_text("exit 1")
    await page.keyboard.press("j")
    await page.keyboard.press("t")
    await expect(_waiting(page)).to_have_count(3)
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await page.get_by_role("dialog", name="Edit the step").get_by_label("Command").fill("echo fixed")
    await page.keyboard.press("Control+Enter")
    await _playback(page).get_by_role("button", name="Play").click()
    external = _row(page, "Read the changes.")
    await expect(external).to_contain_text("waits for a client")
    await external.locator("button[aria-expanded]").click()
    await page.keyboard.press("u")
    await page.keyboard.type("Looks good")
    await page.get_by_role("button", name="Submit as done").click()
    last = _row(page, "steps.two.stdout")
    await expect(last).to_contain_text("done")
    await last.locator("button[aria-expanded]").click()
    await expect(last.get_by_label("Output")).to_contain_text("Looks good")
    await expect(last).to_contain_text("${steps.two.stdout}")
    await page.keyboard.press("o")
    await expect(page).to_have_url(re.compile(r"tab=conversation.*turn=turn_|turn=turn_.*tab=conversation"))


async def test_the_sessions_of_a_parallel_step_are_nested_and_linked(workplace: Workplace) -> None:
    group = {
        "kind": "parallel",
        "name": "work",
        "branches": "best",
        "check": "grep -q 42 answer",
        "sessions": [{"name": "first", "shell": "echo 1 > answer"}, {"name": "second", "shell": "echo 42 > answer"}],
    }
    session_id = await _queue(workplace, group, paused=False)
    page = await _open(workplace, session_id)
    row = _row(page, "work")
    await expect(row).to_contain_text("done")
    await row.locator("button[aria-expanded]").click()
    members = page.get_by_role("list", name="Sessions of the step").get_by_role("listitem")
    await expect(members.nth(0)).to_contain_text("failed")
    await expect(members.nth(1)).to_contain_text("taken over")
    await members.nth(1).get_by_role("link").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("second")


async def test_hostile_steps_are_text(workplace: Workplace) -> None:
    output = "printf '<script>alert(1)</script> \\033[2J \\342\\200\\256evil\\n'; exit 1"
    session_id = await _queue(
        workplace,
        _shell("one", output, on_failure="continue"),
        {"kind": "prompt", "content": f"{HOSTILE} {'x' * 5000}"},
        {"kind": "external", "instructions": "\u202e<b>bold</b>\u202c\u2066"},
        title="<script>alert(1)</script> \u202eevil",
    )
    page = await _open(workplace, session_id)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await expect(_row(page, "U+202E").first).to_be_visible()
    await _row(page, "x onerror").locator("button[aria-expanded]").click()
    await expect(page.get_by_role("region", name="Step")).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(page.locator("main img, main script, main b")).to_have_count(0)
    await page.keyboard.press(".")
    row = _row(page, "printf")
    await expect(row).to_contain_text("failed")
    await row.locator("button[aria-expanded]").click()
    await expect(row.get_by_label("Output")).to_contain_text("<script>alert(1)</script> ESC[2J U+202Eevil")
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1440
    assert dialogs == []


async def test_a_viewer_sees_the_queue_and_cannot_change_it(workplace: Workplace) -> None:
    session_id = await _queue(workplace, _shell("one"), _shell("two"))
    key = await workplace.create_viewer_key()
    page = await _open(workplace, session_id, key=key)
    await expect(_waiting(page)).to_have_count(2)
    await expect(page.get_by_role("button", name=re.compile("^(Play|Pause)$"))).to_have_count(1)
    await expect(page.get_by_text("Your role does not permit to change this session.").first).to_be_visible()
    for name in ("Play", "Next"):
        await expect(_playback(page).get_by_role("button", name=name)).to_be_disabled()
    await expect(page.get_by_role("button", name="Add a step")).to_be_disabled()
    await expect(page.get_by_label("Move one")).to_have_count(0)
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await page.keyboard.press("Alt+ArrowDown")
    await page.keyboard.press("Enter")
    await expect(_row(page, "one").get_by_role("button", name="Remove")).to_be_disabled()
    await _expect_order(page, "one", "two")


async def test_a_phone_plays_the_queue(workplace: Workplace) -> None:
    session_id = await _queue(workplace, _shell("one"))
    page = await _open(workplace, session_id, size=PHONE)
    play = _playback(page).get_by_role("button", name="Play")
    box = await play.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    await play.tap()
    await expect(_row(page, "one")).to_contain_text("done")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
