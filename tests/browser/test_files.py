"""Files of a session: outputs and attachments, their previews, downloads, and content that means harm."""

import re
from typing import Any

import pytest
from bench.support.browser.changed_sessions import run_turns
from bench.support.browser.dashboard_window import PHONE, Workplace
from playwright.async_api import Locator, Page, expect

_SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><script>alert(1)</script></svg>'
_WRITE = f"""python3 - <<'END'
import os
root = os.environ["FOOTPLATE_OUTPUTS"]
def write(name, content):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
write("charts/chart.svg", {_SVG.encode()!r})
write("report.md", b"# Report\\n\\n<img src=x onerror=alert(1)> \\xe2\\x80\\xaegpj\\n")
write("page.html", b"<script>alert(1)</script>")
write("data.bin", bytes(range(256)))
write("long.txt", b"y" * 3_000_000)
write("<b>\\u202ename</b>.txt", b"hello\\n")
END"""


async def _open(workplace: Workplace, **options: Any) -> tuple[Page, str]:
    session_id = await run_turns(workplace, [[_WRITE]], title="Outputs")
    window = await workplace.sign_in(path=f"/sessions/{session_id}?tab=files", **options)
    return window.page, session_id


def _outputs(page: Page) -> Locator:
    return page.get_by_role("list", name="Outputs").get_by_role("button")


def _preview(page: Page) -> Locator:
    return page.get_by_role("region", name="Preview")


@pytest.mark.action("files.next", "files.previous", "files.download", "files.delete")
async def test_outputs_are_shown_downloaded_and_deleted(workplace: Workplace) -> None:
    page, session_id = await _open(workplace)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await expect(_outputs(page)).to_have_count(6)
    await _outputs(page).filter(has_text="report.md").click()
    await expect(_preview(page).get_by_text("<img src=x onerror=alert(1)> ⟦U+202E⟧gpj")).to_be_visible()
    await _outputs(page).filter(has_text="chart.svg").click()
    await expect(_preview(page).get_by_text(re.compile("20 . 10 pixels"))).to_be_visible()
    await _outputs(page).filter(has_text="page.html").click()
    await expect(_preview(page).get_by_text("<script>alert(1)</script>")).to_be_visible()
    await _outputs(page).filter(has_text="data.bin").click()
    await expect(_preview(page).get_by_text("This file is not text.")).to_be_visible()
    await _outputs(page).filter(has_text="long.txt").click()
    await expect(_preview(page).get_by_text("The first 1.0 MB of 2.9 MB are shown.")).to_be_visible()
    await expect(_outputs(page).filter(has_text="U+202E")).to_have_count(1)
    await _outputs(page).nth(1).click()
    await expect(_outputs(page).nth(1)).to_have_attribute("aria-current", "true")
    await page.keyboard.press("k")
    await expect(_outputs(page).first).to_have_attribute("aria-current", "true")
    await page.keyboard.press("j")
    await expect(_outputs(page).nth(1)).to_have_attribute("aria-current", "true")
    await _outputs(page).filter(has_text="report.md").click()
    async with page.expect_download() as download:
        await page.keyboard.press("d")
    file = await download.value
    assert file.suggested_filename == "report.md"
    await page.get_by_role("button", name="Delete the output").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    await expect(_outputs(page)).to_have_count(5)
    listed: Any = await workplace.client.sdk.get(f"/v1/files?scope_id={session_id}", cast_to=dict[str, Any])
    assert "report.md" not in {one["filename"] for one in listed["data"]}
    assert dialogs == []


async def test_a_phone_goes_from_the_list_to_a_file_and_back(workplace: Workplace) -> None:
    page, _ = await _open(workplace, size=PHONE)
    await _outputs(page).filter(has_text="report.md").tap()
    await expect(_preview(page).get_by_text("# Report")).to_be_visible()
    await page.get_by_role("button", name="Back to the list").tap()
    await expect(_outputs(page).first).to_be_visible()


async def test_attachments_are_listed_and_a_lost_file_is_reported(workplace: Workplace) -> None:
    session_id = await run_turns(workplace, [["true"]], title="Attachments")
    window = await workplace.sign_in(path=f"/sessions/{session_id}?tab=files")
    await expect(window.page.get_by_text("No files yet")).to_be_visible()
    uploaded = await workplace.client.sdk.beta.files.upload(file=("notes.txt", b"remember", "text/plain"))
    block = {"type": "document", "source": {"type": "file", "file_id": uploaded.id}}
    await workplace.client.send(session_id, {"type": "user.message", "content": [block]})
    attachments = window.page.get_by_role("list", name="Attachments").get_by_role("button")
    await expect(attachments).to_have_count(1)
    await expect(_preview(window.page).get_by_text("remember")).to_be_visible()
    await window.open_page(f"/sessions/{session_id}?tab=files&file=file_gone")
    await expect(window.page.get_by_text("This file no longer exists")).to_be_visible()
