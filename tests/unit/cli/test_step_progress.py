"""The lines that `queue run` prints about steps."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from footplate.cli.json_output_models import PipelineResult
from footplate.cli.render.step_progress import StepProgressView
from footplate.cli.render.step_tables import print_next, print_playback, print_step
from footplate.client import Playback, Step

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


def test_a_terminal_shows_whole_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    name = "review_of_the_complete_work"
    command = f"footplate steps result {name} --session sesn_1 --status completed"
    step = _step(name, "running", kind="external", waiting_for="action", instructions="Read it", command=None)
    StepProgressView([step]).step_waits(1, step, "for its result:", command)
    print_step(step)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in capsys.readouterr().out.splitlines()]
    assert (lines[0], lines[1], lines[-1]) == ("1/1 review_of_the_c… waits     for its result:", command, command)


def test_the_status_line_has_the_step_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _step("tests", "running", attempt=2), _step("fix", "running", attempt=1)
    view, shown = StepProgressView([first, second]), list[str | None]()
    monkeypatch.setattr(view._screen, "set_status", shown.append)
    for number, step in ((1, first), (1, first), (0, None), (2, second)):
        view.set_running(number, step)
    assert shown == ["1/2 tests ", None, "2/2 fix "]


def test_playback_is_described_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    paused = Playback(session_id="sesn_1", playing=False, next_steps=1, pause_reason="step_failed")
    print_playback(paused, has_steps=True)
    print_playback(Playback(session_id="sesn_1", playing=True), has_steps=False)
    print_next(paused, [_step("tests", "pending")])
    assert capsys.readouterr().out.splitlines() == [
        "The session is paused after a failed or interrupted step, but runs one more step now.",
        "Nothing is queued.",
        "Runs tests, then pauses again.",
    ]
