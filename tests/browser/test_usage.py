"""Usage: totals with the period before, the chart, the table, links to sessions, and what is unknown."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Locator, Page, expect

from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import Step, text, usage

UNPRICED = "claude-nova-9"
PRICED = "claude-sonnet-4-6"
_COLUMNS = (
    "organisation, day, agent, model, harness, key, project, parameters, status, slot, turns, microseconds,"
    " input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd, priced_turns, unpriced_turns"
)


async def _run_turns(workplace: Workplace, agent: str, *, model: str = PRICED, turns: int = 1) -> str:
    """Runs turns of a new agent, each with 1,000 tokens in and 100 out. Returns the id of the agent."""
    client = workplace.client
    agent_id = await client.agent(name=agent, model=model, extra_body={"harness": "native"})
    session_id = await client.session(agent_id, title=f"Work of {agent}")
    reply: Sequence[Step] = [text("Done."), usage(1000, 100)]
    await workplace.cluster.model.install(agent, replies(*[reply] * turns))
    for _ in range(turns):
        await client.run_turn(session_id, f"Begin [[script:{agent}]]")
    return agent_id


@asynccontextmanager
async def _database(workplace: Workplace) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(workplace.cluster.settings.database_url)
    try:
        yield connection
    finally:
        await connection.close()


async def _add_earlier_turns(workplace: Workplace, *, days_ago: int, cost: int, turns: int) -> None:
    """Adds turns of an earlier day to the totals that reports are made of."""
    me = await workplace.client.sdk.get("/v1/me", cast_to=dict[str, Any])
    day = (datetime.now(UTC) - timedelta(days=days_ago)).date()
    values = [me["organisation_id"], day, "", PRICED, "native", me["id"], "", "{}", "completed", 0, turns]
    values += [0, 1000 * turns, 100 * turns, 0, 0, turns, cost, turns, 0]
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    async with _database(workplace) as connection:
        await connection.execute(f"insert into usage_by_day ({_COLUMNS}) values ({places})", *values)


def _rows(page: Page) -> Locator:
    return page.locator("tbody").get_by_role("row")


def _total(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name="Totals").locator("dl > div").filter(has_text=re.compile(f"^{title}"))


async def _run_action(page: Page, action: str) -> None:
    """Runs an action by the palette."""
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill(action)
    await expect(page.get_by_role("option", name=action, selected=True)).to_be_visible()
    await page.keyboard.press("Enter")


@pytest.mark.smoke
@pytest.mark.action("usage.measure")
async def test_a_cost_that_is_not_known_is_not_shown_as_zero(workplace: Workplace) -> None:
    await _run_turns(workplace, "engineer", turns=2)
    await _run_turns(workplace, "stargazer", model=UNPRICED)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/usage")
    await expect(_total(page, "Cost")).to_contain_text("≥ $0.0090")
    await expect(_total(page, "Tokens")).to_contain_text("3.3k")
    await expect(_total(page, "Turns")).to_contain_text("3")
    await expect(_total(page, "Sessions")).to_contain_text("2")
    await expect(_total(page, "Sessions")).to_contain_text("none before")
    await expect(_rows(page)).to_have_count(2)
    await expect(_rows(page).nth(0)).to_contain_text(re.compile(rf"{PRICED}.*\$0\.0090\s*100%"))
    await expect(_rows(page).nth(1)).to_contain_text(re.compile(rf"{UNPRICED}.*unknown"))
    await expect(page.get_by_role("img", name="Cost per day, by model")).to_be_visible()
    await expect(page.get_by_role("list", name="Legend").get_by_role("listitem")).to_have_count(1)
    await page.keyboard.press("m")
    await expect(page).to_have_url(re.compile("measure=tokens"))
    await expect(page.get_by_role("img", name="Tokens per day, by model")).to_be_visible()
    await expect(page.get_by_role("list", name="Legend").get_by_role("listitem")).to_have_count(2)
    await expect(_rows(page).filter(has_text=UNPRICED)).to_contain_text("33%")
    await page.get_by_role("tab", name="Turns").click()
    await expect(page.get_by_role("img", name="Turns per day, by model")).to_be_visible()


async def test_without_any_known_price_the_chart_offers_tokens(workplace: Workplace) -> None:
    await _run_turns(workplace, "stargazer", model=UNPRICED)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/usage")
    await expect(_total(page, "Cost")).to_contain_text("unknown")
    await page.get_by_role("button", name="Show tokens").click()
    await expect(page.get_by_role("img", name="Tokens per day, by model")).to_be_visible()


@pytest.mark.action("usage.period-7d", "usage.period-30d", "usage.period-90d", "usage.period-month", "usage.period-own")
async def test_the_period_is_compared_with_the_one_before(workplace: Workplace) -> None:
    await _add_earlier_turns(workplace, days_ago=0, cost=3_000_000, turns=4)
    await _add_earlier_turns(workplace, days_ago=8, cost=2_000_000, turns=2)
    await _add_earlier_turns(workplace, days_ago=100, cost=500_000, turns=1)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/usage")
    await expect(_total(page, "Cost")).to_contain_text("$5.00")
    await expect(_total(page, "Cost")).to_contain_text("none before")
    await page.keyboard.press("1")
    await expect(page).to_have_url(re.compile("period=7d"))
    await expect(_total(page, "Cost")).to_contain_text("$3.00")
    await expect(_total(page, "Cost")).to_contain_text("+50%, was $2.00")
    await expect(_total(page, "Turns")).to_contain_text("+100%, was 2")
    await page.keyboard.press("3")
    await expect(page).to_have_url(re.compile("period=90d"))
    await expect(_total(page, "Cost")).to_contain_text("+900%, was $0.50")
    await page.keyboard.press("2")
    await expect(page).to_have_url(re.compile("period=30d"))
    await page.keyboard.press("4")
    await expect(page).to_have_url(re.compile("period=month"))
    await expect(page.get_by_role("tab", name="This month")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("5")
    day = datetime.now(UTC).date() - timedelta(days=8)
    await page.get_by_label("First day").fill(str(day))
    await page.get_by_label("Last day").fill(str(day - timedelta(days=1)))
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(page.get_by_text("Choose a day that is not before the first one.")).to_be_visible()
    await page.get_by_label("Last day").fill(str(day))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"from={day}&to={day}"))
    await expect(_total(page, "Cost")).to_contain_text("$2.00")
    await page.reload()
    await expect(_total(page, "Cost")).to_contain_text("$2.00")
    await page.get_by_role("tab", name="7 days").click()
    await expect(_total(page, "Cost")).to_contain_text("$3.00")


@pytest.mark.action("usage.by-day", "usage.by-model", "usage.by-agent", "usage.by-project", "usage.by-member")
@pytest.mark.action("usage.next-group", "usage.previous-group")
async def test_every_grouping_has_names(workplace: Workplace) -> None:
    await _run_turns(workplace, "engineer")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/usage")
    await expect(_rows(page)).to_contain_text(PRICED)
    for grouping, name in {
        "day": str(datetime.now(UTC).year),
        "agent": "engineer",
        "project": "No project",
        "member": "Ada",
        "model": PRICED,
    }.items():
        await _run_action(page, f"Group usage by {grouping}")
        await expect(page).to_have_url(re.compile(f"by={grouping}"))
        await expect(page.get_by_role("table", name=f"Usage by {grouping}")).to_be_visible()
        await expect(_rows(page)).to_contain_text(name)
    await page.keyboard.press("]")
    await expect(page).to_have_url(re.compile("by=agent"))
    await page.keyboard.press("[")
    await page.keyboard.press("[")
    await expect(page).to_have_url(re.compile("by=day"))
    await expect(page.get_by_role("img", name="Cost per day. The table")).to_be_visible()
    await page.get_by_label("Group by").click()
    await page.get_by_role("option", name="By member").click()
    await expect(_rows(page)).to_contain_text("Ada")


@pytest.mark.action("usage.next", "usage.previous", "usage.open", "usage.sort", "usage.reverse")
async def test_the_table_is_sorted_and_its_rows_lead_to_sessions(workplace: Workplace) -> None:
    busy = await _run_turns(workplace, "busy", turns=2)
    await _run_turns(workplace, "idle")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/usage?by=agent")
    first = _rows(page).first
    await expect(first).to_contain_text("busy")
    await page.keyboard.press("Shift+S")
    await expect(page).to_have_url(re.compile("sort=cost&order=asc"))
    await expect(first).to_contain_text("idle")
    await page.keyboard.press("s")
    await expect(page.get_by_role("columnheader", name="Tokens in")).to_have_attribute("aria-sort", "descending")
    await expect(first).to_contain_text("busy")
    await page.get_by_role("button", name="Agent", exact=True).click()
    await expect(page.get_by_role("columnheader", name="Agent")).to_have_attribute("aria-sort", "ascending")
    await page.get_by_role("heading", level=1).click()
    for key in ("j", "j", "k"):
        await page.keyboard.press(key)
    await expect(first).to_have_attribute("aria-current", "true")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/sessions\\?agent_id={busy}"))
    await expect(page.get_by_role("list", name="Sessions").get_by_role("listitem")).to_have_count(1)
    await page.go_back()
    await page.get_by_role("link", name="idle").click()
    await expect(page.get_by_role("list", name="Sessions")).to_contain_text("Work of idle")


@pytest.mark.action("usage.download-csv", "usage.download-json", "usage.copy-command")
async def test_the_report_is_downloaded_and_copied_as_a_command(workplace: Workplace, tmp_path: Path) -> None:
    await _run_turns(workplace, "engineer")
    await _run_turns(workplace, "stargazer", model=UNPRICED)
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/usage?period=7d")
    await expect(_rows(page)).to_have_count(2)
    async with page.expect_download() as started:
        await page.keyboard.press("d")
    download = await started.value
    today = datetime.now(UTC).date()
    assert download.suggested_filename == f"usage-by-model-{today - timedelta(days=6)}-to-{today}.csv"
    await download.save_as(tmp_path / "usage.csv")
    header, *lines = (tmp_path / "usage.csv").read_text().splitlines()
    assert header.startswith("model,name,cost_usd,unpriced_turns,")
    assert lines == [f"{PRICED},{PRICED},0.0045,0,1000,100,0,1,1", f"{UNPRICED},{UNPRICED},,1,1000,100,0,1,1"]
    await page.get_by_role("button", name="Download").click()
    async with page.expect_download() as started:
        await page.get_by_role("menuitem", name="Download as JSON").click()
    await (await started.value).save_as(tmp_path / "usage.json")
    assert f'"model": "{UNPRICED}"' in (tmp_path / "usage.json").read_text()
    # Until the menu is closed, keys belong to it.
    await expect(page.get_by_role("menu")).to_have_count(0)
    await page.keyboard.press("c")
    await expect(page.get_by_text("Command copied")).to_be_visible()
    command = await page.evaluate("navigator.clipboard.readText()")
    period = f"--since {today - timedelta(days=6)} --until {today + timedelta(days=1)}"
    assert command == f"footplate usage --by model {period}"


async def test_nothing_yet_and_a_failed_request(workplace: Workplace) -> None:
    workplace.expect("500")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page("/usage")
    await expect(page.get_by_text("No turn started in this period")).to_be_visible()
    await page.get_by_role("link", name="Show 90 days").click()
    await expect(page).to_have_url(re.compile("period=90d"))
    await expect(page.get_by_role("link", name="New session").last).to_be_visible()
    await _run_turns(workplace, "engineer")
    await page.route("**/v1/usage?*", lambda route: route.fulfill(status=500, json={}))
    await window.open_page("/usage")
    await expect(page.get_by_text("The usage could not be loaded")).to_be_visible()
    await page.unroute("**/v1/usage?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(_rows(page)).to_have_count(1)


async def test_a_viewer_on_a_phone_reads_the_report_of_what_is_visible(workplace: Workplace) -> None:
    await _run_turns(workplace, "engineer")
    viewer = await workplace.sign_in(size=PHONE, key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page("/usage")
    await expect(_rows(page)).to_contain_text("1k in, 100 out, 1 turn")
    await expect(page.get_by_text("nor are sessions that you cannot see")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert await page.evaluate("document.querySelector('main').scrollWidth") <= PHONE[0]
    await page.get_by_role("button", name="Download").tap()
    await expect(page.get_by_role("menuitem", name="Download as CSV")).to_be_visible()
