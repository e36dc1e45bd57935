"""Merging and pushing the changes of a session, and conflicts."""

import pytest
from bench.support.browser.changed_sessions import create_project, git, list_messages, run_turns
from bench.support.browser.dashboard_window import Workplace
from playwright.async_api import expect


@pytest.mark.action("changes.merge")
async def test_merging_and_pushing(workplace: Workplace) -> None:
    project_id, repository = await create_project(workplace, "website", {"a.txt": "one\n"})
    git(repository, "branch", "work")
    command = "echo two >> a.txt; git add a.txt; git commit -qm Two; echo three > new.txt"
    session_id = await run_turns(workplace, [[command]], title="Deliver", project_id=project_id)
    page = (await workplace.sign_in(path=f"/sessions/{session_id}?tab=changes")).page
    await expect(page.get_by_test_id("diff").get_by_text("three")).to_be_visible()
    await page.keyboard.press("Shift+M")
    dialog = page.get_by_role("dialog", name="Merge the changes")
    await expect(dialog).to_contain_text("Commits of the agent in turn 1")
    await expect(dialog).to_contain_text("A commit with 1 file that is not committed")
    await dialog.get_by_label("Branch", exact=True).fill("main")
    workplace.expect(r"409.*merge")
    await dialog.get_by_role("button", name="Merge", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("checked out")
    await dialog.get_by_role("button", name="Use a new branch").click()
    await expect(dialog.get_by_label("Branch", exact=True)).to_have_value(f"footplate/{session_id}")
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    await dialog.get_by_label("Branch", exact=True).fill("work")
    await dialog.get_by_label("Message of the last commit").fill("Deliver three")
    await dialog.get_by_role("button", name="Merge", exact=True).click()
    await expect(page.get_by_role("dialog", name="Merged")).to_contain_text("work")
    assert git(repository, "log", "--format=%s", "work").split("\n")[:2] == ["Deliver three", "Two"]
    await page.get_by_role("button", name="Done").click()
    await page.get_by_label("State in git").click()
    await page.get_by_role("option", name="Untracked (1)").click()
    await expect(page.get_by_role("list", name="Changed files").get_by_title("a.txt")).to_have_count(0)
    await page.get_by_role("button", name="Merge").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Push as a new branch").check()
    await dialog.get_by_label("Branch", exact=True).fill("review/two")
    await dialog.get_by_role("button", name="Push", exact=True).click()
    await expect(page.get_by_role("dialog", name="Pushed")).to_contain_text("review/two")
    assert git(repository, "show", "review/two:new.txt") == "three\n"


async def test_a_merge_conflict_names_the_files(workplace: Workplace) -> None:
    project_id, repository = await create_project(workplace, "conflicting", {"a.txt": "one\n"})
    session_id = await run_turns(workplace, [["echo ours > a.txt"]], title="Conflict", project_id=project_id)
    git(repository, "checkout", "-qb", "work")
    (repository / "a.txt").write_text("theirs\n")
    git(repository, "commit", "-qam", "Theirs")
    git(repository, "checkout", "-q", "main")
    page = (await workplace.sign_in(path=f"/sessions/{session_id}?tab=changes")).page
    await page.get_by_role("button", name="Merge").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Branch", exact=True).fill("work")
    workplace.expect(r"409.*merge")
    await dialog.get_by_role("button", name="Merge", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("1 file has conflicting changes")
    await expect(dialog.get_by_role("alert")).to_contain_text("a.txt")
    await dialog.get_by_role("button", name="Ask the agent to resolve them").click()
    await expect(page.get_by_text("The agent works on the conflicts")).to_be_visible()
    _, message = await list_messages(workplace, session_id)
    assert "conflict with the branch work" in message
