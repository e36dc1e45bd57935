"""The output of a turn without a terminal, as text, JSON lines and JSON."""

import json
from typing import Any
from unittest.mock import ANY

import pytest
from inline_snapshot import snapshot

from footplate.cli.json_output_models import RunResult
from footplate.cli.render.turn_views import JsonLinesView, ResultView, TextView
from footplate.client import Usage
from footplate.client.response_models import Event


def _event(kind: str, second: float = 0, **fields: Any) -> Event:
    moment = f"2026-01-01T00:00:{second:06.3f}Z"
    return Event.model_validate({"type": kind, "id": f"sevt_{kind}", "processed_at": moment, **fields})


def _message(text: str, event_id: str) -> Event:
    return _event("agent.message", id=event_id, content=[{"type": "text", "text": text}])


def _start(event_id: str) -> Event:
    return Event.model_validate({"type": "event_start", "event": {"id": event_id, "type": "agent.message"}})


def _delta(event_id: str, text: str) -> Event:
    content = {"type": "text", "text": text}
    return Event.model_validate({"type": "event_delta", "event_id": event_id, "delta": {"content": content}})


def _result(**fields: Any) -> RunResult:
    given: dict[str, Any] = {
        "session_id": "sesn_1",
        "turn_id": "turn_1",
        "status": "completed",
        "exit_code": 0,
        "text": "Done.",
        "error": None,
        "pending": [],
        "usage": Usage(input_tokens=1200, output_tokens=34, cache_read_input_tokens=1000, cost_microusd=4510),
        "attempts": 1,
        "seconds": 12.34,
        **fields,
    }
    return RunResult(**given)


TURN = [
    _start("m1"),
    _delta("m1", "I look"),
    _delta("m1", " first."),
    _message("I look first.", "m1"),
    _event("agent.tool_use", 1, id="t1", name="bash", input={"command": "ls -l\nwc *"}),
    _event("agent.tool_result", 1.25, tool_use_id="t1", is_error=False, content=[{"type": "text", "text": "a"}]),
    _event("agent.tool_use", 2, id="t2", name="read", input={"file_path": "no.txt"}),
    _event(
        "agent.tool_result",
        2,
        tool_use_id="t2",
        is_error=True,
        content=[{"type": "text", "text": "There is no file no.txt."}],
    ),
    _event("session.error", 3, error={"message": "Too busy.", "retry_status": {"type": "retrying"}}),
    _message("Done.", "m2"),
    _event("session.status_idle", 4, stop_reason={"type": "end_turn"}),
]


def test_the_agents_text_is_on_stdout_and_the_rest_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView()
    for event in TURN:
        view.show_event(event)
    view.refresh_status()
    view.show_result(_result())
    out, err = capsys.readouterr()
    assert out == "I look first.\n\nDone.\n"
    assert err == snapshot("""\
  bash  ls -l<U+000A>wc *  ok 0.2s
  read  no.txt  failed 0.0s
        There is no file no.txt.
Too busy. Retrying.
completed · 1,200 in (1,000 cached) · 34 out · $0.0045 · 12s
sesn_1
""")


def test_a_log_is_one_stream_with_the_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView(show_input=True, lines_on_stdout=True)
    view.show_event(_event("user.message", content=[{"type": "text", "text": "Look\naround"}]))
    view.show_event(_message("I look.", "m1"))
    view.show_event(_event("user.interrupt"))
    out, err = capsys.readouterr()
    assert (out, err) == ("> Look\n| around\nI look.\n> interrupt\n", "")


def test_a_queued_message_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView(show_input=True)
    view.show_event(Event(type="user.message", id="a", content=[{"type": "text", "text": "Later"}]))
    assert capsys.readouterr().err == ""


def test_a_restarted_response_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView()
    for event in [
        _start("m1"),
        _delta("m1", "Half a"),
        _start("m2"),
        _delta("m2", "A who"),
        _message("A whole.", "m2"),
    ]:
        view.show_event(event)
    out, err = capsys.readouterr()
    assert out == "Half a\n\nA whole.\n"
    assert "another worker starts the response again" in err


def test_a_message_without_previews_is_printed_completely(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView()
    view.show_event(_start("m1"))
    view.show_event(_delta("m1", "Old"))
    view.show_event(_message("New.", "m2"))
    assert capsys.readouterr().out == "Old\n\nNew.\n"


def test_connection_changes_are_printed_as_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from footplate.client import Unreachable

    view = TextView()
    view.connection_changed(Unreachable("gone"))
    view.refresh_status()
    view.connection_changed(None)
    assert capsys.readouterr().err == "Connection lost, reconnecting.\nReconnected.\n"


def test_a_pending_call_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView()
    view.show_event(_event("agent.custom_tool_use", name="ask", input={"question": "Why?"}))
    view.show_result(_result(status="awaiting_tool_results", exit_code=3, pending=["sevt_1"]))
    err = capsys.readouterr().err
    assert 'ask   {"question": "Why?"}  waits for a result' in err
    assert "user.custom_tool_result" in err


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


ASKED: dict[str, Any] = {"id": "t1", "name": "bash", "input": {"command": "git push"}, "evaluated_permission": "ask"}
EDITED: dict[str, Any] = {"result": "allow", "updated_input": {"command": "git push -n"}, "decided_by_name": "Ada"}


@pytest.mark.parametrize(
    ("decision", "lines"),
    [
        (
            {"result": "allow", "decided_by_name": "Ada"},
            ["  bash  git push  allowed by Ada", "  bash  git push  ok 1.5s"],
        ),
        (
            EDITED,
            ["  bash  git push -n  edited and allowed by Ada", "  bash  git push -n  ok 1.5s, edited by Ada"],
        ),
        (
            {**EDITED, "edited_by_name": "Bob"},
            ["  bash  git push -n  edited by Bob, allowed by Ada", "  bash  git push -n  ok 1.5s, edited by Bob"],
        ),
        (
            {"result": "allow", "session_rule": "Bash(git *)", "decided_by_name": "Ada"},
            [
                "  bash  git push  allowed by Ada for this session",
                "        later calls that match: Bash(git *)",
                "  bash  git push  ok 1.5s",
            ],
        ),
        ({"result": "allow", "decided_by": "clock"}, ["  bash  git push  allowed by the time limit", ANY]),
        (
            {"result": "deny", "deny_message": "Not today.", "decided_by_name": "Ada"},
            ["  bash  git push  denied by Ada", "        Not today."],
        ),
    ],
)
def test_a_decision_and_what_ran_are_shown_with_the_run_time(
    capsys: pytest.CaptureFixture[str], decision: dict[str, Any], lines: list[str]
) -> None:
    view = TextView()
    view.show_event(_event("agent.tool_use", 1, **ASKED))
    view.show_event(_event("user.tool_confirmation", 30, tool_use_id="t1", **decision))
    view.show_event(_event("session.status_running", 31))
    view.show_event(_event("agent.tool_result", 32.5, tool_use_id="t1", is_error=decision["result"] == "deny"))
    assert capsys.readouterr().err.splitlines() == ["  bash  git push  needs approval", *lines]


def test_a_call_that_did_not_run_is_not_shown_as_failed(capsys: pytest.CaptureFixture[str]) -> None:
    denied = {
        "evaluated_permission": "deny",
        "permission": {"reason": "Never.", "rule": "Bash(rm *)", "layer": "agent"},
    }
    view = TextView()
    view.show_event(_event("agent.tool_use", 1, id="t0", name="bash", input={"command": "rm -r ."}, **denied))
    refusal = "Denied by the rule Bash(rm *) of the agent: Never."
    view.show_event(_event("agent.tool_result", 1, tool_use_id="t0", is_error=True, content=_text(refusal)))
    view.show_event(_event("agent.tool_use", 1, **ASKED))
    view.show_event(_event("agent.tool_result", 9, tool_use_id="t1", is_error=True, content=_text("Denied: too late.")))
    assert capsys.readouterr().err == snapshot("""\
  bash  rm -r .  denied
        Denied by the rule Bash(rm *) of the agent: Never.
  bash  git push  needs approval
  bash  git push  not run
        Denied: too late.
""")


def test_a_result_shows_a_call_and_a_decision_that_were_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView()
    view.recall_event(_event("agent.tool_use", 1, **ASKED))
    view.recall_event(_event("user.tool_confirmation", 2, tool_use_id="t1", result="deny", decided_by_name="Ada"))
    view.show_event(_event("agent.tool_result", 3, tool_use_id="t1", is_error=True, content=_text("Denied.")))
    assert capsys.readouterr().err == "  bash  git push  denied by Ada\n        Denied.\n"


def test_a_log_shows_the_results_of_custom_calls_and_those_that_wait(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView(lines_on_stdout=True)
    view.set_waiting_calls(["c3"], until=30)
    for number, name in enumerate(("run_sessions", "external_step", "external_step", "run_sessions"), 1):
        view.show_event(_event("agent.custom_tool_use", id=f"c{number}", name=name, input={}, position=f"{number}0"))
        if number == 1:
            text = "2 of 2 sessions completed.\none"
            view.show_event(_event("user.custom_tool_result", 2, custom_tool_use_id="c1", content=_text(text)))
        if number == 2:
            view.show_event(_event("session.status_idle", stop_reason={"type": "end_turn"}))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "run_sessions ok 2.0s", "2 of 2 sessions completed.", "external_step no result",
        "external_step waits for a result", "run_sessions waits for its sessions",
    ]  # fmt: skip


def test_waiting_for_a_person_is_not_an_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    for attempts, handovers in ((3, 2), (3, 1)):
        TextView().show_result(_result(attempts=attempts, handovers=handovers))
    first, _, second, _ = capsys.readouterr().err.splitlines()
    assert "attempts" not in first
    assert second.endswith("2 attempts")


def test_a_pending_approval_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView()
    view.show_event(_event("agent.tool_use", 1, **ASKED))
    view.show_result(_result(status="awaiting_tool_results", exit_code=3, pending=["t1"]))
    assert "  footplate approve t1\n  footplate deny t1\n" in capsys.readouterr().err


@pytest.mark.requirement("C1")
def test_json_lines_are_unchanged_events(capsys: pytest.CaptureFixture[str]) -> None:
    view = JsonLinesView()
    for event in TURN:
        view.show_event(event)
    view.show_result(_result())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == [
        *(event.type for event in TURN if not event.type.startswith("event_")),
        "result",
    ]
    assert lines[0] == {
        "type": "agent.message",
        "id": "m1",
        "processed_at": "2026-01-01T00:00:00Z",
        "content": [{"type": "text", "text": "I look first."}],
    }


def test_previews_are_printed_only_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    JsonLinesView(previews=True).show_event(_delta("m1", "x"))
    JsonLinesView().show_event(_delta("m1", "y"))
    ResultView().show_event(_delta("m1", "z"))
    assert [json.loads(line)["event_id"] for line in capsys.readouterr().out.splitlines()] == ["m1"]
