"""Policy: the audit trail with its filters, export and verification, and the hooks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bench.support.browser.changed_sessions import run_turns
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Page, expect

HIDDEN = "echo safe\u202e; true"


async def _write_rules(workplace: Workplace, **permissions: Any) -> None:
    await workplace.client.sdk.post("/v1/policies", body={"permissions": permissions}, cast_to=dict[str, Any])


async def _run_action(page: Page, action: str) -> None:
    """Runs an action by the palette."""
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(action)
    await expect(page.get_by_role("option", name=action, selected=True)).to_be_visible()
    await page.keyboard.press("Enter")


def _entries(page: Page) -> Any:
    return page.get_by_role("list", name="Audit trail").locator("> li")


@pytest.mark.action("policy.next-entry", "policy.previous-entry", "policy.open-entry", "policy.reverse")
async def test_the_trail_is_filtered_and_read(workplace: Workplace) -> None:
    await run_turns(workplace, [[HIDDEN]], title="Earlier")
    await _write_rules(workplace, deny=["Bash(rm *)"])
    session_id = await run_turns(workplace, [["rm x", "echo built"]], title="Release")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy?section=audit")
    entries = _entries(page)
    denied = entries.filter(has_text="bash rm x")
    await expect(denied).to_contain_text("denied")
    await expect(denied).to_contain_text("organisation Bash(rm *)")
    await expect(entries.filter(has_text="U+202E").first).to_be_visible()
    await page.get_by_role("combobox", name="Kind").click()
    await page.get_by_role("option", name="Decisions of the gate").click()
    await expect(entries).to_have_count(3)
    await page.get_by_role("combobox", name="Outcome").click()
    await page.get_by_role("option", name="denied").click()
    await expect(entries).to_have_count(1)
    await expect(page).to_have_url(re.compile("kind=decision.*outcome=deny"))
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(entries.first).to_contain_text("Hash of the input")
    await expect(entries.first.get_by_role("region", name="Content")).to_contain_text("Bash(rm *)")
    await entries.first.get_by_role("link", name="Only this session").click()
    await expect(page.get_by_role("searchbox", name="Session")).to_have_value(session_id)
    await window.open_page(f"/policy?section=audit&session={session_id}&kind=decision")
    await expect(entries.first).to_contain_text("echo built")
    await _run_action(page, "Reverse the order of the audit trail")
    await expect(entries.first).to_contain_text("rm x")
    for key in ("j", "j", "k"):
        await page.keyboard.press(key)
    await expect(entries.first).to_have_attribute("aria-current", "true")
    await page.get_by_role("searchbox", name="Member").fill("Nobody")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No entry matches these filters")).to_be_visible()
    await page.get_by_role("button", name="Show all entries").click()
    await page.get_by_label("Until").fill("2020-01-01")
    await expect(page.get_by_text("No entry matches these filters")).to_be_visible()
    await page.get_by_role("button", name="Show all entries").click()
    await page.get_by_role("searchbox", name="Member").fill("Ada")
    await page.get_by_role("searchbox", name="Tool").fill("bash")
    await page.get_by_role("searchbox", name="Tool").blur()
    await expect(page).to_have_url(re.compile("member=Ada.*tool=bash|tool=bash.*member=Ada"))
    await expect(entries.filter(has_text="rm x")).to_have_count(1)
    await entries.filter(has_text="rm x").get_by_role("link", name="Release").click()
    await expect(page).to_have_url(re.compile(f"/sessions/{session_id}.*event=sevt_"))


@pytest.mark.action("policy.export")
async def test_the_trail_is_exported_with_its_filters(workplace: Workplace, tmp_path: Path) -> None:
    for number in range(3):
        await _write_rules(workplace, deny=[f"Bash(rm {number})"])
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy?section=audit&kind=policy")
    await expect(_entries(page)).to_have_count(3)
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export").click()
    file = tmp_path / "audit.jsonl"
    await (await downloading.value).save_as(file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["content"]["permissions"]["deny"] for line in lines] == [[f"Bash(rm {number})"] for number in range(3)]
    async with page.expect_download() as downloading:
        await _run_action(page, "Export the audit trail")
    assert (await downloading.value).suggested_filename == "audit.jsonl"


@pytest.mark.action("policy.verify")
async def test_the_trail_is_verified(workplace: Workplace) -> None:
    await _write_rules(workplace, deny=["Bash(rm *)"])
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy?section=audit")
    await page.get_by_role("button", name="Verify").click()
    dialog = page.get_by_role("dialog", name="Verify the audit trail")
    await expect(dialog).to_contain_text("No entry was changed, removed or moved.")
    field = dialog.get_by_label("Head that you saved earlier")
    await field.fill("nothing")
    await dialog.get_by_role("button", name="Verify again").click()
    await expect(dialog).to_contain_text("A head has 64 digits")
    await field.fill("0" * 63 + "1")
    await page.keyboard.press("Enter")
    await expect(dialog).to_contain_text("The trail has a fault")
    await dialog.get_by_role("button", name="Close", exact=True).last.click()
    await _run_action(page, "Verify the audit trail")
    await expect(dialog).to_contain_text("Save the head elsewhere")


async def test_hooks_are_listed_by_event(workplace: Workplace) -> None:
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy?section=hooks")
    await expect(page.get_by_text("No hooks yet")).to_be_visible()
    check = {"type": "command", "command": "check \u202e now", "timeout": 5}
    audit = {"type": "python", "name": "audit", "options": {"a": 1}}
    await _write_rules(workplace, hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [check]}]})
    hooks = {"Stop": [{"hooks": [audit]}]}
    await workplace.client.agent(name="engineer", extra_body={"permissions": {"hooks": hooks}})
    await window.open_page("/policy?section=hooks")
    before = page.get_by_role("region", name="PreToolUse")
    await expect(before).to_contain_text("If it fails, the call is denied.")
    await expect(before.get_by_role("listitem")).to_contain_text("Organisation")
    await expect(before.get_by_role("listitem")).to_contain_text("U+202E")
    await expect(before.get_by_role("listitem")).to_contain_text("at most 5 s")
    await expect(page.get_by_role("region", name="Stop").get_by_role("listitem")).to_contain_text("Agent engineer")
    await page.get_by_role("link", name="Show their runs").click()
    await expect(page.get_by_text("No entry matches these filters")).to_be_visible()


async def test_a_viewer_reads_the_trail_on_a_phone(workplace: Workplace) -> None:
    await _write_rules(workplace, deny=["Bash(rm *)"])
    viewer = await workplace.sign_in(size=PHONE, key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page("/policy?section=audit&kind=policy")
    entries = _entries(page)
    await expect(entries).to_contain_text("rules of the organisation")
    await entries.get_by_role("button", name="rules of the organisation").tap()
    await expect(entries).to_contain_text("Hash of the content")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    await page.get_by_role("button", name="Verify").tap()
    await expect(page.get_by_role("dialog")).to_contain_text("No entry was changed, removed or moved.")


async def test_a_failed_request_of_the_trail_can_be_repeated(workplace: Workplace) -> None:
    workplace.expect("400")
    window = await workplace.sign_in()
    page = window.page
    failure = {"error": {"message": "Broken."}}
    await page.route("**/v1/audit*", lambda route: route.fulfill(status=400, json=failure))
    await window.open_page("/policy?section=audit")
    await expect(page.get_by_text("The audit trail could not be loaded")).to_be_visible()
    await page.get_by_role("button", name="Export").click()
    await expect(page.get_by_text("The audit trail was not exported").first).to_be_visible()
    await page.unroute("**/v1/audit*")
    await page.get_by_role("button", name="Try again").click()
    await expect(_entries(page).first).to_be_visible()
