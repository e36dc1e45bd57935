"""The tables of sessions and turns, on a terminal of 80 columns and in a pipe."""

import re
from datetime import UTC, datetime

import pytest

from footplate.cli.render import (
    batch_views,
    member_tables,
    patch_pager,
    resource_tables,
    schedule_views,
    session_tables,
    step_tables,
    usage_errors,
)
from footplate.cli.render.session_tables import SessionOverview
from footplate.client import (
    ApiKey,
    AuditEntry,
    DeploymentRun,
    File,
    Member,
    Playback,
    Project,
    Session,
    Team,
    TotalUsage,
    Turn,
)
from footplate.client.batches import JobResult
from footplate.client.response_models import SessionEnd, Usage

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
        "result": {"success": True, "text": "The tests pass."},
    }
)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    session_tables.print_session(SessionOverview(SESSION, [TURN]))
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_turns_have_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    *_, headings, turn = _lines(capsys)
    assert headings == ["#", "STATUS", "AGE", "TOOK", "IN/OUT", "TURN", "RESULT"]
    assert (turn[:2], turn[5], turn[6:]) == (["1", "completed"], TURN_ID, ["The", "tests", "pass."])


@pytest.mark.requirement("C4")
def test_turns_have_their_commits(capsys: pytest.CaptureFixture[str]) -> None:
    changed = Turn.model_validate({**TURN.wire(), "commit": "0123456789abcdef"})
    session_tables.print_session(SessionOverview(SESSION, [changed, TURN]))
    *_, headings, first, second = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert headings == ["#", "STATUS", "AGE", "TOOK", "IN/OUT", "COMMIT", "TURN", "RESULT"]
    assert (first[5:7], second[5]) == (["0123456789", TURN_ID], TURN_ID)


def test_the_turn_of_a_failed_step_has_failed_and_its_result_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Turn.model_validate(
        {**TURN.wire(), "result": {"text": "x", "error": "The command exited.\nSee " + "x" * 90}}
    )
    long = Turn.model_validate({**TURN.wire(), "result": {"success": True, "text": "x" * 90}})
    session_tables.print_session(SessionOverview(SESSION, [failed, long]))
    *_, first, second = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert (first[1], first[6:]) == ("failed", ["The", "command", "exited."])
    assert (second[1], second[6]) == ("completed", "x" * 79 + "…")


def test_a_narrow_terminal_shows_the_complete_id_and_the_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    *_, headings, turn = _lines(capsys)
    assert "TURN" in headings[3]
    assert TURN_ID in turn[3]
    assert turn[4:] == ["The", "tests", "pass."]


_LONG_ID = "sesn_01kx0000000000000000000000"
_PROJECT = Project.model_validate(
    {
        "id": "proj_1",
        "name": "website",
        "path": "/srv/website",
        "trust": "nothing",
        "created_at": NOW,
        "updated_at": NOW,
    }
)
_OTHER_STATES = {"waiting_for_approval": "needs approval", "limit_reached": "limit reached", "stalled": "stalled"}


def _with(**fields: object) -> Session:
    return Session.model_validate({**SESSION.wire(), "id": _LONG_ID, "title": "Fix the tests of the shop", **fields})


@pytest.mark.parametrize(("state", "label"), _OTHER_STATES.items())
def test_a_list_of_sessions_fits_80_columns(
    state: str, label: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    reason = "no_worker" if state == "stalled" else None
    origin = {"session_id": "sesn_2", "event_id": "sevt_1", "position": 3}
    session = _with(activity={"state": state, "reason": reason}, project_ids=["proj_1"], forked_from=origin)
    session_tables.print_sessions([session], {"proj_1": _PROJECT})
    shown = capsys.readouterr()
    heading, row = re.sub(r"\x1b\[[0-9;]*m", "", shown.out).splitlines()
    assert heading.split() == ["ID", "ACTIVITY", "AGE", "TITLE"]
    assert row.startswith(f"{_LONG_ID}  {label}  ")
    assert "  website: ↳ " in row
    assert len(row) <= 80  # the width of the terminal
    assert ("no worker is running" in shown.err) is (state == "stalled")


def test_a_session_that_waits_for_others_needs_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = _with(activity={"state": "waiting_for_result", "reason": "sessions"})
    session_tables.print_sessions([waiting], {})
    session_tables.print_session(SessionOverview(waiting))
    shown = capsys.readouterr()
    assert shown.out.count("sessions run") == 2
    assert "needs result" not in shown.out
    assert shown.err == ""


@pytest.mark.parametrize(("columns", "model"), [("100", ""), ("140", "MODEL")])
def test_a_list_of_sessions_is_a_table_at_each_width(
    columns: str, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": columns, "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    agent = {"id": "agent_1", "name": "A", "version": 1, "model": {"id": "anthropic:claude-sonnet-5-long"}}
    found = Session.model_validate(
        {**SESSION.model_dump(), "id": f"sesn_{'a' * 26}", "agent": agent, "title": "t", "status": "idle"}
        | {"context": {"directory": "/home/me/a-directory-name"}}
    )
    session_tables.print_sessions([found], {})
    heading, row = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert ("MODEL" in heading, len(row) <= int(columns)) == (bool(model), True)


def test_children_follow_their_parent_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    parent, child, other = (f"sesn_01kx00000000000000000{name}" for name in ("parent", "kindoo", "otherx"))
    found = [
        _with(id=_LONG_ID, parent_id=child, title="Below"),
        _with(id=child, parent_id=parent, title="Child", project_ids=["proj_1"]),
        _with(id=other, parent_id="sesn_01kx0000000000000000absent", title="Alone"),
        _with(id=parent, title="Parent"),
    ]
    session_tables.print_sessions(found, {"proj_1": _PROJECT})
    _, *rows = capsys.readouterr().out.splitlines()
    assert all(len(row) <= 80 for row in rows)
    assert [row.rpartition("  ")[2] for row in rows] == [
        "└ of …absent: Alone", "Parent", "└ website: Child", "└└ Below",
    ]  # fmt: skip
    session_tables.print_sessions(found[2:3], {}, are_children=True)
    assert "…absent" not in capsys.readouterr().out


def test_a_session_has_its_harness_and_the_base_of_its_project(capsys: pytest.CaptureFixture[str]) -> None:
    base = {"proj_1": {"branch": "main", "commit": "4f2a"}}
    session = _with(project_ids=["proj_1"], bases=base, activity={"state": "waiting_for_approval"})
    parked = Turn.model_validate({**TURN.wire(), "status": "awaiting_tool_results", "ended_at": None})
    session_tables.print_session(SessionOverview(session, [parked], projects={"proj_1": _PROJECT}))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "activity needs approval" in lines
    assert "harness the server's default" in lines
    assert {"project website (proj_1)", "location /srv/website", "base main at 4f2a"} <= set(lines)
    assert lines[-1].startswith("1 needs approval ")


def test_a_session_names_who_ended_it_and_the_projects_of_its_children(capsys: pytest.CaptureFixture[str]) -> None:
    end = {"outcome": "completed", "ended_by": "key_1", "ended_at": NOW}
    session = _with(end=end, owner={"id": "key_1", "name": "ann"})
    long = Project.model_validate({**_PROJECT.wire(), "name": "a-project-with-a-long-name", "path": "srv/long"})
    child = _with(parent_id="sesn_1", project_ids=["proj_1"])
    total = TotalUsage(session_id="sesn_1", sessions=2, usage=Usage(input_tokens=1500, output_tokens=20))
    session_tables.print_session(SessionOverview(session, projects={"proj_1": long}, children=[child], total=total))
    out = capsys.readouterr().out
    assert " ago by ann\n" in out
    assert re.search(r"^with children +1,500 in · 20 out · 2 sessions$", out, re.MULTILINE)
    assert "  a-project-with-a-lo…  " in out
    session_tables.print_session(SessionOverview(_with(project_ids=["proj_1"]), projects={"proj_1": long}))
    assert "srv/long in the server's projects directory" in capsys.readouterr().out


def test_steps_of_an_ended_session_do_not_play(capsys: pytest.CaptureFixture[str]) -> None:
    end = SessionEnd.model_validate({"outcome": "failed", "ended_at": NOW})
    step_tables.print_steps([], Playback(session_id="sesn_1", playing=True), end)
    assert capsys.readouterr().out == "The session has ended: failed.\n"


def test_a_session_has_its_owner_and_the_team_that_can_see_it(capsys: pytest.CaptureFixture[str]) -> None:
    team = Team.model_validate({"id": "team_1", "name": "web", "member_ids": [], "created_at": NOW})
    stalled = {"state": "stalled", "reason": "author_disabled"}
    owner = {"id": "memb_1", "name": "ann"}
    session = _with(owner=owner, created_by="memb_2", visibility="team", team_id="team_1", activity=stalled)
    session_tables.print_session(SessionOverview(session, team=team))
    shown = capsys.readouterr()
    lines = {" ".join(line.split()) for line in shown.out.splitlines()}
    assert "activity stalled: the author of its next message is disabled" in lines
    assert {"owner ann (memb_1)", "visibility team web (team_1)", "created by memb_2"} <= lines
    assert "--hand-over-to" in shown.err
    session_tables.print_access(_with(owner=owner, created_by="memb_1", visibility="private"), None)
    out = capsys.readouterr().out
    assert "private: its owner and administrators" in out
    assert "created by" not in out


def test_lists_name_successors_projects_and_visibilities(capsys: pytest.CaptureFixture[str]) -> None:
    ann = {"id": "memb_1", "kind": "person", "name": "ann", "roles": ["member"], "created_at": NOW}
    ben = Member.model_validate({**ann, "id": "memb_2", "name": "ben"})
    gone = Member.model_validate({**ann, "disabled_at": NOW, "successor_id": "memb_2"})
    member_tables.print_members([ben, gone])
    assert capsys.readouterr().out.splitlines()[-1].endswith("ann → ben")
    key = {"id": "key_1", "name": "ci", "member_id": "memb_1", "member_name": "ann", "roles": [], "created_at": NOW}
    keys = [ApiKey.model_validate({**key, "project_ids": ids}) for ids in (None, ["proj_1"])]
    member_tables.print_keys(keys, {"proj_1": _PROJECT})
    headings, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert headings[-2:] == ["PROJECTS", "NAME"]
    assert [row[-2:] for row in rows] == [["all", "ci"], ["website", "ci"]]
    file = {"id": "file_1", "filename": "a.txt", "mime_type": "text/plain", "size_bytes": 1, "created_at": NOW}
    resource_tables.print_files([File.model_validate({**file, "visibility": "private"}), File.model_validate(file)])
    assert [line.split()[4:] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["a.txt", "·", "private"],
        ["a.txt"],
    ]


def _audit_entry(**fields: object) -> AuditEntry:
    common = {"id": "audt_1", "kind": "decision", "created_at": NOW, "content": {}, "content_hash": "0"}
    call = {"session_id": _LONG_ID, "session_title": "Fix the tests of the shop", "event_id": "sevt_1", "tool": "bash"}
    return AuditEntry.model_validate({**common, **call, **fields})


_AUDIT = [
    _audit_entry(
        outcome="deny",
        layer="project",
        principal_name="Ann Miller",
        input_summary="rm -r build",
        content={"rule": "Bash(rm *)", "reason": "It applies to `rm`."},
    ),
    _audit_entry(outcome="allow", input_summary="ls", session_title=None),
    _audit_entry(kind="answer", outcome="allow", principal_name="Maximiliane Musterfrau", input_hash="1"),
    _audit_entry(kind="answer", outcome="deny", principal="clock", input_summary="ls", content={"deny_message": "no"}),
    _audit_entry(
        kind="hook", outcome="none", event_id=None, content={"hook_event": "Stop", "hook": "check", "reason": None}
    ),
    _audit_entry(kind="change", content={"action": "project.archive", "id": "proj_1"}, session_id=None),
    _audit_entry(kind="policy", content=None),
    _audit_entry(kind="refusal", content={"method": "POST", "path": "/v1/agents", "message": "This needs a role."}),
    _audit_entry(
        kind="error",
        outcome="failed",
        tool=None,
        principal_name="Ann Miller",
        content={"error": "model_overloaded_error", "status": "timed_out", "attempt": 2},
    ),
]


def test_audit_entries_have_decision_member_session_and_call(capsys: pytest.CaptureFixture[str]) -> None:
    resource_tables.print_audit(_AUDIT)
    heading, *rows = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    assert heading == ["TIME", "DECISION", "BY", "MEMBER", "SESSION", "CALL"]
    title = "Fix the tests of the shop"
    assert [row[1:] for row in rows] == [
        ["denied", "rule", "Ann Miller", title, "bash rm -r build · project Bash(rm *): It applies to `rm`."],
        ["allowed", "gate", "00000000", "bash ls"],
        ["allowed", "member", "Maximiliane Musterfrau", title, "bash (input no longer stored) · with an edited input"],
        ["denied", "timeout", title, "bash ls · no"],
        ["none", "hook", title, "Stop bash · check"],
        ["changed", "member", title, "project.archive proj_1"],
        ["changed", "member", title, "rules of the organisation"],
        ["refused", "member", title, "POST /v1/agents · This needs a role."],
        ["failed", "server", "Ann Miller", title, "model_overloaded_error · timed out · attempt 2"],
    ]


def test_a_list_of_audit_entries_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    resource_tables.print_audit(_AUDIT)
    heading, first, *rows = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert heading.split() == ["AGE", "DECISION", "BY", "MEMBER", "SESSION", "CALL"]
    assert all(cell in first for cell in ("denied", "rule", "Ann Miller", "Fix the tests…", "bash rm"))
    assert max(map(len, (heading, first, *rows))) <= 80  # the width of the terminal


def test_a_failed_job_shows_the_last_line_of_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    result = {
        "number": 1,
        "batch_id": "batch_1",
        "custom_id": "tests",
        "index": 0,
        "session_id": "sesn_1",
        "outcome": "failed",
        "success": False,
        "text": "collected 7\n2 failed\n",
        "data": {"exit_code": 1, "stdout": "collected 7\n2 failed\n", "stderr": ""},
        "error_message": "The command exited with code 1.",
        "metrics": {"waiting_seconds": 0, "duration_seconds": 1, "active_seconds": 1, "turns": 1, "usage": {}},
        "ended_at": NOW,
    }
    batch_views.print_result(JobResult.model_validate(result))
    assert capsys.readouterr().out.rstrip().endswith("The command exited with code 1. · 2 failed")


@pytest.mark.parametrize("columns", ["100", "200"])
def test_runs_have_the_schedule_the_outcome_and_the_reason(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": columns, "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    given = {"deployment_id": "depl_1", "session_id": f"sesn_{'a' * 26}", "created_at": NOW}
    run = DeploymentRun.model_validate({"id": f"drun_{'a' * 26}", "trigger_context": {"type": "manual"}, **given})
    shown = schedule_views.ShownRun(run, "[red]failed[/]", "exit code 3\nmore", "nightly")
    schedule_views.print_runs([shown])
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2
    assert re.search(r"failed +nightly: exit code 3|nightly +failed +exit code 3", lines[1]), lines


def test_a_binary_change_is_only_named() -> None:
    header = "diff --git a/a b.bin b/a b.bin"
    encoded = ["index 1..2", "GIT binary patch", "literal 9", "zcmV+b0RR9", "", "literal 0", "HcmV?d00001", ""]
    text = ["diff --git a/a.txt b/a.txt", "@@ -1 +1 @@", "-a", "+GIT binary patch"]
    shown = [*patch_pager._replace_binary([header, *encoded, *text])]
    assert shown == [header, "index 1..2", "Binary file a b.bin differs", *text]
    assert patch_pager._describe_binary("a/x b/y") == "Binary files a/x b/y differ"


def test_usage_errors_have_no_marks_of_libraries() -> None:
    given = "Value error, 'x' does not match the formats '%Y-%m-%d', '%Y-%m-%dT%H:%M'."
    assert usage_errors._plain(given) == "'x' has none of the forms 'YYYY-MM-DD', 'YYYY-MM-DDTHH:MM'."
