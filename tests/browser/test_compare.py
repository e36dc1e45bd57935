"""Comparing two attempts: figures, the same file of both, and keeping one of them."""

import re
from typing import Any

import pytest
from bench.support.browser.changed_sessions import create_project, git, run_turns
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from playwright.async_api import Page, expect

FIRST = "echo first > a.txt; echo same > same.txt; echo only > only.txt"
SECOND = "echo second > a.txt; echo same > same.txt"


async def _run_two(workplace: Workplace, project_id: str | None = None) -> tuple[str, str]:
    first = await run_turns(workplace, [[FIRST], ["true"]], title="Attempt one", project_id=project_id)
    second = await run_turns(workplace, [[SECOND]], title="Attempt two <b>x</b>", project_id=project_id)
    return first, second


async def _open(workplace: Workplace, first: str, second: str, **options: Any) -> DashboardWindow:
    return await workplace.sign_in(path=f"/compare?sessions={first},{second}", **options)


async def _expect_files(page: Page, first: str, second: str) -> None:
    await expect(page.get_by_test_id("left")).to_contain_text(first)
    await expect(page.get_by_test_id("right")).to_contain_text(second)


@pytest.mark.action("compare.next-file", "compare.previous-file", "compare.swap", "compare.choose")
async def test_two_attempts_file_by_file(workplace: Workplace) -> None:
    first, second = await _run_two(workplace)
    third = await run_turns(workplace, [["echo third > a.txt"]], title="Attempt three")
    page = (await _open(workplace, first, second)).page
    table = page.get_by_role("table", name="Attempts")
    await expect(table).to_contain_text("Attempt two <b>x</b>")
    await expect(table).to_contain_text("Turn 2 is done.")
    await expect(table.get_by_text("less").first).to_be_visible()
    await expect(page.get_by_test_id("left").get_by_text("first", exact=True)).to_be_visible()
    await expect(page.get_by_test_id("right").get_by_text("second", exact=True)).to_be_visible()
    await page.keyboard.press("j")
    await expect(page).to_have_url(re.compile(r"path=only\.txt"))
    await expect(page.get_by_text("Attempt B does not change this file.")).to_be_visible()
    await page.keyboard.press("j")
    await expect(page).to_have_url(re.compile(r"path=same\.txt"))
    await expect(page.get_by_text("same in both")).to_be_visible()
    await page.keyboard.press("k")
    await expect(page).to_have_url(re.compile(r"path=only\.txt"))
    await page.keyboard.press("x")
    await expect(page).to_have_url(re.compile(f"{second}(,|%2C){first}"))
    await expect(page.get_by_test_id("left").get_by_text("second", exact=True)).to_be_visible()
    await page.keyboard.press("o")
    await page.get_by_role("region", name="Sessions to compare").get_by_text("Attempt three").click()
    await expect(page).to_have_url(re.compile(f"{second}(,|%2C){third}"))
    await expect(page.get_by_test_id("right").get_by_text("third", exact=True)).to_be_visible()


@pytest.mark.action("compare.keep-first", "compare.keep-second")
async def test_keeping_one_merges_it_and_archives_the_other(workplace: Workplace) -> None:
    workplace.expect("409")
    project_id, repository = await create_project(workplace, "attempts", {"readme.txt": "start\n"})
    git(repository, "branch", "work")
    first, second = await _run_two(workplace, project_id)
    page = (await _open(workplace, first, second)).page
    await expect(page.get_by_test_id("left").get_by_text("first", exact=True)).to_be_visible()
    await page.keyboard.press("1")
    dialog = page.get_by_role("dialog", name="Keep this attempt")
    await expect(dialog).to_contain_text("Attempt one")
    await expect(dialog).to_contain_text("An archived session can be read")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await page.keyboard.press("2")
    await dialog.get_by_role("button", name="Merge and archive").click()
    await expect(dialog).to_contain_text("is checked out in the project")
    await dialog.get_by_role("button", name="Use a new branch").click()
    await expect(dialog.get_by_label("Branch", exact=True)).to_have_value(f"footplate/{second}")
    await dialog.get_by_label("Branch", exact=True).fill("work")
    await dialog.get_by_role("button", name="Merge and archive").click()
    await expect(page.get_by_text("Merged into work, 1 archived")).to_be_visible()
    assert git(repository, "show", "work:a.txt") == "second\n"
    archived: Any = await workplace.client.sdk.get(f"/v1/sessions/{first}", cast_to=dict[str, Any])
    assert archived["archived_at"] is not None


async def test_a_phone_shows_both_below_each_other(workplace: Workplace) -> None:
    first, second = await _run_two(workplace)
    page = (await _open(workplace, first, second, size=PHONE)).page
    await _expect_files(page, "a.txt", "a.txt")
    first_box = await page.get_by_test_id("left").bounding_box()
    right = await page.get_by_test_id("right").bounding_box()
    assert first_box is not None
    assert right is not None
    assert right["y"] >= first_box["y"] + first_box["height"] - 1
    overflow = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0, "the page scrolls sideways"


async def test_a_session_that_does_not_exist_is_reported(workplace: Workplace) -> None:
    workplace.expect(r"404")
    first = await run_turns(workplace, [["true"]], title="Alone")
    page = (await _open(workplace, first, "sesn_01m7rs9jcqejp34gsarbw348pn")).page
    await expect(page.get_by_text("A session could not be loaded")).to_be_visible()
