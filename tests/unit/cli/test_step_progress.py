"""The lines that `queue run` prints about steps."""

from datetime import UTC, datetime
from typing import Any

import pytest

from footplate.cli.render.step_progress import StepProgressView
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


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("shell", "  footplate steps add sesn_1 --before after --name fail --shell 'exit 3'"),
        ("parallel", "To repeat fail, add it from a file: footplate queue run --session sesn_1 FILE"),
    ],
)
def test_a_pause_explains_how_to_repeat_the_failed_step(
    kind: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [_step("fail", "failed", kind=kind, ended_at=NOW), _step("after", "pending")]
    StepProgressView(steps).show_pause("sesn_1", steps)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "The session is paused. Continue with after, without fail:",
        "  footplate play sesn_1",
    ]
    assert lines[-1] == hint
