"""Sessions that end, from the command line."""

from pathlib import Path

import pytest
from tests.acceptance.cli.cli_cell import Cell, fits

pytestmark = [pytest.mark.timing, pytest.mark.requirement("R2", "O8")]

PIPELINE = """\
steps:
  - name: check
    shell: echo nothing to do
    ends_session: true
  - name: build
    shell: echo built
"""


async def test_run_and_end_and_show(cell: Cell) -> None:
    done = await cell.run("run", "--scratch", "--harness", "native", "--end-when-done", "Say hello")
    assert done.code == 0, done
    shown = (await cell.run("show")).out
    assert "ended: completed" in shown, shown
    started = await cell.run("run", "--scratch", "--harness", "native", "Say hello")
    assert started.code == 0, started
    ended = await cell.run("end", "--cancelled", "--reason", "Not needed")
    assert (ended.code, "cancelled. Go on in a fork" in ended.err) == (0, True), ended
    session = fits("session", (await cell.run("end", "--cancelled", "--json")).out)
    assert (session["status"], session["end"]["reason"]) == ("terminated", "Not needed")
    refused = await cell.run("end", "--failed")
    assert (refused.code, "already ended as cancelled" in refused.err) == (1, True), refused
    listed = (await cell.run("ls", "--status", "terminated")).out
    assert ("ended: completed" in listed, "ended: cancelled" in listed) == (True, True), listed
    more = await cell.run("run", "--session", "last", "More")
    assert (more.code, "footplate fork" in more.err) == (1, True), more
    wrong = await cell.run("run", "--session", "last", "--end-when-done", "More")
    assert wrong.code == 2, wrong


async def test_a_step_ends_the_session_of_a_pipeline(cell: Cell, tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    done = await cell.run("queue", "run", "--scratch", "--json", str(tmp_path / "pipeline.yaml"))
    result = fits("pipeline", done.out)
    assert (done.code, result["status"]) == (0, "completed"), done
    assert [step["state"] for step in result["steps"]] == ["completed", "cancelled"]
