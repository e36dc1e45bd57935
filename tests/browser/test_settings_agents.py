"""Settings, agents: the list, the form, the versions with their differences, and the archive."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from bench.support.browser.hostile_content import TEXTS
from bench.support.clients import MODEL, TOOLSET
from playwright.async_api import Page, Route, expect

AGENTS = "/settings?section=agents"


async def _read(workplace: Workplace, agent_id: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(f"/v1/agents/{agent_id}", cast_to=dict[str, Any])


async def _update(workplace: Workplace, agent_id: str, **fields: Any) -> None:
    await workplace.client.sdk.post(f"/v1/agents/{agent_id}", body=fields, cast_to=dict[str, Any])


def _id_of(page: Page) -> str:
    found = re.search(r"item=(agent_[^&]+)", page.url)
    assert found is not None
    return found[1]


@pytest.mark.smoke
@pytest.mark.action("settings.agent-new", "settings.work-save")
async def test_an_agent_is_created(workplace: Workplace) -> None:
    workplace.expect("400")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(AGENTS)
    await expect(page.get_by_text("An agent has instructions, a model and tools")).to_be_visible()
    await page.keyboard.press("c")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("Give the agent a name.")).to_be_visible()
    await page.get_by_label("Name", exact=True).fill("reviewer")
    await page.get_by_label("Model", exact=True).fill("nowhere/model")
    await page.get_by_label("Harness", exact=True).fill("native")
    await page.get_by_label("System prompt").fill("Review the changes.\nBe brief.")
    await page.get_by_label("write", exact=True).click()
    await page.get_by_role("option", name="Off", exact=True).click()
    await page.get_by_label("bash", exact=True).click()
    await page.get_by_role("option", name="On, ask each time").click()
    await page.get_by_label("Deny", exact=True).fill("Bash(rm *)\nBash(")
    await page.get_by_label("Further fields").fill("{")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("This is not JSON")).to_be_visible()
    await page.get_by_label("Further fields").fill('{"limits": {"max_iterations": 7}, "metadata": {"team": "web"}}')
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert").filter(has_text="permissions.deny.1")).to_be_visible()
    await page.get_by_label("Deny", exact=True).fill("Bash(rm *)")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert").filter(has_text="has no connection 'nowhere'")).to_be_visible()
    await page.get_by_label("Model", exact=True).fill(MODEL)
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="reviewer")).to_be_visible()
    stored = await _read(workplace, _id_of(page))
    assert (stored["harness"], stored["model"]["id"], stored["version"]) == ("native", MODEL, 1)
    assert stored["system"] == "Review the changes.\nBe brief."
    assert (stored["limits"], stored["metadata"]) == ({"max_iterations": 7}, {"team": "web"})
    assert stored["permissions"]["deny"] == ["Bash(rm *)"]
    (toolset,) = stored["tools"]
    configs = {one["name"]: one for one in toolset["configs"]}
    assert (configs["write"]["enabled"], configs["edit"]["enabled"], toolset["ask_user"]) == (False, True, True)
    assert configs["bash"]["permission_policy"]["type"] == "always_ask"


@pytest.mark.action("settings.agent-edit", "settings.work-next", "settings.work-previous", "settings.work-open")
async def test_an_agent_is_edited_and_keeps_what_the_form_does_not_know(workplace: Workplace) -> None:
    lookup = {"type": "custom", "name": "lookup", "description": "Looks up", "input_schema": {"type": "object"}}
    extra = {"harness": "native", "goal": "to help", "permissions": {"ask": ["Bash(git push *)"]}}
    await workplace.client.agent(name="second")
    agent = await workplace.client.agent(name="first", tools=[TOOLSET, lookup], extra_body=extra)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(AGENTS)
    rows = page.get_by_role("list", name="Agents").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    for key in ("j", "j", "k"):
        await page.keyboard.press(key)
    await expect(rows.filter(has_text="first")).to_have_attribute("aria-current", "true")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="first")).to_be_visible()
    await page.keyboard.press("e")
    await page.get_by_label("System prompt").fill("Be thorough.")
    await page.get_by_label("web_fetch", exact=True).click()
    await page.get_by_role("option", name="On", exact=True).click()
    await expect(page.get_by_text("The server reports such tools as always allowed.")).to_be_visible()
    await page.get_by_role("link", name="Webhooks").click()
    await page.get_by_role("button", name="Keep editing").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Agent saved as version 2")).to_be_visible()
    stored = await _read(workplace, agent)
    toolset, custom = stored["tools"]
    assert (stored["system"], stored["goal"], custom) == ("Be thorough.", "to help", lookup)
    assert stored["permissions"]["ask"] == ["Bash(git push *)"]
    assert {one["name"] for one in toolset["configs"] if one["enabled"]} >= {"bash", "web_fetch"}


async def test_a_change_by_someone_else_is_not_overwritten(workplace: Workplace) -> None:
    workplace.expect("409")
    agent = await workplace.client.agent(name="shared")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{AGENTS}&item={agent}&edit=true")
    await page.get_by_label("System prompt").fill("Mine")
    await _update(workplace, agent, system="Theirs")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert").filter(has_text="is at version 2, not 1")).to_be_visible()
    await expect(page.get_by_label("System prompt")).to_have_value("Mine")
    assert (await _read(workplace, agent))["system"] == "Theirs"


@pytest.mark.action("settings.agent-compare")
async def test_two_versions_are_compared_line_by_line(workplace: Workplace) -> None:
    agent = await workplace.client.agent(name="engineer", system="Be brief.\nRun the tests.")
    await _update(workplace, agent, system="Be thorough.\nRun the tests.")
    await _update(workplace, agent, description="For the web")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{AGENTS}&item={agent}")
    versions = page.get_by_role("list", name="Versions").get_by_role("listitem")
    await expect(versions).to_have_count(3)
    await page.keyboard.press("v")
    await expect(page).to_have_url(re.compile("versions=2-3"))
    changes = page.get_by_role("region", name="What changed")
    await expect(changes.get_by_text("Description: For the web")).to_be_visible()
    await page.get_by_role("combobox", name="Earlier version").click()
    await page.get_by_role("option", name="Version 1").click()
    await expect(page).to_have_url(re.compile("versions=1-3"))
    await expect(changes.get_by_text("Be brief.")).to_be_visible()
    await expect(changes.get_by_text("Be thorough.")).to_be_visible()
    await page.get_by_role("button", name="The agent").click()
    await page.get_by_role("button", name="What changed in version 2").click()
    await expect(changes.get_by_text("Be brief.")).to_be_visible()
    await expect(changes.get_by_text("For the web")).to_have_count(0)


@pytest.mark.action("settings.agent-archive", "settings.work-archived", "settings.agent-session")
async def test_an_agent_is_archived_after_a_confirmation(workplace: Workplace) -> None:
    agent = await workplace.client.agent(name="old")
    await workplace.client.session(agent, title="Earlier")
    environments = await workplace.client.sdk.get("/v1/environments", cast_to=dict[str, Any])
    schedule = {
        "name": "Nightly",
        "agent": agent,
        "environment_id": environments["data"][0]["id"],
        "steps": [{"kind": "shell", "command": "true"}],
    }
    await workplace.client.sdk.post("/v1/deployments", body=schedule, cast_to=dict[str, Any])
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{AGENTS}&item={agent}")
    facts = page.get_by_role("region", name="Agent", exact=True)
    await expect(facts.get_by_role("link", name="Nightly")).to_be_visible()
    await expect(facts.get_by_role("link", name="1", exact=True)).to_have_attribute("href", re.compile(agent))
    await window.run_action("Start a session with the agent")
    await expect(page).to_have_url(re.compile(f"/new\\?agent_id={agent}"))
    await page.go_back()
    await page.get_by_role("heading", name="old").wait_for()
    await page.keyboard.press("Shift+D")
    await expect(page.get_by_text("Runs of its schedules then start no session: “Nightly”.")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    assert (await _read(workplace, agent))["archived_at"] is None
    await page.keyboard.press("Shift+D")
    await page.get_by_role("button", name="Archive", exact=True).click()
    await expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    await page.get_by_role("button", name="All agents").click()
    await expect(page.get_by_text("An agent has instructions, a model and tools")).to_be_visible()
    await window.run_action("Show or hide archived entries")
    row = page.get_by_role("list", name="Agents").get_by_role("listitem")
    await expect(row).to_contain_text("archived")
    await window.open_page(f"{AGENTS}&item={agent}&edit=true")
    await expect(page.get_by_text("This agent is archived")).to_be_visible()


async def test_hostile_names_on_a_phone(workplace: Workplace) -> None:
    hostile = {"bidirectional": TEXTS["bidirectional"], "script": TEXTS["script"], "long": "x" * 256}
    for name in hostile.values():
        await workplace.client.agent(name=name, system=TEXTS["disguised link"], description=TEXTS["svg"])
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(AGENTS)
    rows = page.get_by_role("list", name="Agents").get_by_role("listitem")
    await expect(rows).to_have_count(3)
    await expect(rows.filter(has_text="gpj.exe")).to_contain_text("U+202E")
    await rows.filter(has_text="gpj.exe").get_by_role("link").tap()
    await expect(page.get_by_role("region", name="System prompt").last).to_contain_text("attacker.invalid")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.evaluate("window.__executed") is None


async def test_a_failed_request_is_shown_and_tried_again(workplace: Workplace) -> None:
    workplace.expect("500")
    await workplace.client.agent(name="engineer")
    window = await workplace.sign_in()
    page = window.page

    async def fail(route: Route) -> None:
        await route.fulfill(status=500, json={})

    await page.route("**/v1/agents?*", fail)
    await window.open_page(AGENTS)
    await expect(page.get_by_text("Agents could not be loaded")).to_be_visible()
    await page.unroute("**/v1/agents?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("link", name="engineer")).to_be_visible()


async def test_a_viewer_can_look_at_agents_only(workplace: Workplace) -> None:
    workplace.expect("404")
    agent = await workplace.client.agent(name="engineer")
    viewer = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page(AGENTS)
    await expect(page.get_by_role("link", name="engineer")).to_be_visible()
    await expect(page.get_by_text("You can only look")).to_be_visible()
    await expect(page.get_by_role("button", name="New agent")).to_have_count(0)
    await viewer.open_page(f"{AGENTS}&item={agent}")
    await expect(page.get_by_role("heading", name="engineer")).to_be_visible()
    await expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    await viewer.open_page(f"{AGENTS}&item={agent}&edit=true")
    await expect(page.get_by_text("Ask an administrator for the role operator or member.")).to_be_visible()
    await viewer.open_page(f"{AGENTS}&item=agent_unknown")
    await expect(page.get_by_text("There is no such agent")).to_be_visible()
