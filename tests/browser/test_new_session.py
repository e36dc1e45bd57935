"""A new session: the task and its attachments, several attempts, templates, the draft, and the same as a command."""

import asyncio
import base64
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from playwright.async_api import Page, expect

from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import text

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TRICKY = 'It\'s "quoted" $(touch /tmp/no) `x` \\ ünï 🚀\n- second line'
ADD_FILE = """(element, [kind, name]) => {
  const data = new DataTransfer();
  data.items.add(new File(["content"], name, { type: "text/csv" }));
  const event = kind === "drop"
    ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
    : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
  element.dispatchEvent(event);
}"""
READ_EVENTS = "id => fetch(`/v1/sessions/${id}/events`).then((response) => response.json())"
RULES_FOR_TESTS = {"allow": ["Bash(*)", "Edit", "Write"]}


async def _open(workplace: Workplace, **options: Any) -> Page:
    """Opens the page, with an agent and an environment."""
    agent = await workplace.client.agent(
        name="engineer", extra_body={"harness": "native", "permissions": RULES_FOR_TESTS}
    )
    await workplace.client.session(agent, title="Older")
    window = await workplace.sign_in(**options)
    await window.open_page("/new")
    return window.page


async def _script(workplace: Workplace, name: str) -> str:
    """Returns a text that lets the model reply."""
    await workplace.cluster.model.install(name, replies([text("Done.")], [text("Done.")]))
    return f"[[script:{name}]]"


async def _started(page: Page) -> str:
    await expect(page).to_have_url(re.compile("/sessions/sesn_"))
    found = re.search(r"sesn_\w+", page.url)
    assert found is not None
    return found[0]


async def _get(workplace: Workplace, path: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(path, cast_to=dict[str, Any])


async def _task(page: Page, session_id: str) -> list[dict[str, Any]]:
    """Returns the blocks of the first message. The official SDK does not know those of type `file`."""
    events = await page.evaluate(READ_EVENTS, session_id)
    return next(event["content"] for event in events["data"] if event["type"] == "user.message")


async def _run(page: Page, action: str) -> None:
    """Runs an action by the palette."""
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(action)
    await expect(page.get_by_role("option", name=action, selected=True)).to_be_visible()
    await page.keyboard.press("Enter")


@pytest.mark.smoke
@pytest.mark.action("new.start", "new.more")
async def test_a_draft_survives_and_starts_with_a_shortcut(workplace: Workplace) -> None:
    page = await _open(workplace)
    task = f"Fix the tests {await _script(workplace, 'new-start')}\nand explain."
    await page.get_by_label("Task").fill(task)
    await _run(page, "Show more options")
    await page.get_by_label("Title").fill("Tests")
    await page.get_by_label("Model requests per turn").fill("7")
    await page.get_by_role("link", name="Sessions").first.click()
    await page.keyboard.press("n")
    await expect(page.get_by_label("Task")).to_have_value(task)
    await page.reload()
    await expect(page.get_by_label("Task")).to_have_value(task)
    await page.get_by_label("Task").press("Control+Enter")
    session_id = await _started(page)
    session = await _get(workplace, f"/v1/sessions/{session_id}")
    assert session["title"] == "Tests"
    assert session["agent"]["limits"] == {"max_iterations": 7}
    assert await _task(page, session_id) == [{"type": "text", "text": task}]
    await page.keyboard.press("n")
    await expect(page.get_by_label("Task")).to_have_value("")


@pytest.mark.action("new.attach")
async def test_attachments_by_button_drop_and_paste(workplace: Workplace) -> None:
    page = await _open(workplace)
    field = page.get_by_label("Task")
    async with page.expect_file_chooser() as chooser:
        await _run(page, "Attach files")
    await (await chooser.value).set_files({"name": "a.png", "mimeType": "image/png", "buffer": PIXEL})
    await expect(page.get_by_test_id("attachment")).to_have_count(1)
    await field.evaluate(ADD_FILE, ["drop", "b.csv"])
    await field.evaluate(ADD_FILE, ["paste", "c.csv"])
    await expect(page.get_by_text("uploading")).to_have_count(0)
    await expect(page.get_by_test_id("attachment")).to_have_count(3)
    await page.get_by_role("button", name="Remove c.csv").click()
    await field.fill(f"Look at these {await _script(workplace, 'new-files')}")
    await page.get_by_role("button", name="Start session").click()
    content = await _task(page, await _started(page))
    assert [block["type"] for block in content] == ["text", "image", "file"]
    files = await _get(workplace, "/v1/files")
    assert {one["visibility"] for one in files["data"]} == {"private"}


async def test_several_attempts_and_a_check_that_keeps_one(workplace: Workplace) -> None:
    page = await _open(workplace)
    await page.get_by_label("Task").fill(f"Try it {await _script(workplace, 'new-attempts')}")
    await page.get_by_label("Attempts").click()
    await page.get_by_role("option", name="3 attempts").click()
    await page.get_by_label("Check").fill("true")
    await page.get_by_role("button", name="Start 3 attempts").click()
    await expect(page).to_have_url(re.compile("/sessions/sesn_[^/]*tab=children"))
    rows = page.get_by_role("list", name="Children").get_by_role("listitem")
    await expect(rows.filter(has_text="Attempt 3:").filter(has_text="done")).to_have_count(1)
    await expect(rows.filter(has_text="Attempt ").filter(has_text="done")).to_have_count(3)


async def test_a_repository_can_be_added_from_the_form(workplace: Workplace) -> None:
    page = await _open(workplace)
    await page.get_by_label("Task").fill("Work on another repository")
    await page.get_by_role("link", name="Add a repository").click()
    await expect(page).to_have_url(re.compile("section=projects&item=new"))
    await page.go_back()
    await expect(page.get_by_label("Task")).to_have_value("Work on another repository")


@pytest.mark.action("new.save-template", "new.use-template", "new.delete-template", "new.clear")
async def test_a_template_makes_the_round_trip(workplace: Workplace) -> None:
    page = await _open(workplace)
    await page.get_by_label("Task").fill("Update all dependencies")
    await page.get_by_label("Attempts").click()
    await page.get_by_role("option", name="2 attempts").click()
    await page.get_by_label("Check").fill("make test")
    await page.get_by_role("button", name="More options").click()
    await page.get_by_label("Ask first").fill("Bash(git push *)")
    await _run(page, "Save as a template")
    await page.get_by_label("Name of the template").fill("Dependencies")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Template saved")).to_be_visible()
    await _run(page, "Clear the draft")
    await expect(page.get_by_label("Task")).to_have_value("")
    await _run(page, "Use a template")
    await page.get_by_role("menuitem", name="Dependencies").click()
    await expect(page.get_by_label("Task")).to_have_value("Update all dependencies")
    await expect(page.get_by_label("Check")).to_have_value("make test")
    await expect(page.get_by_label("Ask first")).to_have_value("Bash(git push *)")
    await expect(page.get_by_role("button", name="Start 2 attempts")).to_be_visible()
    await _run(page, "Delete a template")
    await page.get_by_role("button", name="Delete Dependencies").click()
    await expect(page.get_by_text("There are no templates.")).to_be_visible()
    assert (await _get(workplace, "/v1/session_templates"))["data"] == []


@pytest.mark.action("new.copy-command", "new.copy-python")
async def test_the_copied_command_and_python_start_the_same(workplace: Workplace) -> None:
    page = await _open(workplace)
    task = f"{TRICKY} {await _script(workplace, 'new-copy')}"
    await page.get_by_label("Task").fill(task)
    await page.get_by_role("button", name="More options").click()
    await page.get_by_label("Mode", exact=True).click()
    await page.get_by_role("option", name="Background").click()
    command = await _copy(page, "Copy as a command", "footplate run ")
    code = await _copy(page, "Copy as Python", "import asyncio")
    await page.get_by_label("Deny").fill("Bash(rm *)")
    request = await _copy(page, "Copy as a command", "curl ")
    for arguments in (["sh", "-c", command], [sys.executable, "-c", code], ["sh", "-c", request]):
        output = await _execute(workplace, *arguments)
        found = re.search(r"sesn_\w+", output)
        assert found is not None, output
        assert (await _task(page, found[0]))[0]["text"] == task
        assert (await _get(workplace, f"/v1/sessions/{found[0]}"))["mode"] == "background"


async def _copy(page: Page, action: str, start: str) -> str:
    """Runs the action. Returns what is then in the clipboard."""
    await _run(page, action)
    is_copied = "async (start) => (await navigator.clipboard.readText()).startsWith(start)"
    await page.wait_for_function(is_copied, arg=start)
    return str(await page.evaluate("navigator.clipboard.readText()"))


async def _execute(workplace: Workplace, *arguments: str) -> str:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(workplace.cluster.directory),
        "FOOTPLATE_BASE_URL": workplace.cluster.base_urls[0],
        "FOOTPLATE_API_KEY": workplace.key,
    }
    process = await asyncio.create_subprocess_exec(
        *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_an_error_of_the_server_is_shown_at_its_field(workplace: Workplace) -> None:
    workplace.expect("400")
    page = await _open(workplace)
    await page.get_by_label("Task").fill("Do it")
    await page.get_by_role("button", name="More options").click()
    await page.get_by_label("Deny").fill("Bash(")
    await page.get_by_label("Task").press("Control+Enter")
    await expect(page.get_by_label("Deny")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_text("The session was not started. Correct the marked field.")).to_be_visible()
    await expect(page.get_by_label("Task")).to_have_value("Do it")
    await page.get_by_label("Deny").fill("")
    await expect(page.get_by_text("Correct the marked field")).to_have_count(0)


async def test_without_an_agent_the_page_explains_what_one_is(workplace: Workplace) -> None:
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page("/new")
    await expect(page.get_by_text("First, an agent")).to_be_visible()
    await page.get_by_role("button", name="Create an agent").tap()
    await page.get_by_label("Task").fill(f"Hello {await _script(workplace, 'new-first')}")
    await page.get_by_role("button", name="Start session").tap()
    session = await _get(workplace, f"/v1/sessions/{await _started(page)}")
    assert session["agent"]["name"] == "engineer"


async def test_a_viewer_sees_why_nothing_can_be_started(workplace: Workplace) -> None:
    body = {"name": "Vera", "roles": ["viewer"]}
    key = (await workplace.client.sdk.post("/v1/api_keys", body=body, cast_to=dict[str, Any]))["secret"]
    page = await _open(workplace, key=key)
    await expect(page.get_by_text("Your role does not permit to start sessions")).to_be_visible()
    await expect(page.get_by_label("Task")).to_be_disabled()
    await expect(page.get_by_role("button", name="Start session")).to_be_disabled()


async def test_a_link_fills_in_the_form(window: DashboardWindow, workplace: Workplace) -> None:
    agent = await workplace.client.agent(name="reviewer")
    await workplace.client.agent(name="newer")
    await window.open_page(f"/new?agent_id={agent}&attempts=2&prompt=Review+it")
    page = window.page
    await expect(page.get_by_label("Task")).to_have_value("Review it")
    await expect(page.get_by_label("Agent", exact=True)).to_contain_text("reviewer")
    await expect(page.get_by_role("button", name="Start 2 attempts")).to_be_enabled()
    await expect(page).to_have_url(re.compile("/new$"))
