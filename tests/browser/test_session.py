"""The session page: its conversation as it streams, messages, the header, links to events, and hostile content."""

import asyncio
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from bench.support.browser.dashboard_window import PATIENCE_MS, PHONE, DashboardWindow, Workplace
from bench.support.clients import TOOLSET, Client
from bench.support.retries.balancer import Balancer
from playwright.async_api import Download, Locator, Page, Route, expect

from footplate.stack.free_ports import find_free_port
from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import Step, hang, http_error, text, thinking, tool

expect.set_options(timeout=PATIENCE_MS)

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cfc0000000030001a5f645400000000049454e44ae426082"
)
MARKDOWN = "# Result\n\nThe **median** is wrong.\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def bash(command: str) -> Step:
    return tool("bash", {"command": command})


def conversation(page: Page) -> Locator:
    return page.get_by_role("log", name="Conversation")


def composer(page: Page) -> Locator:
    return page.get_by_label("Message to the agent")


async def open_session(workplace: Workplace, session_id: str, *, search: str = "", **options: Any) -> Page:
    window: DashboardWindow = await workplace.sign_in(path=f"/sessions/{session_id}{search}", **options)
    await expect(composer(window.page)).to_be_visible()
    return window.page


async def start_talk(workplace: Workplace, *answers: str, title: str = "Talk") -> str:
    """Starts a session that responds with these texts, one per message."""
    return await workplace.start_session(replies(*([text(answer)] for answer in answers)), title=title)


async def wait_for_events(client: Client, page: Page, session_id: str, kind: str, count: int = 1) -> list[Any]:
    for _ in range(150):
        found = [event for event in await client.events(session_id) if event["type"] == kind]
        if len(found) >= count:
            return found
        await page.wait_for_timeout(200)
    raise AssertionError(f"the session has no {count} events {kind}")


async def read_download(download: Download) -> str:
    return await asyncio.to_thread((await download.path()).read_text)


async def add_harness_and_project(route: Route) -> None:
    response = await route.fetch()
    session = await response.json()
    session["agent"]["harness"] = "claude"
    session["project_ids"] = ["proj_1"]
    await route.fulfill(response=response, json=session)


async def run_from_palette(page: Page, title: str) -> None:
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(title)
    await page.get_by_role("option", name=title, exact=False).first.click()


@pytest.mark.smoke
@pytest.mark.action("session.send", "session.reply")
async def test_two_windows_see_each_others_messages(workplace: Workplace) -> None:
    session_id = await start_talk(workplace, "First answer.", "Second answer.", "Third answer.")
    ann = await open_session(workplace, session_id)
    bob = await open_session(workplace, session_id)
    await expect(conversation(ann).get_by_text("First answer.")).to_be_visible()
    await ann.keyboard.press("r")
    await ann.keyboard.type("From Ann")
    await ann.keyboard.press("Enter")
    await expect(conversation(bob).get_by_text("From Ann")).to_be_visible()
    await expect(composer(ann)).to_have_value("")
    await composer(bob).fill("From Bob")
    await run_from_palette(bob, "Send the message")
    for page in (ann, bob):
        for message in ("First answer.", "From Ann", "Second answer.", "From Bob", "Third answer."):
            await expect(conversation(page).get_by_text(message)).to_have_count(1)


@pytest.mark.timing
async def test_a_message_is_in_the_other_window_within_a_second(workplace: Workplace) -> None:
    session_id = await start_talk(workplace, "First answer.", "Second answer.")
    ann = await open_session(workplace, session_id)
    bob = await open_session(workplace, session_id)
    await expect(conversation(bob).get_by_text("First answer.")).to_be_visible()
    await composer(ann).fill("How fast is this?")
    began = time.monotonic()
    await composer(ann).press("Enter")
    await bob.wait_for_selector("[data-testid=conversation] >> text=How fast is this?")
    assert time.monotonic() - began < 1


async def test_text_streams_and_becomes_markdown(workplace: Workplace) -> None:
    long = "\n\n".join(f"Paragraph {number} of the answer." for number in range(60))
    script = replies(
        [text("Ready.")],
        [thinking("I think about it."), text(f"{MARKDOWN}\n{long}\n\nThe end.", chunks=60, delay=0.1)],
    )
    session_id = await workplace.start_session(script, title="Stream")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("Ready.")).to_be_visible()
    await workplace.client.send_text(session_id, "Report")
    preview = page.get_by_test_id("preview")
    await expect(preview).to_be_visible()
    await expect(preview.get_by_role("heading", name="Result")).to_be_visible()
    await expect(conversation(page).get_by_text("The end.")).to_be_in_viewport()
    await expect(preview).to_have_count(0)
    await expect(conversation(page).get_by_text("thinking", exact=True)).to_have_count(1)


async def test_reading_is_not_moved_by_what_arrives(workplace: Workplace) -> None:
    long = "\n\n".join(f"Paragraph {number}." for number in range(80))
    session_id = await start_talk(workplace, long, "News from the agent.")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("Paragraph 79.")).to_be_in_viewport()
    await conversation(page).evaluate("element => element.scrollTo(0, 200)")
    await expect(page.get_by_role("button", name="To the end")).to_be_visible()
    before = await conversation(page).evaluate("element => element.scrollTop")
    await workplace.client.send_text(session_id, "Go on")
    await page.get_by_role("button", name="New below").wait_for()
    assert abs(await conversation(page).evaluate("element => element.scrollTop") - before) < 2
    await page.get_by_role("button", name="New below").click()
    await expect(conversation(page).get_by_text("News from the agent.")).to_be_in_viewport()


async def test_a_cut_network_heals_without_a_reload(workplace: Workplace) -> None:
    workplace.expect(r"ERR_|Failed to load")
    session_id = await start_talk(workplace, "First answer.", "Second answer.", "Third answer.")
    async with Balancer() as network:
        network.turn_to(workplace.cluster.ports[0])
        window = await workplace.open_window()
        page = window.page
        await page.goto(f"{network.url}/sessions/{session_id}")
        await page.get_by_label("API key").fill(workplace.key)
        await page.keyboard.press("Enter")
        await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
        await page.evaluate("window.isSamePage = true")
        network.turn_to(find_free_port())
        await page.wait_for_selector("[data-feed-state=offline]", state="attached")
        await expect(page.get_by_text("The connection is lost.")).to_be_visible()
        await workplace.client.send_text(session_id, "While you were away")
        await wait_for_events(workplace.client, page, session_id, "agent.message", 2)
        network.turn_to(workplace.cluster.ports[0])
        await expect(conversation(page).get_by_text("Second answer.")).to_be_visible()
        await composer(page).fill("I am back")
        await composer(page).press("Enter")
        await expect(conversation(page).get_by_text("Third answer.")).to_be_visible()
        for message in ("First answer.", "While you were away", "Second answer.", "I am back", "Third answer."):
            await expect(conversation(page).get_by_text(message)).to_have_count(1)
        assert await page.evaluate("window.isSamePage")


@pytest.mark.timing
async def test_an_api_that_is_killed_while_it_streams_loses_nothing(workplace: Workplace) -> None:
    workplace.expect(r"ERR_|502|503|Failed to load")
    parts = [f"word{number} " for number in range(150)]
    session_id = await workplace.start_session(replies([text("".join(parts), chunks=150, delay=0.1)]), title="Kill")
    page = await open_session(workplace, session_id)
    await page.evaluate("window.isSamePage = true")
    await expect(conversation(page).get_by_text("word5")).to_be_visible()
    await workplace.cluster.kill_api(0)
    await page.wait_for_timeout(500)
    await workplace.cluster.restart_api(0)
    await expect(conversation(page).get_by_text("word149")).to_be_visible()
    await wait_for_events(workplace.client, page, session_id, "agent.message")
    await expect(page.get_by_test_id("preview")).to_have_count(0)
    shown = await conversation(page).inner_text()
    assert [shown.count(part.strip()) for part in parts if int(part[4:]) >= 100] == [1] * 50
    assert await page.evaluate("window.isSamePage")


@pytest.mark.action("session.steer", "session.interrupt-and-send", "session.interrupt")
async def test_a_running_turn_is_steered_and_interrupted(workplace: Workplace) -> None:
    script = replies([text("I begin."), bash("sleep 60")], [text("Understood."), hang()], [text("New start.")])
    session_id = await workplace.start_session(script, title="Steer")
    page = await open_session(workplace, session_id)
    await expect(page.get_by_role("button", name="Steer now")).to_be_visible()
    await expect(page.get_by_text("Starts when the turn has ended")).to_be_visible()
    await composer(page).fill("Use the other file")
    await composer(page).press("Alt+Enter")
    await expect(composer(page)).to_have_value("")
    await wait_for_events(workplace.client, page, session_id, "user.message", 2)
    await composer(page).fill("Stop that, begin again")
    await page.get_by_role("button", name="More ways to send").click()
    await page.get_by_role("menuitem", name="Interrupt the turn and send").click()
    await expect(conversation(page).get_by_text("Stop that, begin again")).to_be_visible()
    await wait_for_events(workplace.client, page, session_id, "user.message", 3)

    session_id = await workplace.start_session(replies([text("I begin."), bash("sleep 60")]), title="Interrupt")
    page = await open_session(workplace, session_id)
    await page.get_by_role("button", name="Interrupt").click()
    await expect(conversation(page).get_by_text("Interrupted by a person")).to_be_visible()
    await wait_for_events(workplace.client, page, session_id, "user.interrupt")


@pytest.mark.action("session.attach")
async def test_files_are_attached_by_button_paste_and_drop(workplace: Workplace, tmp_path: Path) -> None:
    session_id = await start_talk(workplace, "First answer.", "I see a pixel.")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
    (tmp_path / "pixel.png").write_bytes(PIXEL)
    async with page.expect_file_chooser() as choosing:
        await run_from_palette(page, "Attach files")
    await (await choosing.value).set_files(tmp_path / "pixel.png")
    files = page.get_by_role("list", name="Files to send").get_by_role("listitem")
    await expect(files).to_have_count(1)
    give = """(element, [kind, field, name]) => {
      const data = new DataTransfer();
      data.items.add(new File(["some notes"], name, { type: "text/plain" }));
      const Kind = kind === "paste" ? ClipboardEvent : DragEvent;
      element.dispatchEvent(new Kind(kind, { [field]: data, bubbles: true, cancelable: true }));
    }"""
    await composer(page).evaluate(give, ["paste", "clipboardData", "pasted.txt"])
    await composer(page).evaluate(give, ["drop", "dataTransfer", "dropped.txt"])
    await expect(files).to_have_count(3)
    await expect(page.get_by_text("uploading")).to_have_count(0)
    await page.get_by_role("button", name="Remove dropped.txt").click()
    await composer(page).fill("What is this?")
    await composer(page).press("Enter")
    await expect(conversation(page).get_by_role("img", name="Image")).to_be_visible()
    width = await conversation(page).get_by_role("img", name="Image").evaluate("image => image.naturalWidth")
    assert width == 1
    await expect(conversation(page).get_by_text("pasted.txt")).to_be_visible()
    await expect(conversation(page).get_by_text("dropped.txt")).to_have_count(0)


async def test_a_message_that_was_not_sent_stays_and_drafts_survive(workplace: Workplace) -> None:
    workplace.expect(r"ERR_|Failed to load")
    session_id = await start_talk(workplace, "First answer.", "Second answer.")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
    await composer(page).fill("An important message")
    await page.keyboard.press("Escape")
    await page.keyboard.press("g")
    await page.keyboard.press("s")
    await expect(page).to_have_url(re.compile("/sessions$"))
    await page.go_back()
    await expect(composer(page)).to_have_value("An important message")
    await page.route("**/events", lambda route: route.abort() if route.request.method == "POST" else route.fallback())
    await composer(page).press("Enter")
    await expect(page.get_by_text("The message was not sent")).to_be_visible()
    await expect(composer(page)).to_have_value("An important message")
    await page.unroute("**/events")
    await composer(page).press("Enter")
    await expect(conversation(page).get_by_text("Second answer.")).to_be_visible()
    await expect(conversation(page).get_by_text("An important message")).to_have_count(1)
    await page.reload()
    await expect(composer(page)).to_have_value("")


@pytest.mark.action("session.open-event", "session.show-output", "session.next-event", "session.previous-event")
async def test_tool_calls_open_with_input_and_output(workplace: Workplace) -> None:
    script = replies(
        [thinking("A plan."), bash("seq 1 500")], [bash("echo broken; exit 3")], [text("One worked, one failed.")]
    )
    session_id = await workplace.start_session(script, title="Tools")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("One worked, one failed.")).to_be_visible()
    worked = conversation(page).get_by_role("button", name=re.compile("seq 1 500.*done"))
    failed = conversation(page).get_by_role("button", name=re.compile("exit 3.*failed"))
    await expect(worked).to_be_visible()
    await expect(failed).to_be_visible()
    await page.keyboard.press("k")  # the last message
    await page.keyboard.press("k")
    await page.keyboard.press("k")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await expect(worked).to_have_attribute("aria-expanded", "true")
    await expect(conversation(page).get_by_role("region", name="Command")).to_contain_text("seq 1 500")
    await page.mouse.move(0, 0)
    await page.keyboard.press("o")
    pane = page.get_by_role("dialog", name="Output of bash")
    await pane.get_by_label("Search the output").fill("499")
    await expect(pane.get_by_text("1 of 500 lines")).to_be_visible()
    async with page.expect_download() as downloading:
        await pane.get_by_role("button", name="Download").click()
    lines = (await read_download(await downloading.value)).split("\n")
    assert lines[:3] == ["1", "2", "3"]
    await page.keyboard.press("Escape")
    await expect(pane).to_have_count(0)
    await expect(conversation(page).get_by_text("broken [exit code 3]")).to_be_visible()


@pytest.mark.action(
    "session.next-turn", "session.previous-turn", "session.copy-event-link", "session.newest", "session.fork-here"
)
async def test_turns_and_events_have_links_and_can_be_forked(workplace: Workplace) -> None:
    long = "\n\n".join(f"Line {number}." for number in range(60))
    session_id = await start_talk(workplace, f"Alpha.\n\n{long}", f"Beta.\n\n{long}", f"Gamma.\n\n{long}\n\nThe end.")
    page = await open_session(workplace, session_id)
    for message in ("Second", "Third"):
        await workplace.client.send_text(session_id, message)
    await wait_for_events(workplace.client, page, session_id, "agent.message", 3)
    turns = page.get_by_role("navigation", name="Turns").get_by_role("button")
    await expect(turns).to_have_count(3)
    await expect(turns.last).to_contain_text("1.1k")
    await expect(conversation(page).get_by_text("The end.")).to_be_in_viewport()
    await turns.first.click()
    await expect(conversation(page).get_by_text("Alpha.")).to_be_in_viewport()
    await expect(page).to_have_url(re.compile("turn=turn_"))
    await page.keyboard.press("]")
    await expect(conversation(page).get_by_text("Beta.")).to_be_in_viewport()
    await page.keyboard.press("[")
    await expect(conversation(page).get_by_text("Alpha.")).to_be_in_viewport()
    await page.keyboard.press("Shift+G")
    await expect(conversation(page).get_by_text("The end.")).to_be_in_viewport()

    await turns.nth(1).click()
    await expect(conversation(page).get_by_text("Beta.")).to_be_in_viewport()
    await conversation(page).get_by_text("Beta.").hover()
    await page.keyboard.press("Shift+Y")
    await expect(page.get_by_text("Link to the event copied")).to_be_visible()
    link = await page.evaluate("navigator.clipboard.readText()")
    assert "event=sevt_" in link
    await conversation(page).get_by_text("Beta.").hover()
    await page.keyboard.press("f")
    await page.get_by_label("Continue with a message").fill("Another way")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Talk (fork)")).to_be_visible()
    await expect(conversation(page).get_by_text("Another way")).to_be_visible()
    await expect(conversation(page).get_by_text("Third", exact=True)).to_have_count(0)
    fork_id = urlparse(page.url).path.rsplit("/", 1)[-1]
    assert fork_id != session_id

    await page.goto(f"{urlparse(link).scheme}://{urlparse(link).netloc}/sessions/{session_id}")
    await conversation(page).get_by_text("Third", exact=True).hover()
    await page.keyboard.press("f")
    await expect(page.get_by_role("dialog")).to_contain_text("before this message")
    await expect(page.get_by_label("Continue with a message")).to_have_value("Third")
    await page.get_by_label("Continue with a message").fill("Instead of it")
    await page.keyboard.press("Enter")
    await expect(conversation(page).get_by_text("Instead of it")).to_be_visible()
    await expect(conversation(page).get_by_text("Third", exact=True)).to_have_count(0)

    await page.goto(link)
    selected = conversation(page).locator("[data-selected]")
    await expect(selected).to_contain_text("Beta.")
    await expect(selected.get_by_text("Beta.")).to_be_visible()


async def test_a_link_to_an_event_far_back_loads_the_log_up_to_it(workplace: Workplace) -> None:
    """The list route is read page by page. Small pages stand for a long log."""
    session_id = await start_talk(workplace, *(f"Answer {number}." for number in range(12)))
    for number in range(1, 12):
        await workplace.client.send_text(session_id, f"Message {number}")
    window = await workplace.sign_in(path="/inbox")
    page = window.page
    messages = await wait_for_events(workplace.client, page, session_id, "agent.message", 12)

    async def shorten(route: Any) -> None:
        await route.continue_(url=re.sub(r"limit=\d+", "limit=10", route.request.url))

    await page.route(re.compile(r"/events\?limit"), shorten)
    await page.goto(f"{window.base_url}/sessions/{session_id}?event={messages[0]['id']}")
    await expect(conversation(page).locator("[data-selected]")).to_contain_text("Answer 0.")
    await page.goto(f"{window.base_url}/sessions/{session_id}?event=sevt_01m7rs9jcqejp34gsarbw348pn")
    await expect(page.get_by_text("The event of this link is not in this session.")).to_be_visible()


async def test_a_subagent_is_a_nested_thread_that_opens(workplace: Workplace) -> None:
    client, model = workplace.client, workplace.cluster.model
    body = {"harness": "native", "permissions": {"allow": ["Bash(*)"]}}
    reviewer = await client.agent(name="reviewer", tools=[TOOLSET], extra_body=body)
    lead = await client.agent(
        name="lead", tools=[TOOLSET], multiagent={"type": "coordinator", "agents": [reviewer]}, extra_body=body
    )
    helper, main = (f"browser-{secrets.token_hex(6)}" for _ in range(2))
    await model.install(helper, replies([bash("echo inside")], [text("The mean fails for an empty list.")]))
    task = {"description": "Review", "prompt": f"Review it [[script:{helper}]]", "subagent_type": "reviewer"}
    await model.install(main, replies([tool("Agent", task)], [text("The reviewer found one problem.")]))
    session_id = await client.session(lead, title="Delegate")
    await client.send_text(session_id, f"Let a helper review it [[script:{main}]]")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("The reviewer found one problem.")).to_be_visible()
    thread = page.get_by_role("region", name="Subagent reviewer")
    await expect(thread.get_by_text("done")).to_be_visible()
    await thread.get_by_role("button", name="reviewer").click()
    await expect(thread.get_by_text("The mean fails for an empty list.")).to_be_visible()
    await expect(thread.get_by_role("button", name=re.compile("echo inside.*done"))).to_be_visible()
    if shot := os.environ.get("SHOT"):
        await page.screenshot(path=shot)


async def test_calls_and_questions_are_decided_in_the_conversation(workplace: Workplace) -> None:
    ask = tool("ask_user", {"questions": [{"question": "Which one?", "header": "One", "options": [{"label": "Red"}]}]})
    script = replies([bash("touch a.txt")], [ask], [text("Thank you.")])
    session_id = await workplace.start_session(script, title="Decide", permissions={"ask": ["Bash(touch *)"]})
    page = await open_session(workplace, session_id)
    panel = page.get_by_test_id("decision")
    await expect(panel).to_contain_text("touch a.txt")
    await expect(panel.get_by_role("button", name="Allow")).to_be_enabled()
    await page.wait_for_timeout(400)
    await panel.get_by_role("button", name="Allow").click()
    await expect(page.get_by_role("group", name="Which one?")).to_be_visible()
    await page.get_by_role("radio", name="Red").check()
    await panel.get_by_role("button", name="Answer").click()
    await expect(conversation(page).get_by_text("Thank you.")).to_be_visible()
    await expect(panel).to_have_count(0)


@pytest.mark.action("session.pause", "session.play", "session.rename", "session.pin", "session.unpin")
async def test_pause_play_rename_and_pin(workplace: Workplace) -> None:
    session_id = await start_talk(workplace, "First answer.", "Second answer.")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
    await page.keyboard.press("p")
    await expect(page.get_by_role("button", name="Play")).to_be_visible()
    await composer(page).fill("Wait for it")
    await composer(page).press("Enter")
    await expect(conversation(page).get_by_text("In the queue.")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("p")
    await expect(conversation(page).get_by_text("Second answer.")).to_be_visible()
    await page.keyboard.press("Shift+R")
    await page.get_by_label("Title of the session").fill("A better name 🚀")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("A better name")
    await run_from_palette(page, "Pin the session")
    pinned = page.get_by_role("region", name="Pinned").get_by_role("link")
    await expect(pinned).to_have_count(1)
    await expect(pinned).to_contain_text("A better name")
    await run_from_palette(page, "Unpin the session")
    await expect(pinned).to_have_count(0)


@pytest.mark.action("session.export-events", "session.export-transcript", "session.export-bundle", "session.fork")
async def test_exports_and_a_fork_of_the_newest_event(workplace: Workplace) -> None:
    session_id = await start_talk(workplace, "First answer.", "Second answer.")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
    async with page.expect_download() as downloading:
        await run_from_palette(page, "Export the events")
    assert "agent.message" in await read_download(await downloading.value)
    # This session has no transcript of Claude Code and no commits, so neither is offered.
    await page.get_by_role("button", name="More actions of the session").click()
    await expect(page.get_by_role("menuitem", name="Events")).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Transcript")).to_have_count(0)
    await expect(page.get_by_role("menuitem", name="Commits")).to_have_count(0)
    await page.keyboard.press("Escape")
    # The page as it is for a session that has both.
    await page.route(f"**/v1/sessions/{session_id}", add_harness_and_project)
    for path in ("transcript", "bundle"):
        await page.route(f"**/v1/sessions/{session_id}/{path}*", lambda route: route.fulfill(body=route.request.url))
    await page.reload()
    for title, path in (("Export the transcript", "/transcript"), ("Export the commits", "/bundle?project_id=proj_1")):
        await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
        async with page.expect_download() as downloading:
            await run_from_palette(page, title)
        assert path in await read_download(await downloading.value)
    await page.keyboard.press("Shift+F")
    await page.get_by_role("button", name="Fork").last.click()
    await expect(page.get_by_role("heading", name="Talk (fork)")).to_be_visible()
    await expect(conversation(page).get_by_text("Forked from another session here")).to_be_visible()


@pytest.mark.action("session.end", "session.archive", "session.delete")
async def test_end_archive_and_delete_ask_first(workplace: Workplace) -> None:
    session_id = await start_talk(workplace, "First answer.")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
    menu = page.get_by_role("button", name="More actions of the session")
    await menu.click()
    await page.get_by_role("menuitem", name="End").click()
    await page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    await expect(conversation(page).get_by_text("Session ended")).to_be_visible()
    await expect(composer(page)).to_be_disabled()
    await menu.click()
    await page.get_by_role("menuitem", name="Archive").click()
    await page.get_by_role("dialog").get_by_role("button", name="Archive", exact=True).click()
    await expect(page.get_by_text("archived", exact=True)).to_be_visible()
    await menu.click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await menu.click()
    await page.get_by_role("menuitem", name="Delete").click()
    workplace.expect(r"404")
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    await expect(page).to_have_url(re.compile("/sessions$"))
    await page.goto(f"{workplace.cluster.base_urls[0]}/sessions/{session_id}")
    await expect(page.get_by_text("This session does not exist")).to_be_visible()


@pytest.mark.action(
    "session.tab-conversation",
    "session.tab-changes",
    "session.tab-files",
    "session.tab-terminal",
    "session.tab-steps",
    "session.tab-children",
    "session.tab-forks",
)
async def test_tabs_open_by_keyboard_and_are_in_the_address(workplace: Workplace) -> None:
    workplace.expect(r".*")  # what the tabs load is tested with them
    session_id = await start_talk(workplace, "First answer.")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
    names = ("conversation", "changes", "files", "terminal", "steps", "children", "forks")
    for number, name in reversed(list(enumerate(names, start=1))):
        await page.get_by_role("heading", level=1).click()
        await page.keyboard.press(str(number))
        await expect(page).to_have_url(re.compile(f"tab={name}"))
        await expect(page.get_by_role("tab", name=name.capitalize())).to_have_attribute("aria-selected", "true")
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()


async def test_a_failure_is_explained_and_a_message_continues(workplace: Workplace) -> None:
    script = replies([http_error(400, message="the model is gone")], [text("Better now.")])
    session_id = await workplace.start_session(script, title="Fail")
    page = await open_session(workplace, session_id)
    await expect(conversation(page).get_by_role("alert")).to_contain_text("the model is gone")


async def test_a_viewer_reads_and_sees_why_nothing_can_be_changed(workplace: Workplace) -> None:
    session_id = await start_talk(workplace, "First answer.")
    created: Any = await workplace.client.sdk.post(
        "/v1/api_keys", body={"name": "viewer", "roles": ["viewer"]}, cast_to=dict[str, Any]
    )
    page = await open_session(workplace, session_id, key=str(created["secret"]))
    await expect(conversation(page).get_by_text("First answer.")).to_be_visible()
    await expect(composer(page)).to_be_disabled()
    await expect(composer(page)).to_have_attribute("placeholder", re.compile("Your role does not permit"))
    await expect(page.get_by_role("button", name="Pause")).to_have_count(0)


async def test_a_phone_reads_and_writes_with_one_thumb(workplace: Workplace) -> None:
    script = replies([bash("echo " + "x" * 400)], [text(f"{MARKDOWN}\n\n{'y' * 500}")], [text("Thanks.")])
    session_id = await workplace.start_session(script, title="Phone")
    page = await open_session(workplace, session_id, size=PHONE)
    await expect(conversation(page).get_by_text("yyyy")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    await composer(page).fill("From the train")
    send = page.get_by_role("button", name="Send")
    box = await send.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    await send.tap()
    await expect(conversation(page).get_by_text("Thanks.")).to_be_visible()


HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>)",
    "![pixel](https://evil.example/pixel.png) ![x](//evil.example/y.png) <iframe src='https://evil.example'></iframe>",
    "<svg onload='window.hacked=1'><a href='https://evil.example' ping='https://evil.example/ping'>x</a></svg>",
    "<style>@import url(https://evil.example/x.css)</style><link rel=stylesheet href=https://evil.example/y.css>",
    "```html\n<script>window.hacked = 1</script>\n```",
    "```constructor\nx\n```\n```__proto__\ny\n```",
    "> " * 3_000 + "deep",
    "[" * 20_000,
    "\n".join(f"{'  ' * depth}- nested" for depth in range(300)),
    "z" * 150_000,
    "a\u202eb\u2066c\u2069 \u200b\u0007 \x1b[31mred",
    "$\\href{javascript:window.hacked=1}{x}$ ```mermaid\ngraph TD; A-->B; click A href 'https://evil.example'\n```",
    "|" + "a|" * 3_000,
    "https://evil.example/auto www.evil.example <https://evil.example> mailto:x@evil.example",
)


async def test_hostile_content_executes_nothing_and_requests_nothing(workplace: Workplace) -> None:
    script = replies(
        *(
            [thinking(one), text(one), bash(f"echo {'<b onclick=alert(1)>' * 50} # {one[:500]!r}")]
            for one in HOSTILE[:6]
        ),
        [text("\n\n".join(HOSTILE[6:10]))],
        *([text(one)] for one in HOSTILE[10:]),
    )
    session_id = await workplace.start_session(script, title=HOSTILE[0], permissions={"allow": ["Bash(*)"]})
    for one in HOSTILE[10:]:
        await workplace.client.send_text(session_id, one)
    window = await workplace.open_window()
    page = window.page
    foreign: list[str] = []
    page.on(
        "request",
        lambda request: (
            foreign.append(request.url) if not request.url.startswith((window.base_url, "data:", "blob:")) else None
        ),
    )
    await page.goto(f"{window.base_url}/sessions/{session_id}")
    await page.get_by_label("API key").fill(workplace.key)
    await page.keyboard.press("Enter")
    await expect(composer(page)).to_be_visible()
    await wait_for_events(workplace.client, page, session_id, "agent.message", 7 + len(HOSTILE[10:]))
    # Through all of it, so that every row was shown once.
    top = 1.0
    while top > 0:
        top = await conversation(page).evaluate(
            "async (element) => { element.scrollBy(0, -600); "
            "await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30))); "
            "return element.scrollTop; }"
        )
    await expect(conversation(page).get_by_text("window.hacked = 1").first).to_be_visible()
    for button in await conversation(page).get_by_role("button", name=re.compile("thinking|bash")).all():
        if await button.is_visible():
            await button.click()
    assert await page.evaluate("window.hacked") is None
    assert foreign == []
    links = await conversation(page).locator("a[href]").evaluate_all("found => found.map((one) => [one.href, one.rel])")
    assert all(re.match(r"(https?|mailto):", href) and rel == "noopener noreferrer" for href, rel in links), links
