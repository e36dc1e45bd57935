"""The turns in the output of `footplate show`, on a narrow terminal and in a pipe."""

from datetime import UTC, datetime

import pytest

from footplate.cli.render import resource_tables
from footplate.client import Session, Turn

TURN_ID = "turn_01kx0000000000000000000000"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = Session.model_validate(
    {
        "id": "sesn_1",
        "status": "idle",
        "agent": {"id": "agent_1", "name": "A", "version": 1, "model": {"id": "m"}},
        "environment_id": "env_1",
        "created_at": NOW,
        "updated_at": NOW,
    }
)
TURN = Turn.model_validate(
    {
        "id": TURN_ID,
        "session_id": "sesn_1",
        "status": "completed",
        "attempt": 1,
        "input_event_id": "sevt_1",
        "first_seq": 1,
        "created_at": NOW,
        "started_at": NOW,
        "ended_at": NOW,
        "result": {"text": "The tests pass."},
    }
)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    resource_tables.print_session(SESSION, [TURN])
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_turns_have_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    *_, headings, turn = _lines(capsys)
    assert headings == ["STATUS", "AGE", "TOOK", "IN/OUT", "TURN", "RESULT"]
    assert (turn[0], turn[4], turn[5:]) == ("completed", TURN_ID, ["The", "tests", "pass."])


def test_a_narrow_terminal_shows_the_complete_id_and_the_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    *_, headings, turn = _lines(capsys)
    assert "TURN" in headings[3]
    assert TURN_ID in turn[3]
    assert turn[4:] == ["The", "tests", "pass."]
