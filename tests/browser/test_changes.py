"""Changes of a session: diffs, comments on lines that the agent gets, and content that means harm."""

import re
from typing import Any

import pytest
from bench.support.browser.changed_sessions import list_messages, run_command, run_turns, wait_until_done
from bench.support.browser.dashboard_window import PHONE, DashboardWindow, Workplace
from playwright.async_api import Locator, Page, expect

from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import text

WRITE_TWO = "printf 'one\\ntwo\\nthree\\n' > a.txt; printf 'alpha\\nbeta\\n' > b.txt"
CHANGE_ONE = "sed -i s/two/TWO/ a.txt"


async def _open(workplace: Workplace, session_id: str, query: str = "", **options: Any) -> DashboardWindow:
    return await workplace.sign_in(path=f"/sessions/{session_id}?tab=changes{query}", **options)


def _diff(page: Page) -> Locator:
    return page.get_by_test_id("diff")


def _file(page: Page, name: str) -> Locator:
    return page.get_by_role("list", name="Changed files").get_by_title(name)


def _tray(page: Page) -> Locator:
    return page.get_by_role("region", name="Comments")


async def _comment(page: Page, text: str) -> None:
    """Writes a comment on the selected lines."""
    await page.keyboard.press("c")
    await page.get_by_role("textbox", name=re.compile("^Comment on ")).fill(text)
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("textbox", name=re.compile("^Comment on "))).to_have_count(0)


@pytest.mark.smoke
@pytest.mark.action(
    "changes.comment", "changes.send-comments", "changes.next-line", "changes.extend-down", "changes.show-comments"
)
@pytest.mark.timing
async def test_comments_reach_the_agent_in_one_message(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO]], title="Review me")
    ann = (await _open(workplace, session_id, "&path=a.txt&lines=2")).page
    bob = (await _open(workplace, session_id)).page
    await expect(ann.get_by_role("toolbar", name="Selected lines")).to_contain_text("line 2")
    await _comment(ann, "Why two?")
    await expect(_tray(bob)).to_contain_text("1 comment not sent")
    await ann.keyboard.press("ArrowDown")
    await expect(ann).to_have_url(re.compile("lines=L3"))
    await ann.keyboard.press("ArrowUp")
    await ann.keyboard.press("Shift+ArrowDown")
    await expect(ann.get_by_role("toolbar", name="Selected lines")).to_contain_text(re.compile("lines 2.3"))
    await _comment(ann, "Merge <b>these</b> lines.")
    await expect(_tray(bob)).to_contain_text("2 comments not sent")
    await ann.keyboard.press("Shift+S")
    await expect(_tray(ann)).to_contain_text("2 sent")
    await expect(_tray(bob)).to_contain_text("2 sent")
    await wait_until_done(workplace, session_id, turns=2)
    _, message = await list_messages(workplace, session_id)
    assert message.startswith("2 comments on your changes:")
    assert "a.txt, line 2:\n```\ntwo\n```\nWhy two?" in message
    assert re.search("a\\.txt, lines 2.3:\n```\ntwo\nthree\n```\nMerge <b>these</b> lines\\.", message), message
    await bob.keyboard.press("o")
    await expect(_tray(bob).get_by_text("answered")).to_have_count(2)
    await expect(_tray(bob).get_by_text("I did what you asked.").first).to_be_visible()
    await _tray(bob).get_by_role("link", name="Turn 2 in the conversation").first.click()
    await expect(bob).to_have_url(re.compile(r"tab=conversation.*turn=turn_|turn=turn_.*tab=conversation"))


async def test_a_draft_is_edited_deleted_and_sent_alone(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO]], title="Drafts")
    page = (await _open(workplace, session_id, "&path=b.txt&lines=1")).page
    await expect(page.get_by_role("toolbar", name="Selected lines")).to_be_visible()
    await _comment(page, "First")
    await _comment(page, "Second")
    card = _diff(page).get_by_role("article").filter(has_text="First")
    await card.get_by_role("button", name="Edit").click()
    await page.get_by_role("textbox", name="Change the comment").fill("First, but better")
    await page.keyboard.press("Control+Enter")
    await expect(_diff(page).get_by_text("First, but better")).to_be_visible()
    await _diff(page).get_by_role("article").filter(has_text="Second").get_by_role("button", name="Delete").click()
    await expect(_diff(page).get_by_role("article")).to_have_count(1)
    await card.get_by_role("button", name="Send now").click()
    await expect(_diff(page).get_by_text("answered")).to_be_visible()
    assert len(await list_messages(workplace, session_id)) == 2
    await expect(_diff(page).get_by_role("button", name="Edit")).to_have_count(0)


async def test_a_sent_comment_follows_its_line_until_its_code_is_gone(workplace: Workplace) -> None:
    commands = (WRITE_TWO, "sed -i '1i zero' a.txt", "sed -i s/three/THREE/ a.txt")
    steps = [step for command in commands for step in ([run_command(command)], [text("Done.")])]
    session_id = await workplace.start_session(replies(*steps), title="Lines that move")
    await wait_until_done(workplace, session_id, turns=1)
    page = (await _open(workplace, session_id, "&path=a.txt&lines=3")).page
    await expect(page.get_by_role("toolbar", name="Selected lines")).to_be_visible()
    await _comment(page, "Why three?")
    await page.keyboard.press("Shift+S")
    await wait_until_done(workplace, session_id, turns=2)
    card = _diff(page).get_by_role("article")
    await expect(card).to_contain_text("written on line 3")
    await page.keyboard.press("o")
    await _tray(page).get_by_role("button", name="line 4").click()
    await expect(page).to_have_url(re.compile("lines=L4"))
    await expect(_tray(page)).not_to_contain_text("outdated")
    await workplace.client.send_text(session_id, "Write it in capitals.")
    await wait_until_done(workplace, session_id, turns=3)
    await expect(_tray(page)).to_contain_text("outdated")
    await expect(_tray(page).get_by_role("button", name="line 3")).to_be_visible()
    await expect(card).to_have_count(0)


async def test_the_plus_beside_a_line_opens_a_comment(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO]], title="Pointer")
    page = (await _open(workplace, session_id)).page
    line = _diff(page).get_by_text("beta")
    await line.hover()
    await _diff(page).get_by_role("button", name="Comment on this line").click()
    await expect(page.get_by_role("textbox", name="Comment on line 2")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("textbox", name="Comment on line 2")).to_have_count(0)


@pytest.mark.action(
    "changes.next-file",
    "changes.previous-file",
    "changes.previous-line",
    "changes.extend-up",
    "changes.toggle-layout",
    "changes.toggle-viewed",
    "changes.find-file",
    "changes.copy-link",
)
async def test_files_and_lines_by_keyboard(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO]], title="Keys")
    page = (await _open(workplace, session_id)).page
    await expect(_diff(page).get_by_text("three")).to_be_visible()
    await page.keyboard.press("j")
    await expect(page).to_have_url(re.compile(r"path=b\.txt"))
    await expect(_file(page, "b.txt")).to_have_attribute("aria-current", "true")
    await page.keyboard.press("k")
    await expect(page).to_have_url(re.compile(r"path=a\.txt"))
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page).to_have_url(re.compile("lines=L2"))
    await page.keyboard.press("Shift+ArrowDown")
    await expect(page).to_have_url(re.compile("lines=L2-3"))
    await page.keyboard.press("Shift+ArrowUp")
    await expect(page).to_have_url(re.compile("lines=L2$"))
    await page.keyboard.press("ArrowUp")
    await expect(page).to_have_url(re.compile("lines=L1"))
    await page.keyboard.press("l")
    await expect(page.get_by_text("Link to line 1 copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"path=a\.txt&lines=L1|lines=L1.*path=a\.txt", copied), copied
    await page.keyboard.press("u")
    await expect(page).to_have_url(re.compile("layout=split"))
    await expect(page.get_by_role("button", name="Show unified")).to_be_visible()
    await page.keyboard.press("v")
    await expect(_diff(page).get_by_text("three")).to_have_count(0)
    await expect(page.get_by_role("checkbox", name="Viewed a.txt")).to_be_checked()
    await page.reload()
    await expect(page.get_by_role("checkbox", name="Viewed a.txt")).to_be_checked()
    await page.keyboard.press("v")
    await expect(_diff(page).get_by_text("three")).to_be_visible()
    await page.keyboard.press("t")
    await page.keyboard.type("b.t")
    await expect(_file(page, "a.txt")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"path=b\.txt"))


@pytest.mark.action("changes.next-turn", "changes.previous-turn", "changes.all-turns")
async def test_changes_of_a_turn_of_several_and_of_all(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO], [CHANGE_ONE], ["echo x > c.txt"]], title="Turns")
    page = (await _open(workplace, session_id)).page
    files = page.get_by_role("list", name="Changed files").get_by_role("button")
    await expect(files).to_have_count(3)
    await page.keyboard.press("[")
    await expect(files).to_have_count(1)
    await expect(_file(page, "c.txt")).to_be_visible()
    await page.keyboard.press("[")
    await expect(_file(page, "a.txt")).to_be_visible()
    await expect(_diff(page).get_by_text("TWO", exact=True)).to_be_visible()
    await page.get_by_label("Up to", exact=True).click()
    await page.get_by_role("option", name="to turn 3").click()
    await expect(files).to_have_count(2)
    await page.reload()
    await expect(files).to_have_count(2)
    await page.get_by_label("Changes of", exact=True).click()
    await page.get_by_role("option", name=re.compile("^Turn 1")).click()
    # Turns 2 and 3 have two files as well: only the choice shows that the page has changed.
    await expect(page.get_by_label("Changes of", exact=True)).to_contain_text("Turn 1")
    await expect(page.get_by_label("Up to", exact=True)).to_contain_text("only this turn")
    await expect(files).to_have_count(2)
    await expect(_diff(page).get_by_text("TWO", exact=True)).to_have_count(0)
    await expect(page.get_by_role("listbox")).to_have_count(0)
    await page.keyboard.press("]")
    await expect(files).to_have_count(1)
    await page.keyboard.press("Control+k")
    await page.get_by_placeholder("Search actions and sessions").fill("Changes of all turns")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("all turns")
    await page.keyboard.press("Enter")
    await expect(files).to_have_count(3)


async def test_changes_appear_as_the_agent_makes_them(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [["true"]], title="Live")
    page = (await _open(workplace, session_id)).page
    await expect(page.get_by_text("No changes", exact=True)).to_be_visible()
    other_id = await run_turns(workplace, [[WRITE_TWO], [CHANGE_ONE]], title="Two turns")
    await page.goto(page.url.replace(session_id, other_id))
    await expect(_diff(page).get_by_text("TWO", exact=True)).to_be_visible()


HOSTILE_NAMES = (
    "<img src=x onerror=alert(1)>.txt",
    "\u202egpj.exe",
    "a\tb.txt",
    "quote\"'`$(id).txt",
    "é 日本語 👨‍👩‍👧.txt",
    "__proto__",
    "-rf",
    "line\nbreak.txt",
    "{{constructor}}",
    "x" * 200 + ".md",
)
HOSTILE_LINES = (
    "<script>alert(1)</script>",
    "<img src=//example.com/x.png onerror=alert(1)>",
    "admin\u202e // \u2066only\u2069",
    "zero\u200bwidth",
    "\x1b[31mred\x1b[0m \x07",
    "</span></style><style>*{display:none}</style>",
    "javascript:alert(1)",
    "@@ -1,1 +1,1 @@",
    "diff --git a/fake b/fake",
    "\\ No newline at end of file",
    "a\rb",
    "\u2028line separator",
)
_HOSTILE = f"""python3 - <<'END'
lines = {HOSTILE_LINES!r}
for name in {HOSTILE_NAMES!r}:
    with open(name, "w", newline="") as file:
        file.write("\\n".join(lines) + "\\n")
with open("long.txt", "w") as file:
    file.write("y" * 5_000_000 + "\\n")
with open("binary.bin", "wb") as file:
    file.write(bytes(range(256)) * 20)
END"""


async def test_hostile_names_and_content(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[_HOSTILE]], title="Hostile")
    window = await workplace.sign_in()
    page = window.page
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url) if window.base_url not in request.url else None)
    page.on("dialog", lambda dialog: foreign.append(dialog.message))
    await window.open_page(f"/sessions/{session_id}?tab=changes")
    await expect(_diff(page)).to_have_attribute("data-complete", "true")
    files = page.get_by_role("list", name="Changed files").get_by_role("button")
    await expect(files).to_have_count(len(HOSTILE_NAMES) + 2)
    for name in ("U+202E", "<img src=x onerror=alert(1)>.txt", "__proto__", "{{constructor}}", "日本語"):
        await expect(files.filter(has_text=name).first).to_be_visible()
    await files.filter(has_text="__proto__").click()
    for shown in ("<script>alert(1)</script>", "⟦U+202E⟧", "⟦U+200B⟧", "⟦ESC⟧", "⟦U+2028⟧"):
        await expect(_diff(page).get_by_text(shown).first).to_be_visible()
    await files.filter(has_text="binary.bin").click()
    await expect(_diff(page).get_by_text("Binary file: not shown").first).to_be_visible()
    await files.filter(has_text="long.txt").click()
    await expect(_diff(page).get_by_text("4,998,000 more characters").first).to_be_visible()
    await page.keyboard.press("u")
    await expect(page.get_by_role("button", name="Show unified")).to_be_visible()
    assert [url for url in foreign if not url.startswith(("blob:", "data:"))] == []


async def test_a_comment_on_a_hostile_file_quotes_it(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[_HOSTILE]], title="Hostile comment")
    page = (await _open(workplace, session_id, "&path=__proto__&lines=1")).page
    await expect(page.get_by_role("toolbar", name="Selected lines")).to_be_visible()
    await _comment(page, "Remove this script.")
    await expect(_diff(page).get_by_text("Remove this script.")).to_be_visible()
    await page.keyboard.press("Shift+S")
    await expect(_tray(page)).to_contain_text("1 sent")
    _, message = await list_messages(workplace, session_id)
    assert "__proto__, line 1:\n```\n<script>alert(1)</script>\n```\nRemove this script." in message


@pytest.mark.action("changes.download-patch", "changes.compare")
async def test_the_patch_is_downloaded_and_another_attempt_offered(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO]], title="Export")
    page = (await _open(workplace, session_id)).page
    await page.get_by_role("button", name="More").click()
    async with page.expect_download() as download:
        await page.get_by_role("menuitem", name="Download as a patch").click()
    file = await download.value
    assert file.suggested_filename == f"{session_id}.patch"
    assert "+two" in (await file.path()).read_text()
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Compare with another attempt").click()
    await expect(page.get_by_role("heading", name="Compare Export with")).to_be_visible()


async def test_a_viewer_reads_and_sees_why_not_more(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO]], title="Read only")
    created: Any = await workplace.client.sdk.post(
        "/v1/api_keys", body={"name": "reader", "roles": ["viewer"]}, cast_to=dict[str, Any]
    )
    page = (await _open(workplace, session_id, "&path=a.txt&lines=2", key=created["secret"])).page
    comment = page.get_by_role("toolbar", name="Selected lines").get_by_role("button", name="Comment")
    await expect(comment).to_be_disabled()
    await expect(comment).to_have_attribute("title", "Your role does not permit comments.")
    await page.get_by_role("button", name="Merge").click()
    await expect(page.get_by_role("dialog").get_by_role("button", name="Merge", exact=True)).to_be_disabled()


async def test_a_phone_comments_on_a_line(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [[WRITE_TWO]], title="Phone")
    page = (await _open(workplace, session_id, "&path=a.txt&lines=2", size=PHONE)).page
    await page.get_by_role("toolbar", name="Selected lines").get_by_role("button", name="Comment").tap()
    await page.get_by_role("textbox", name="Comment on line 2").fill("From the train")
    await page.get_by_role("button", name="Add comment").tap()
    await expect(_tray(page)).to_contain_text("1 comment not sent")
    await page.get_by_role("button", name="2 changed files").tap()
    await page.get_by_role("dialog", name="Changed files").get_by_title("b.txt").tap()
    await expect(page).to_have_url(re.compile(r"path=b\.txt"))
    overflow = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0, "the page scrolls sideways"
