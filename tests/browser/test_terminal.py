"""The terminal of a session: opening, typing, watching, searching, detaching, lost connections and recordings."""

import json
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Locator, Page, expect

from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import hang, text

MARK = "$((40+2))"
"""The shell turns it into 42, so the output differs from what was typed."""


async def _session(workplace: Workplace, title: str = "Terminal") -> str:
    agent = await workplace.client.agent(extra_body={"harness": "native", "permissions": {"allow": ["Bash(*)"]}})
    return await workplace.client.session(agent, title=title)


async def _post(workplace: Workplace, path: str, body: dict[str, Any] | None = None) -> Any:
    return await workplace.client.sdk.post(path, body=body or {}, cast_to=dict[str, Any])


async def _open(workplace: Workplace, session_id: str, **options: Any) -> Page:
    return (await workplace.sign_in(path=f"/sessions/{session_id}?tab=terminal", **options)).page


def _screen(page: Page) -> Locator:
    return page.locator(".xterm-rows")


def _state(page: Page) -> Locator:
    return page.get_by_role("status", name="Terminal")


async def _open_shell(page: Page) -> None:
    await expect(_state(page)).to_contain_text("No shell is open")
    await page.keyboard.press("s")
    await expect(_state(page)).to_contain_text("You can type")
    await expect(_screen(page)).to_contain_text("$")


async def _enter(page: Page, command: str) -> None:
    await page.keyboard.type(command)
    await page.keyboard.press("Enter")


@pytest.mark.smoke
@pytest.mark.action("session.open-terminal")
async def test_one_types_and_another_who_may_not_only_watches(workplace: Workplace) -> None:
    session_id = await _session(workplace)
    ann = await _open(workplace, session_id)
    bob = await _open(workplace, session_id, key=await workplace.create_viewer_key())
    await expect(bob.get_by_role("button", name="Open a shell")).to_be_disabled()
    await expect(_state(bob)).to_contain_text("Your role does not permit")
    await _open_shell(ann)
    await _enter(ann, f"echo seen-{MARK}")
    await expect(_screen(ann)).to_contain_text("seen-42")
    await expect(_screen(bob)).to_contain_text("seen-42")
    await expect(bob.get_by_role("button", name="Type")).to_have_count(0)
    await bob.locator(".xterm").click()
    await _enter(bob, f"echo bob-{MARK}")
    await _enter(ann, f"echo after-{MARK}")
    await expect(_screen(bob)).to_contain_text("after-42")
    await expect(_screen(ann)).not_to_contain_text("bob-")
    await expect(_screen(bob)).not_to_contain_text("bob-")


@pytest.mark.action(
    "session.type-in-terminal",
    "session.watch-terminal",
    "session.detach-terminal",
    "session.attach-terminal",
)
async def test_detaching_and_returning_to_earlier_output(workplace: Workplace) -> None:
    page = await _open(workplace, await _session(workplace))
    await _open_shell(page)
    await _enter(page, f"echo before-{MARK}")
    await expect(_screen(page)).to_contain_text("before-42")
    await page.keyboard.press("Control+]")
    await expect(page.get_by_text("You left the terminal")).to_be_visible()
    await page.keyboard.press("w")
    await _enter(page, f"echo again-{MARK}")
    await expect(_screen(page)).to_contain_text("again-42")
    await page.get_by_role("button", name="Only watch").click()
    await expect(_state(page)).to_contain_text("You are watching")
    await page.locator(".xterm").click()
    await page.keyboard.type("lost")
    await page.get_by_role("button", name="Detach").click()
    await expect(_state(page)).to_contain_text("Detached")
    await page.get_by_role("button", name="Return").click()
    await expect(_screen(page)).to_contain_text("before-42")
    await expect(_screen(page)).to_contain_text("again-42")
    await expect(_screen(page)).not_to_contain_text("lost")
    await page.get_by_role("button", name="Type").click()
    await expect(_state(page)).to_contain_text("You can type")
    await page.get_by_role("tab", name="Forks").click()
    await page.get_by_role("tab", name="Terminal").click()
    await expect(_state(page)).to_contain_text("You can type")
    await expect(_screen(page)).to_contain_text("again-42")


@pytest.mark.action("session.search-terminal", "session.close-terminal", "session.download-recording")
async def test_searching_closing_and_the_recording(workplace: Workplace) -> None:
    page = await _open(workplace, await _session(workplace))
    await _open_shell(page)
    await _enter(page, f"echo needle-{MARK}; seq 200")
    await expect(_screen(page)).to_contain_text("200")
    await page.keyboard.press("Control+Shift+F")
    await page.get_by_label("Search in the terminal").fill("needle-42")
    await expect(_screen(page)).to_contain_text("needle-42")
    await page.get_by_label("Search in the terminal").fill("nowhere")
    await expect(page.get_by_text("No match")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Close the shell").click()
    await page.get_by_role("dialog").get_by_role("button", name="Close the shell").click()
    await expect(_state(page)).to_contain_text("The shell was closed")
    await page.get_by_text("1 recording of closed shells").click()
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name="Download").click()
    path = await (await waiting.value).path()
    header, *frames = path.read_text().splitlines()
    assert json.loads(header)["version"] == 2
    assert any("needle-42" in frame for frame in frames)


async def test_what_is_typed_while_the_connection_is_lost_is_sent_later(workplace: Workplace) -> None:
    workplace.expect(r"ERR_INTERNET_DISCONNECTED|WebSocket")
    page = await _open(workplace, await _session(workplace))
    await _open_shell(page)
    await _enter(page, f"echo one-{MARK}")
    await expect(_screen(page)).to_contain_text("one-42")
    await page.context.set_offline(True)
    await expect(_state(page)).to_contain_text("Connection lost")
    await _enter(page, f"echo two-{MARK}")
    await expect(_state(page)).to_contain_text("are kept and sent then")
    await page.context.set_offline(False)
    await expect(_screen(page)).to_contain_text("two-42")
    await expect(_screen(page)).to_contain_text("one-42")
    await expect(_state(page)).to_contain_text("You can type")


async def test_the_terminal_has_the_size_of_the_window(workplace: Workplace) -> None:
    page = await _open(workplace, await _session(workplace))
    await _open_shell(page)
    await _enter(page, "echo wide-$(stty size | cut -d' ' -f2)")
    await expect(_screen(page)).to_contain_text("wide-1")  # more than 99 columns
    await page.set_viewport_size({"width": 900, "height": 700})
    await page.wait_for_timeout(500)
    await _enter(page, "[ $(stty size | cut -d' ' -f2) -lt 100 ] && echo nar''row")
    await expect(_screen(page)).to_contain_text("narrow")


async def test_why_no_shell_opens_yet_and_why_never(workplace: Workplace) -> None:
    session_id = await workplace.start_session(replies([text("I think."), hang()]), title="Busy")
    page = await _open(workplace, session_id)
    await expect(page.locator("main")).to_contain_text("running")
    await expect(_state(page)).to_contain_text("No shell is open")
    await page.keyboard.press("s")
    await expect(_state(page)).to_contain_text("It opens when the current turn has ended.")
    await page.get_by_role("button", name="Do not open it").click()
    await expect(_state(page)).to_contain_text("No shell is open")

    ended = await _session(workplace, "Ended")
    await _post(workplace, f"/v1/sessions/{ended}/end", {"outcome": "completed"})
    page = await _open(workplace, ended)
    await expect(_state(page)).to_contain_text("The session has ended")
    await expect(page.get_by_role("button", name="Open a shell")).to_be_disabled()


async def test_a_queue_is_stepped_through_beside_the_terminal(workplace: Workplace) -> None:
    session_id = await _session(workplace)
    await _post(workplace, f"/v1/sessions/{session_id}/pause")
    step = {
        "kind": "shell",
        "name": "shown",
        "command": f"echo step-{MARK}; read line; echo got-$line",
        "terminal": True,
    }
    later = {"kind": "shell", "name": "later", "command": "echo later"}
    await _post(workplace, f"/v1/sessions/{session_id}/steps", {"steps": [step, later]})
    page = await _open(workplace, session_id)
    playback = page.get_by_role("region", name="Playback")
    await expect(playback).to_contain_text("Next: shown")
    await expect(_state(page)).to_contain_text("No shell is open")
    await playback.get_by_role("button", name="Next").click()
    await expect(_screen(page)).to_contain_text("step-42")
    await expect(_state(page)).to_contain_text("A command runs here")
    await page.get_by_role("button", name="Type").click()
    await expect(_state(page)).to_contain_text("You can type")
    await _enter(page, "yes")
    await expect(_screen(page)).to_contain_text("got-yes")
    await expect(playback).to_contain_text("Next: later")
    await expect(playback.get_by_role("button", name="Play")).to_be_visible()


async def test_hostile_output_stays_in_the_terminal(workplace: Workplace) -> None:
    page = await _open(workplace, await _session(workplace))
    await _open_shell(page)
    title = await page.title()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    hostile = (
        r"printf '\033]0;owned\007\033]52;c;b3duZWQ=\007\033]8;;https://example.com/\007link\033]8;;\007<img src=x>\n'"
    )
    await page.evaluate("navigator.clipboard.writeText('mine')")
    await _enter(page, f"{hostile}; echo end-{MARK}")
    await expect(_screen(page)).to_contain_text("end-42")
    await expect(_screen(page)).to_contain_text("<img src=x>")
    link = await page.get_by_text("link<img").first.bounding_box()
    assert link is not None
    await page.keyboard.down("Control")
    await page.mouse.click(link["x"] + 12, link["y"] + 6)
    await page.keyboard.up("Control")
    assert await page.title() == title
    assert await page.evaluate("navigator.clipboard.readText()") == "mine"
    assert len(page.context.pages) == 1
    assert all(url.startswith(page.url.split("/sessions")[0]) for url in requests)
    await expect(page.locator(".xterm img")).to_have_count(0)


async def test_a_phone_watches(workplace: Workplace) -> None:
    session_id = await _session(workplace)
    ann = await _open(workplace, session_id)
    phone = await _open(workplace, session_id, size=PHONE)
    await _open_shell(ann)
    await _enter(ann, f"echo small-{MARK}")
    await expect(_screen(phone)).to_contain_text("small-42")
    assert await phone.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
