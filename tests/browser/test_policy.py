"""Policy: rules by layer, the editor with its preview and the test on past calls, and the explanation of a call."""

import re
from typing import Any
from urllib.parse import quote

import pytest
from bench.support.browser.changed_sessions import create_project, run_turns
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Page, expect

RULES = {"deny": ["Bash(rm *)", "Read(.env)"], "ask": ["Bash(git push *)"], "allow": ["Bash(npm run *)"]}
SECTIONS = {"rules": "Rules", "edit": "Edit and test", "explain": "Explain", "audit": "Audit", "hooks": "Hooks"}
HIDDEN = "echo safe\u202e; rm -r x"


async def _write_rules(workplace: Workplace, **body: Any) -> dict[str, Any]:
    return await workplace.client.sdk.post("/v1/policies", body=body, cast_to=dict[str, Any])


async def _read_rules(workplace: Workplace) -> dict[str, Any]:
    return await workplace.client.sdk.get("/v1/policies", cast_to=dict[str, Any])


async def _run_action(page: Page, action: str) -> None:
    """Runs an action by the palette."""
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(action)
    await expect(page.get_by_role("option", name=action, selected=True)).to_be_visible()
    await page.keyboard.press("Enter")


async def _create_project(workplace: Workplace, name: str, **permissions: list[str]) -> str:
    project_id, _ = await create_project(workplace, name, {"README.md": "Here."})
    path = f"/v1/projects/{project_id}"
    await workplace.client.sdk.post(path, body={"permissions": permissions}, cast_to=dict[str, Any])
    return project_id


@pytest.mark.action(
    "policy.rules",
    "policy.edit",
    "policy.explain",
    "policy.audit",
    "policy.hooks",
    "policy.next-section",
    "policy.previous-section",
)
async def test_sections_have_addresses(workplace: Workplace) -> None:
    window = await workplace.sign_in()
    page = window.page
    for section, title in SECTIONS.items():
        await _run_action(page, f"Policy: {title}")
        await expect(page).to_have_url(re.compile(f"/policy\\?section={section}$"))
        await expect(page.get_by_role("region", name=title, exact=True)).to_be_visible()
    await page.keyboard.press("[")
    await expect(page).to_have_url(re.compile("section=audit$"))
    await page.keyboard.press("]")
    await expect(page).to_have_url(re.compile("section=hooks$"))


@pytest.mark.action("policy.find")
async def test_rules_are_listed_by_layer_and_found(workplace: Workplace) -> None:
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy")
    organisation = page.get_by_role("region", name="Organisation")
    await expect(organisation).to_contain_text("No rules.")
    await expect(page.get_by_text("No project has rules.")).to_be_visible()
    hook = {"type": "command", "command": "check"}
    await _write_rules(
        workplace,
        permissions={**RULES, "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}},
        approvals={"expires_after_seconds": 7200, "role": "approver", "two_people": True},
    )
    await _create_project(workplace, "website", ask=["Edit(deploy/**)"])
    await workplace.client.agent(name="engineer", extra_body={"permissions": {"allow": ["Bash(make *)"]}})
    await window.open_page("/policy")
    await expect(organisation.get_by_role("definition").first).to_contain_text("Bash(rm *)")
    await expect(organisation).to_contain_text("denied after 2 hours; only the role approver can decide")
    await expect(organisation).to_contain_text("PreToolUse Bash runs check")
    await expect(organisation).to_contain_text("by Ada")
    await expect(page.get_by_role("region", name="Projects")).to_contain_text("Edit(deploy/**)")
    await expect(page.get_by_role("region", name="Agents")).to_contain_text("Bash(make *)")
    await page.keyboard.press("/")
    await page.keyboard.type("make")
    await expect(organisation).to_contain_text("No rule contains this text.")
    await expect(page).to_have_url(re.compile("q=make"))
    await expect(page.get_by_role("region", name="Agents")).to_contain_text("Bash(make *)")


@pytest.mark.smoke
@pytest.mark.action("policy.save")
async def test_rules_are_saved_after_a_preview(workplace: Workplace) -> None:
    workplace.expect("400")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy")
    await page.get_by_role("link", name="Edit", exact=True).click()
    await page.get_by_label("Deny", exact=True).fill("\nBash(rm *")
    await page.get_by_label("Allow", exact=True).fill("Bash(npm run *)")
    changes = page.get_by_role("region", name="Changes")
    await expect(changes).to_contain_text("AddedDenyBash(rm *", use_inner_text=False)
    await expect(changes).to_contain_text("These are the first rules of the organisation.")
    await page.keyboard.press("Control+Enter")
    dialog = page.get_by_role("dialog", name="Save these 2 changes?")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_text(re.compile("Line 2: .*at character 10"))).to_be_visible()
    assert (await _read_rules(workplace))["updated_at"] is None
    await page.get_by_label("Deny", exact=True).fill("Bash(rm *)")
    await page.get_by_label("Time limit of approvals").fill("3600")
    await page.get_by_label("Hooks, as JSON").fill("[]")
    await page.get_by_role("button", name="Check and save").click()
    await expect(page.get_by_text("Write an object in JSON")).to_be_visible()
    await page.get_by_label("Hooks, as JSON").fill('{"Stop": [{"hooks": [{"type": "command", "command": "check"}]}]}')
    await page.get_by_role("button", name="Check and save").click()
    dialog = page.get_by_role("dialog", name="Save these 4 changes?")
    await expect(dialog).to_contain_text("Time limit")
    await dialog.get_by_role("button", name="Cancel").click()
    await _run_action(page, "Check and save the rules")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Rules saved")).to_be_visible()
    stored = await _read_rules(workplace)
    assert (stored["permissions"]["deny"], stored["permissions"]["allow"]) == (["Bash(rm *)"], ["Bash(npm run *)"])
    assert stored["permissions"]["hooks"]["Stop"][0]["hooks"][0]["command"] == "check"
    assert stored["approvals"]["expires_after_seconds"] == 3600
    await expect(changes).to_contain_text("Nothing is changed yet.")
    await page.get_by_label("Deny", exact=True).fill("")
    await page.get_by_label("Allow", exact=True).fill("")
    await expect(changes).to_contain_text("The organisation then has no rules.")
    await page.get_by_role("navigation", name="Sections").get_by_role("link", name="Explain").click()
    await page.get_by_role("button", name="Keep editing").click()
    await page.get_by_role("button", name="Undo the changes").click()
    await expect(page.get_by_label("Deny", exact=True)).to_have_value("Bash(rm *)")


async def test_a_change_of_another_member_is_not_overwritten(workplace: Workplace) -> None:
    workplace.expect("409")
    await _write_rules(workplace, permissions=RULES)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy?section=edit")
    await page.get_by_label("Ask", exact=True).fill("Bash(git push *)\nWebFetch")
    await _write_rules(workplace, permissions={**RULES, "deny": ["Bash(rm *)", "WebSearch"]})
    await page.keyboard.press("Control+Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert", name="Changed meanwhile")
    await expect(conflict).to_contain_text("Ada changed the rules after you opened them")
    await expect(conflict).to_contain_text("WebSearch")
    await expect(page.get_by_role("button", name="Check and save")).to_be_disabled()
    await conflict.get_by_role("button", name="Apply my changes to them").click()
    await expect(page.get_by_label("Deny", exact=True)).to_have_value("Bash(rm *)\nWebSearch")
    await page.keyboard.press("Control+Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Rules saved")).to_be_visible()
    stored = (await _read_rules(workplace))["permissions"]
    assert (stored["deny"], stored["ask"]) == (["Bash(rm *)", "WebSearch"], ["Bash(git push *)", "WebFetch"])


@pytest.mark.action("policy.replay")
async def test_rules_are_tested_on_past_calls(workplace: Workplace) -> None:
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy?section=edit")
    result = page.get_by_role("region", name="Past calls")
    await page.get_by_role("button", name="Test on past calls").click()
    await expect(result).to_contain_text("There are no stored calls in this period that you can see.")
    session_id = await run_turns(workplace, [["echo built", "git push", HIDDEN]], title="Release")
    await window.open_page("/policy?section=edit")
    await page.get_by_label("Deny", exact=True).fill("Bash(git push)")
    await page.get_by_label("Ask", exact=True).fill("Bash(echo *)")
    await page.keyboard.press("Control+Shift+Enter")
    await expect(result).to_contain_text("3 of 3 calls would be decided otherwise")
    calls = result.get_by_role("list", name="Changed calls").get_by_role("listitem")
    await expect(calls).to_have_count(3)
    await expect(calls.filter(has_text="git push")).to_contain_text("Bash(git push) · Organisation")
    await expect(calls.first).to_contain_text("U+202E")
    await result.get_by_role("button", name=re.compile("allowed.*denied")).click()
    await expect(calls).to_have_count(1)
    await expect(page).to_have_url(re.compile("change=allow-deny"))
    await page.get_by_label("Ask", exact=True).fill("")
    await expect(result).to_contain_text("You changed the rules since.")
    await _run_action(page, "Test the rules on past calls")
    await expect(result.get_by_text("You changed the rules since.")).to_have_count(0)
    await page.get_by_role("combobox", name="Period").click()
    await page.get_by_role("option", name="Last 24 hours").click()
    await expect(page).to_have_url(re.compile("since=1d"))
    await page.get_by_role("button", name="Test on past calls").click()
    await calls.filter(has_text="git push").get_by_role("link").click()
    await page.get_by_role("button", name="Discard").click()
    await expect(page).to_have_url(re.compile(f"/sessions/{session_id}.*event=sevt_"))


@pytest.mark.action("policy.explain-call")
async def test_a_call_is_explained_with_the_rule_that_decides(workplace: Workplace) -> None:
    workplace.expect("404")
    await _write_rules(workplace, permissions=RULES)
    project = await _create_project(workplace, "website", deny=["Bash(make deploy)"])
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/policy?section=explain")
    await expect(page.get_by_text("Why is a call allowed, or not?")).to_be_visible()
    await page.get_by_role("textbox", name="Command").fill("npm run build && timeout 5 rm -r src")
    await page.keyboard.press("Control+Enter")
    decision = page.get_by_role("region", name="Decision")
    await expect(decision).to_contain_text("denied")
    await expect(decision).to_contain_text("Deny rule Bash(rm *) · Organisation")
    parts = page.get_by_role("region", name="Parts").get_by_role("listitem")
    await expect(parts.filter(has_text="npm run build")).to_contain_text("allowed")
    await expect(parts.filter(has_text="rm -r src").first).to_contain_text("denied")
    applied = page.get_by_role("region", name="Evaluated rules").locator("[aria-current=true]")
    await expect(applied.filter(has_text="Bash(rm *)")).to_contain_text("applies")
    await page.get_by_role("textbox", name="Command").fill("make deploy")
    await _run_action(page, "Explain the call")
    await expect(decision).to_contain_text("needs approval")
    await page.get_by_label("Project").click()
    await page.get_by_role("option", name="website").click()
    await expect(decision).to_contain_text("Deny rule Bash(make deploy) · Project")
    await expect(page).to_have_url(re.compile(f"project={project}"))
    await page.get_by_label("Tool").click()
    await page.get_by_role("option", name="Read").click()
    await page.get_by_label("Path").fill(".env")
    await page.get_by_role("button", name="Explain").click()
    await expect(decision).to_contain_text("Deny rule Read(.env) · Organisation")
    await window.open_page("/policy?section=explain&tool=mcp__a__b&call=nothing")
    await expect(page.get_by_text("Write the input as an object in JSON")).to_be_visible()
    await window.open_page("/policy?section=explain&call=ls&session=sesn_gone")
    await expect(page.get_by_text("The call could not be explained")).to_be_visible()


async def test_a_hostile_call_is_shown_marked_on_a_phone(workplace: Workplace) -> None:
    await _write_rules(workplace, permissions=RULES)
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(f"/policy?section=explain&call={quote(HIDDEN)}")
    call = page.get_by_test_id("call")
    await expect(call).to_contain_text("U+202E")
    await expect(call).to_contain_text("a character that you cannot see")
    await expect(page.get_by_role("region", name="Parts")).to_contain_text("U+202E")
    for section in SECTIONS:
        await window.open_page(f"/policy?section={section}&call={quote('x' * 300)}")
        await expect(page.get_by_role("combobox", name="Section")).to_be_visible()
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE[0], section


async def test_a_viewer_tries_rules_but_cannot_save_them(workplace: Workplace) -> None:
    await _write_rules(workplace, permissions=RULES)
    viewer = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page("/policy")
    await page.get_by_role("link", name="Test other rules").click()
    await page.get_by_label("Deny", exact=True).fill("Bash")
    await expect(page.get_by_role("region", name="Changes")).to_contain_text("Added")
    await expect(page.get_by_text("your role would have to be admin or policy_admin")).to_be_visible()
    await expect(page.get_by_role("button", name="Check and save")).to_have_count(0)
    await page.get_by_role("button", name="Undo the changes").click()
    await viewer.open_page("/policy?section=explain&call=ls")
    await expect(page.get_by_role("region", name="Decision")).to_be_visible()


async def test_a_failed_request_can_be_repeated(workplace: Workplace) -> None:
    workplace.expect("400|Failed to load")
    window = await workplace.sign_in()
    page = window.page
    await page.route("**/v1/policies", lambda route: route.fulfill(status=400, json={"error": {"message": "Broken."}}))
    for section in ("rules", "edit"):
        await window.open_page(f"/policy?section={section}")
        await expect(page.get_by_text("The rules could not be loaded")).to_be_visible()
    await page.unroute("**/v1/policies")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_label("Deny", exact=True)).to_be_visible()
