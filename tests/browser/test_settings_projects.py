"""Settings, projects: the list, the form, who may change a project with rules, and the archive."""

import re
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Page, Route, expect

PROJECTS = "/settings?section=projects"
RULES = {"permissions": {"deny": ["Bash(rm *)"], "ask": [], "allow": []}}


async def _create(workplace: Workplace, name: str, **fields: Any) -> str:
    body = {"url": f"https://git.example.com/{name}.git", "name": name, **fields}
    return str((await workplace.client.sdk.post("/v1/projects", body=body, cast_to=dict[str, Any]))["id"])


async def _read(workplace: Workplace, project_id: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(f"/v1/projects/{project_id}", cast_to=dict[str, Any])


def _id_of(page: Page) -> str:
    found = re.search(r"item=(proj_[^&]+)", page.url)
    assert found is not None
    return found[1]


@pytest.mark.action("settings.project-new")
async def test_a_project_is_created_from_an_address(workplace: Workplace) -> None:
    workplace.expect("400")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(PROJECTS)
    await expect(page.get_by_text("A project is a git repository that sessions work on")).to_be_visible()
    await page.keyboard.press("c")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("Write the address of the repository.")).to_be_visible()
    await page.get_by_label("Address").fill("https://me:secret@git.example.com/website.git")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert").filter(has_text="it contains credentials")).to_be_visible()
    await page.get_by_label("Address").fill("https://git.example.com/website.git")
    await page.get_by_label("Branch").fill("next")
    await page.get_by_label("Trust in its own files").click()
    await page.get_by_role("option", name="Instructions").click()
    await page.get_by_label("Setup command").fill("test -d node_modules || npm ci")
    await page.get_by_label("Cache for later sessions").click()
    await page.get_by_role("option", name="Directories that I choose").click()
    await page.get_by_label("Cached directories").fill("node_modules\n.next/cache")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="website")).to_be_visible()
    await expect(page.get_by_text("Cached: node_modules, .next/cache")).to_be_visible()
    stored = await _read(workplace, _id_of(page))
    assert (stored["url"], stored["branch"]) == ("https://git.example.com/website.git", "next")
    assert (stored["trust"], stored["setup"]) == ("instructions", "test -d node_modules || npm ci")
    assert stored["cached_directories"] == ["node_modules", ".next/cache"]


@pytest.mark.action("settings.project-edit", "settings.project-session")
async def test_a_project_is_edited_and_keeps_its_rules(workplace: Workplace) -> None:
    project = await _create(workplace, "library", branch="main", setup="make deps", **RULES)
    await _create(workplace, "website")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(PROJECTS)
    rows = page.get_by_role("list", name="Projects").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    await expect(rows.filter(has_text="library").first).to_contain_text("https://git.example.com/library.git")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await page.get_by_label("Branch").fill("")
    await page.get_by_label("Setup command").fill("make all")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("the branch that is checked out")).to_be_visible()
    await expect(page.get_by_role("region", name="Rules").first).to_contain_text("Bash(rm *)")
    stored = await _read(workplace, project)
    assert (stored["branch"], stored["setup"], stored["permissions"]["deny"]) == (None, "make all", ["Bash(rm *)"])
    await page.keyboard.press("s")
    await expect(page).to_have_url(re.compile(f"/new\\?project_id={project}"))


@pytest.mark.action("settings.project-archive")
async def test_a_project_is_archived_after_a_confirmation(workplace: Workplace) -> None:
    project = await _create(workplace, "old")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{PROJECTS}&item={project}")
    await expect(page.get_by_role("heading", name="old")).to_be_visible()
    await page.keyboard.press("Shift+D")
    await expect(page.get_by_text("No new session can use it, for good.")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    assert (await _read(workplace, project))["archived_at"] is None
    await window.run_action("Archive the project")
    await page.get_by_role("button", name="Archive", exact=True).click()
    await expect(page.get_by_text("archived", exact=True)).to_be_visible()
    await page.get_by_role("button", name="All projects").click()
    await expect(page.get_by_text("A project is a git repository that sessions work on")).to_be_visible()
    await page.get_by_role("switch", name="Show archived").click()
    await expect(page.get_by_role("list", name="Projects").get_by_role("listitem")).to_contain_text("archived")
    await window.open_page(f"{PROJECTS}&item={project}&edit=true")
    await expect(page.get_by_text("This project is archived")).to_be_visible()


async def test_only_those_who_change_rules_archive_a_project_that_has_some(workplace: Workplace) -> None:
    workplace.expect("403")
    project = await _create(workplace, "guarded", **RULES)
    post = workplace.client.sdk.post
    member = await post("/v1/members", body={"name": "op", "roles": ["operator"]}, cast_to=dict[str, Any])
    body = {"name": "op", "member_id": member["id"], "roles": ["operator"]}
    key = (await post("/v1/api_keys", body=body, cast_to=dict[str, Any]))["secret"]
    window = await workplace.sign_in(key=str(key))
    page = window.page
    await window.open_page(f"{PROJECTS}&item={project}")
    await page.get_by_role("button", name="More").click()
    await expect(page.get_by_role("menuitem", name="ask a policy_admin")).to_be_disabled()
    await page.keyboard.press("Escape")
    await page.keyboard.press("e")
    await expect(page.get_by_text("branch, trust and setup need the role policy_admin or admin")).to_be_visible()
    await page.get_by_label("Branch").fill("evil")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("The project was not saved")).to_be_visible()
    assert (await _read(workplace, project))["branch"] is None


async def test_hostile_locations_on_a_phone(workplace: Workplace) -> None:
    setup = "echo \u202etxt.exe <script>window.__executed=1</script> " + "x" * 3000
    await _create(workplace, "x" * 64, branch="a/" + "b" * 200, setup=setup)
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(PROJECTS)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("list", name="Projects").get_by_role("link").tap()
    await expect(page.get_by_role("region", name="Setup command").last).to_contain_text("U+202E")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.evaluate("window.__executed") is None


async def test_a_failed_request_is_shown_and_tried_again(workplace: Workplace) -> None:
    workplace.expect("500")
    project = await _create(workplace, "website")
    window = await workplace.sign_in()
    page = window.page

    async def fail(route: Route) -> None:
        await route.fulfill(status=500, json={})

    await page.route(f"**/v1/projects/{project}", fail)
    await window.open_page(f"{PROJECTS}&item={project}")
    await expect(page.get_by_text("The project could not be loaded")).to_be_visible()
    await page.unroute(f"**/v1/projects/{project}")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="website")).to_be_visible()


async def test_a_viewer_can_look_at_projects_only(workplace: Workplace) -> None:
    project = await _create(workplace, "website")
    viewer = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = viewer.page
    await viewer.open_page(PROJECTS)
    await expect(page.get_by_role("link", name="website")).to_be_visible()
    await expect(page.get_by_text("You can only look")).to_be_visible()
    await expect(page.get_by_role("button", name="New project")).to_have_count(0)
    await viewer.open_page(f"{PROJECTS}&item={project}")
    await expect(page.get_by_role("heading", name="website")).to_be_visible()
    await expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    await viewer.open_page(f"{PROJECTS}&item={project}&edit=true")
    await expect(page.get_by_text("for the role operator, member or policy_admin")).to_be_visible()
