"""Batches, from the command line."""

from pathlib import Path

import pytest
from tests.acceptance.cli.cli_cell import Cell, fits

pytestmark = [pytest.mark.timing, pytest.mark.requirement("S3")]

JOBS = """\
{"custom_id": "good", "shell": "echo built"}
{"custom_id": "bad", "shell": "echo broken; exit 3"}
"""


async def test_a_batch_is_run_inspected_repeated_and_cancelled(cell: Cell, tmp_path: Path) -> None:
    (tmp_path / "jobs.jsonl").write_text(JOBS)
    done = await cell.run("batch", "run", "--json", str(tmp_path / "jobs.jsonl"))
    assert (done.code, fits("batch-run", done.out)["batch"]["counts"]["failed"]) == (1, 1), done
    listed = fits("batches", (await cell.run("batch", "ls", "--json")).out)
    detail = fits("batch-detail", (await cell.run("batch", "show", "--json")).out)
    assert [batch["id"] for batch in listed] == [detail["batch"]["id"]]
    lines = [
        fits("batch-result-line", line) for line in (await cell.run("batch", "results", "--json")).out.splitlines()
    ]
    assert {line["custom_id"]: line["outcome"] for line in lines} == {"good": "completed", "bad": "failed"}
    repeated = fits("batch", (await cell.run("batch", "retry", "--detach", "--json")).out)
    assert (repeated["retry_of"], repeated["total"]) == (detail["batch"]["id"], 1)
    cancelled = fits("batch", (await cell.run("batch", "cancel", "--json")).out)
    assert cancelled["id"] == repeated["id"]
