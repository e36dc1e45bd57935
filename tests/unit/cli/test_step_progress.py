"""The lines that `queue run` prints about steps."""

from datetime import UTC, datetime
from typing import Any

import pytest

from footplate.cli.json_output_models import PipelineResult
from footplate.cli.render.step_progress import StepProgressView
from footplate.cli.render.step_tables import print_step
from footplate.client import Step

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _step(name: str, state: str, **fields: Any) -> Step:
    given = {"id": f"step_{name}", "session_id": "sesn_1", "kind": "shell", "command": "exit 3", "sort_key": 1}
    return Step.model_validate({**given, "name": name, "state": state, "created_at": NOW, **fields})


def test_the_last_lines_of_a_failed_step_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(f"line {number}\n" for number in range(30)) + "[exit code 3]"
    failed = _step("fail", "failed", result={"status": "failed", "exit_code": 3, "text": text})
    done = _step("done", "completed", result={"status": "completed", "exit_code": 0, "text": "fine"})
    view = StepProgressView([failed, done, done])
    for number, step in enumerate((failed, done, done), 1):
        view.step_ended(number, step)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == "… 10 more lines"
    assert lines[2:22] == [f"line {number}" for number in range(10, 30)]
    assert lines[22:] == ["2/3 done completed exit code 0", "3/3 done completed exit code 0", "fine"]


def test_all_conflicts_of_a_failed_delivery_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = "The work conflicts with the branch 'main' in 2 files:\na: changed\nb: changed\nNothing was changed."
    result = {"status": "failed", "error_message": text, "text": text, "duration_ms": 400}
    failed = _step("deliver", "failed", kind="merge", into="main", command=None, result=result)
    StepProgressView([failed, failed]).step_ended(1, failed)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1/2 deliver failed    0.4s · The work conflicts with the branch 'main' in 2 files:"
    assert [line.strip() for line in lines[1:]] == text.splitlines()
    print_step(failed)
    assert capsys.readouterr().out.count("a: changed") == 1


def test_the_last_lines_have_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [_step("one", "completed"), _step("two", "pending")]
    usage = {"input_tokens": 1200, "output_tokens": 34, "requests": 3, "cost_microusd": 12_300}
    given = {"session_id": "sesn_1", "status": "paused", "exit_code": 3, "steps": steps}
    view = StepProgressView(steps)
    view.show_pipeline_result(PipelineResult.model_validate({**given, "seconds": 125, "sessions": 4, "usage": usage}))
    view.show_pipeline_result(PipelineResult.model_validate(given))
    assert capsys.readouterr().out.splitlines() == [
        "paused · 1 of 2 steps ended · 2m 05s · 1,200 in · 34 out · $0.0123 · 4 sessions",
        "sesn_1",
        "paused · 1 of 2 steps ended",
        "sesn_1",
    ]


def test_a_pause_explains_how_to_repeat_the_failed_step(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [_step("fail", "failed", ended_at=NOW), _step("after", "pending")]
    StepProgressView(steps).show_pause("sesn_1", steps)
    assert capsys.readouterr().err.splitlines() == [
        "The session is paused. Continue with after, without fail:",
        "  footplate play sesn_1",
        "Or repeat fail first:",
        "  footplate steps retry fail --play --session sesn_1",
    ]
