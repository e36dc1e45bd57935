"""Schedules: the list, the form with its preview, what a person can do with one, and the history of its runs."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Page, expect

WEEKDAYS = {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
LEAP_DAYS = {"type": "cron", "expression": "0 0 29 2 *", "timezone": "UTC"}


async def _create(workplace: Workplace, name: str, **fields: Any) -> str:
    """Creates a schedule that runs a command, and an agent if there is none. Returns its id."""
    agents = await workplace.client.sdk.get("/v1/agents", cast_to=dict[str, Any])
    agent = agents["data"][0]["id"] if agents["data"] else await _create_agent(workplace)
    environments = await workplace.client.sdk.get("/v1/environments", cast_to=dict[str, Any])
    body = {
        "name": name,
        "agent": agent,
        "environment_id": environments["data"][0]["id"],
        "steps": [{"kind": "shell", "command": "echo built"}],
        **fields,
    }
    created = await workplace.client.sdk.post("/v1/deployments", body=body, cast_to=dict[str, Any])
    return str(created["id"])


async def _create_agent(workplace: Workplace) -> str:
    agent = await workplace.client.agent(name="engineer", extra_body={"harness": "native"})
    await workplace.client.session(agent, title="Older")
    return agent


async def _read(workplace: Workplace, schedule_id: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(f"/v1/deployments/{schedule_id}", cast_to=dict[str, Any])


async def _run_action(page: Page, action: str) -> None:
    """Runs an action by the palette."""
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(action)
    await expect(page.get_by_role("option", name=action, selected=True)).to_be_visible()
    await page.keyboard.press("Enter")


def _id_of(page: Page) -> str:
    found = re.search(r"/schedules/([^/?]+)", page.url)
    assert found is not None
    return found[1]


@pytest.mark.smoke
@pytest.mark.action("schedules.new", "schedules.add-step", "schedules.save")
async def test_a_schedule_is_created_with_a_preview_of_its_runs(workplace: Workplace) -> None:
    workplace.expect("400")
    agent = await _create_agent(workplace)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/schedules")
    await expect(page.get_by_text("No schedules yet")).to_be_visible()
    await page.keyboard.press("c")
    await page.get_by_label("Name", exact=True).fill("Nightly build")
    runs = page.get_by_role("status", name="Next runs")
    await page.get_by_label("Time zone").fill("Europe/Berlin")
    await expect(page.get_by_text("At 09:00, Monday to Friday")).to_be_visible()
    await expect(runs.get_by_role("listitem")).to_have_count(5)
    await expect(runs).to_contain_text(", 09:00")
    await page.get_by_label("Cron expression").fill("61 * * * *")
    await expect(page.get_by_text("the minute is not valid")).to_be_visible()
    await page.get_by_label("Cron expression").fill("30 22 * * *")
    await expect(runs).to_contain_text(", 22:30")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("Write a message to the agent, or add a step.")).to_be_visible()
    await page.get_by_label("Message to the agent").first.fill("Check the build")
    await _run_action(page, "Add a step to the schedule")
    await page.get_by_label("Command", exact=True).fill("make test")
    await page.get_by_label("If an earlier session still works").click()
    await page.get_by_role("option", name="Skip the run").click()
    await page.get_by_role("button", name="Create schedule").click()
    await expect(page.get_by_role("heading", name="Nightly build")).to_be_visible()
    stored = await _read(workplace, _id_of(page))
    assert (stored["agent"]["id"], stored["overlap_policy"], stored["ends_when_done"]) == (agent, "skip", True)
    assert (stored["schedule"]["expression"], stored["schedule"]["timezone"]) == ("30 22 * * *", "Europe/Berlin")
    assert stored["initial_events"][0]["content"] == [{"type": "text", "text": "Check the build"}]
    assert stored["steps"][0]["command"] == "make test"


@pytest.mark.action("schedules.next", "schedules.previous", "schedules.open", "schedules.run", "schedules.failed-runs")
async def test_a_schedule_runs_now_and_its_session_opens(workplace: Workplace) -> None:
    await _create(workplace, "First", schedule=WEEKDAYS)
    await _create(workplace, "Second", schedule=LEAP_DAYS)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/schedules")
    rows = page.get_by_role("list", name="Schedules").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    await expect(rows.filter(has_text="First")).to_contain_text("At 09:00, Monday to Friday · Europe/Berlin")
    for key in ("j", "j", "k", "j"):
        await page.keyboard.press(key)
    await expect(rows.nth(1)).to_have_attribute("aria-current", "true")
    await page.keyboard.press("r")
    await expect(page.get_by_text("Session started")).to_be_visible()
    await expect(rows.nth(1)).to_contain_text("done")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="First")).to_be_visible()
    history = page.get_by_role("list", name="Runs").get_by_role("listitem")
    await expect(history).to_have_count(1)
    await expect(history).to_contain_text("On request")
    await _run_action(page, "Show only runs without a session")
    await expect(page.get_by_text("Every run has a session.")).to_be_visible()
    await expect(page).to_have_url(re.compile("failed=true"))
    await page.get_by_role("switch", name="Only without a session").click()
    await history.get_by_role("link", name="Open the session").click()
    await expect(page).to_have_url(re.compile("/sessions/sesn_"))


@pytest.mark.action("schedules.edit", "schedules.pause")
async def test_a_schedule_is_edited_paused_and_resumed(workplace: Workplace) -> None:
    steps = [
        {"kind": "shell", "command": "make", "on_failure": "continue"},
        {"kind": "merge", "into": "main"},
    ]
    schedule_id = await _create(workplace, "Weekly", schedule=WEEKDAYS, steps=steps)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"/schedules/{schedule_id}")
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await page.keyboard.press("p")
    await expect(page.get_by_text("Paused: A member paused it.")).to_be_visible()
    await page.keyboard.press("e")
    await page.get_by_label("Cron expression").fill("0 6 * * 1")
    await page.get_by_label("Command", exact=True).fill("make all")
    await page.get_by_role("link", name="Sessions").first.click()
    await page.get_by_role("button", name="Keep editing").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("At 06:00, Monday")).to_be_visible()
    await expect(page.get_by_label("Times").get_by_text("none")).to_be_visible()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_text("A member paused it.")).to_have_count(0)
    await expect(page.get_by_label("Times").get_by_role("listitem")).to_have_count(5)
    stored = await _read(workplace, schedule_id)
    assert (stored["name"], stored["status"]) == ("Weekly", "active")
    assert (stored["steps"][0]["command"], stored["steps"][0]["on_failure"]) == ("make all", "continue")
    assert stored["steps"][1]["into"] == "main"


@pytest.mark.action("schedules.archive", "schedules.show-archived")
async def test_a_schedule_is_archived_after_a_confirmation(workplace: Workplace) -> None:
    schedule_id = await _create(workplace, "Old", schedule=WEEKDAYS)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"/schedules?selected={schedule_id}")
    rows = page.get_by_role("list", name="Schedules").get_by_role("listitem")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Shift+D")
    await expect(page.get_by_text("ends for good")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    assert (await _read(workplace, schedule_id))["archived_at"] is None
    await page.keyboard.press("Shift+D")
    await page.get_by_role("button", name="Archive", exact=True).click()
    await expect(page.get_by_text("No schedules yet")).to_be_visible()
    await _run_action(page, "Show archived schedules")
    await expect(rows).to_contain_text("archived")
    await rows.get_by_role("link", name="Old").click()
    await expect(page.get_by_role("heading", name="Old")).to_be_visible()
    await expect(page.get_by_role("button", name="Run now")).to_have_count(0)


async def test_a_schedule_that_cannot_run_has_a_reason(workplace: Workplace) -> None:
    schedule_id = await _create(workplace, "Broken", schedule=WEEKDAYS)
    agent = (await _read(workplace, schedule_id))["agent"]["id"]
    await workplace.client.sdk.post(f"/v1/agents/{agent}/archive", cast_to=dict[str, Any])
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(f"/schedules/{schedule_id}")
    await page.get_by_role("button", name="Run now").tap()
    await expect(page.get_by_text("The run created no session").first).to_be_visible()
    run = page.get_by_role("list", name="Runs").get_by_role("listitem")
    await expect(run).to_contain_text("not started")
    await expect(run).to_contain_text("archived")


async def test_a_viewer_can_look_at_schedules_only(workplace: Workplace) -> None:
    schedule_id = await _create(workplace, "Shared", schedule=WEEKDAYS)
    viewer = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page("/schedules")
    await expect(page.get_by_role("link", name="Shared")).to_be_visible()
    await expect(page.get_by_role("link", name="New schedule")).to_have_count(0)
    await viewer.open_page(f"/schedules/{schedule_id}")
    await expect(page.get_by_role("heading", name="Shared")).to_be_visible()
    await expect(page.get_by_role("button", name="Run now")).to_have_count(0)
    await viewer.open_page(f"/schedules/{schedule_id}/edit")
    await expect(page.get_by_text("You can only look at schedules")).to_be_visible()
