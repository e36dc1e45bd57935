"""Settings, members and teams: the lists, adding, roles, disabling with a successor, and who is in a team."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from bench.support.browser.hostile_content import TEXTS
from playwright.async_api import Locator, Page, expect

MEMBERS = "/settings?section=members"
TEAMS = "/settings?section=teams"
REFUSAL = {"error": {"type": "api_error", "message": "The database does not respond.", "help": "Try again."}}


async def _post(workplace: Workplace, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    return await workplace.client.sdk.post(path, body=body or {}, cast_to=dict[str, Any])


async def _get(workplace: Workplace, path: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(path, cast_to=dict[str, Any])


async def _add(workplace: Workplace, name: str, roles: Sequence[str] = ("member",), kind: str = "person") -> str:
    member = await _post(workplace, "/v1/members", {"name": name, "roles": [*roles], "kind": kind})
    return str(member["id"])


async def _find(workplace: Workplace, name: str) -> dict[str, Any]:
    listed = await _get(workplace, "/v1/members?include_archived=true")
    return next(each for each in listed["data"] if each["name"] == name)


def _rows(page: Page, label: str = "Members") -> Locator:
    return page.get_by_role("list", name=label, exact=True).get_by_role("listitem")


async def _open(workplace: Workplace, address: str) -> DashboardWindow:
    window = await workplace.sign_in()
    await window.open_page(address)
    return window


@pytest.mark.smoke
@pytest.mark.action("settings.new-member", "settings.change-roles")
async def test_a_member_is_added_and_its_roles_change(workplace: Workplace) -> None:
    workplace.expect("409")
    await _add(workplace, "Cleo")
    window = await _open(workplace, MEMBERS)
    page = window.page
    await expect(_rows(page)).to_have_count(2)
    await expect(_rows(page).filter(has_text="Ada")).to_contain_text("you")
    await page.keyboard.press("c")
    form = page.get_by_role("dialog", name="Add a member")
    await expect(form.get_by_label("Name", exact=True)).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(form.get_by_text("Write the name of the person or the service account.")).to_be_visible()
    await form.get_by_label("Name", exact=True).fill("Cleo")
    await form.get_by_role("button", name="Add member").click()
    await expect(form.get_by_text("There is already a member or a team with the name 'Cleo'.")).to_be_visible()
    await form.get_by_label("Name", exact=True).fill("nightly")
    await form.get_by_label("Kind").click()
    await page.get_by_role("option", name="Service account").click()
    await form.get_by_role("checkbox", name="member", exact=True).click()
    await page.keyboard.press("Control+Enter")
    await expect(form.get_by_text("Choose a role.")).to_be_visible()
    await form.get_by_role("checkbox", name="viewer").click()
    await page.keyboard.press("Control+Enter")
    row = _rows(page).filter(has_text="nightly")
    await expect(row).to_contain_text("service account")
    await expect(row).to_contain_text("no way yet")
    member = await _find(workplace, "nightly")
    assert (member["kind"], member["roles"]) == ("service", ["viewer"])
    await row.get_by_role("button", name="nightly", exact=True).click()
    await expect(row).to_have_attribute("aria-current", "true")
    await page.keyboard.press("e")
    roles = page.get_by_role("dialog", name="Roles of “nightly”")
    await expect(roles.get_by_role("checkbox", name="viewer")).to_be_checked()
    await roles.get_by_role("checkbox", name="operator").click()
    await roles.get_by_label("Roles of your own").fill("release_manager")
    await roles.get_by_role("button", name="Change roles").click()
    await expect(row).to_contain_text("viewer, operator, release_manager")
    assert (await _find(workplace, "nightly"))["roles"] == ["viewer", "operator", "release_manager"]


async def test_the_list_shows_teams_and_how_members_sign_in(workplace: Workplace) -> None:
    ann = await _add(workplace, "Ann Miller")
    await _post(workplace, "/v1/api_keys", {"name": "laptop", "member_id": ann})
    await _post(workplace, "/v1/teams", {"name": "web", "member_ids": [ann]})
    window = await _open(workplace, MEMBERS)
    row = _rows(window.page).filter(has_text="Ann Miller")
    await expect(row).to_contain_text("web")
    await expect(row).to_contain_text("API key")
    await expect(row).to_contain_text("active")
    await window.page.keyboard.press("j")
    await expect(_rows(window.page).first).to_have_attribute("aria-current", "true")


@pytest.mark.action("settings.disable-member", "settings.hand-over", "settings.show-disabled-members")
async def test_a_member_is_disabled_and_its_work_handed_over(workplace: Workplace) -> None:
    ann, ben = await _add(workplace, "Ann Miller"), await _add(workplace, "Ben Ode")
    key = await _post(workplace, "/v1/api_keys", {"name": "laptop", "member_id": ann})
    window = await _open(workplace, f"{MEMBERS}&selected={ann}")
    page = window.page
    await expect(_rows(page)).to_have_count(3)
    await page.keyboard.press("Shift+D")
    question = page.get_by_role("dialog", name="Disable “Ann Miller”?")
    await expect(question.get_by_label("What happens")).to_contain_text("Its API keys are revoked for good.")
    await expect(question.get_by_label("What happens")).to_contain_text("Queued messages wait")
    await question.get_by_role("button", name="Cancel").click()
    assert (await _find(workplace, "Ann Miller"))["disabled_at"] is None
    await page.keyboard.press("Shift+D")
    await question.get_by_role("button", name="Disable").click()
    await expect(_rows(page)).to_have_count(2)
    assert (await _get(workplace, f"/v1/api_keys/{key['id']}"))["revoked_at"] is not None
    await window.run_action("Show disabled members")
    row = _rows(page).filter(has_text="Ann Miller")
    await expect(row.get_by_text("disabled", exact=True)).to_be_visible()
    await row.get_by_role("button", name="Ann Miller", exact=True).click()
    await page.keyboard.press("h")
    hand_over = page.get_by_role("dialog", name="Hand over the work of “Ann Miller”")
    await expect(hand_over.get_by_role("button", name="Hand over")).to_be_disabled()
    await hand_over.get_by_label("Hand over the work to").fill("Ben")
    await page.get_by_role("option", name="Ben Ode").click()
    await expect(hand_over).to_contain_text("belong to Ben Ode from now on")
    await page.keyboard.press("Control+Enter")
    await expect(row).to_contain_text("work handed over to Ben Ode")
    assert (await _find(workplace, "Ann Miller"))["successor_id"] == ben
    await page.keyboard.press("Shift+D")
    enable = page.get_by_role("dialog", name="Enable “Ann Miller” again?")
    await expect(enable).to_contain_text("What was handed over stays with Ben Ode.")
    await enable.get_by_role("button", name="Enable").click()
    await expect(row.get_by_text("active", exact=True)).to_be_visible()
    await page.get_by_role("switch", name="Show disabled").click()
    await expect(page).to_have_url(re.compile(f"section=members&selected={ann}$"))


async def test_the_last_administrator_stays(workplace: Workplace) -> None:
    workplace.expect("409")
    window = await _open(workplace, MEMBERS)
    page = window.page
    refusal = "You cannot disable yourself or give up the role 'admin'."
    await _rows(page).first.get_by_role("button", name="More for Ada").click()
    await page.get_by_role("menuitem", name="Disable").click()
    await page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    await expect(page.get_by_role("alert")).to_contain_text(refusal)
    await expect(page.get_by_role("alert")).to_contain_text("Ask another administrator")
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await page.keyboard.press("e")
    roles = page.get_by_role("dialog", name="Roles of “Ada”")
    await roles.get_by_role("checkbox", name="admin", exact=True).click()
    await roles.get_by_role("checkbox", name="member", exact=True).click()
    await page.keyboard.press("Control+Enter")
    await expect(roles.get_by_role("alert")).to_contain_text(refusal)
    assert (await _find(workplace, "Ada"))["roles"] == ["admin"]


@pytest.mark.smoke
@pytest.mark.action("settings.new-team", "settings.change-team")
async def test_a_team_is_created_and_its_members_change(workplace: Workplace) -> None:
    workplace.expect("409")
    ann, ben = await _add(workplace, "Ann Miller"), await _add(workplace, "Ben Ode")
    window = await _open(workplace, TEAMS)
    page = window.page
    await expect(page.get_by_text("No teams yet")).to_be_visible()
    await page.keyboard.press("c")
    form = page.get_by_role("dialog", name="New team")
    await expect(form.get_by_label("Name", exact=True)).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(form.get_by_text("Give the team a name.")).to_be_visible()
    await form.get_by_label("Name", exact=True).fill("Ann Miller")
    await form.get_by_role("button", name="Create team").click()
    await expect(form.get_by_role("alert")).to_contain_text("There is already a member or a team with the name")
    await form.get_by_label("Name", exact=True).fill("web")
    await form.get_by_label("Add a member").fill("Ann")
    await page.get_by_role("option", name="Ann Miller").click()
    await expect(form.get_by_role("list", name="Members of the team")).to_contain_text("Ann Miller")
    await form.get_by_role("button", name="Create team").click()
    rows = _rows(page, "Teams")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("1 member")
    await expect(rows).to_contain_text("Ann Miller")
    await page.keyboard.press("j")
    await expect(rows).to_have_attribute("aria-current", "true")
    await page.keyboard.press("e")
    change = page.get_by_role("dialog", name="Members of “web”")
    await expect(change.get_by_role("button", name="Save")).to_be_disabled()
    await change.get_by_label("Add a member").fill("Ben")
    await page.get_by_role("option", name="Ben Ode").click()
    await change.get_by_role("button", name="Remove Ann Miller").click()
    await expect(change.get_by_text("no longer sees the sessions of this team")).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(rows).to_contain_text("Ben Ode")
    listed = await _get(workplace, "/v1/teams")
    assert [team["member_ids"] for team in listed["data"]] == [[ben]]
    assert ann not in str(listed)


async def test_a_viewer_sees_teams_without_members_and_no_member(workplace: Workplace) -> None:
    await _post(workplace, "/v1/teams", {"name": "web", "member_ids": [await _add(workplace, "Ann Miller")]})
    window = await workplace.sign_in(key=await workplace.create_viewer_key())
    page = window.page
    await window.open_page(MEMBERS)
    await expect(page.get_by_text("You cannot see the members")).to_be_visible()
    await expect(page.get_by_text("This needs the role admin, and you have viewer.")).to_be_visible()
    await expect(page.get_by_role("button", name="Add member")).to_have_count(0)
    await window.open_page(TEAMS)
    await expect(_rows(page, "Teams")).to_contain_text("1 member")
    await expect(page.get_by_text("This needs the role admin, and you have viewer.")).to_be_visible()
    for name in ("New team", "More for web"):
        await expect(page.get_by_role("button", name=name)).to_have_count(0)


async def test_lists_that_cannot_be_loaded(workplace: Workplace) -> None:
    workplace.expect("500")
    window = await workplace.sign_in()
    page = window.page
    await page.route(re.compile("/v1/(members|teams)"), lambda route: route.fulfill(status=500, json=REFUSAL))
    for address, label in ((MEMBERS, "Members"), (TEAMS, "Teams")):
        await window.open_page(address)
        await expect(page.get_by_role("alert")).to_contain_text(f"{label} could not be loaded")
        await expect(page.get_by_role("alert")).to_contain_text("The database does not respond.")
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No teams yet")).to_be_visible()


async def test_hostile_names_on_a_phone(workplace: Workplace) -> None:
    ids = [await _add(workplace, TEXTS[name]) for name in ("script", "image with a handler", "bidirectional")]
    await _post(workplace, "/v1/teams", {"name": f"team {TEXTS['bidirectional']}", "member_ids": ids})
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(MEMBERS)
    await expect(_rows(page)).to_have_count(4)
    await expect(_rows(page).filter(has_text="<script>")).to_have_count(1)
    row = _rows(page).filter(has=page.get_by_role("button", name="gpj.exe"))
    await row.get_by_role("button", name="More for").tap()
    await page.get_by_role("menuitem", name="Disable").tap()
    question = page.get_by_role("dialog")
    await expect(question.get_by_text("U+202E").first).to_be_visible()
    await question.get_by_role("button", name="Disable").tap()
    await expect(_rows(page)).to_have_count(3)
    await window.open_page(TEAMS)
    await expect(_rows(page, "Teams").get_by_text("U+202E").first).to_be_visible()
    await page.get_by_role("button", name="More for").tap()
    await page.get_by_role("menuitem", name="Add and remove members").tap()
    form = page.get_by_role("dialog")
    await expect(form.get_by_role("list", name="Members of the team").get_by_role("listitem")).to_have_count(3)
    assert await page.evaluate("window.__executed") is None
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
