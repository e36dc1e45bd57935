"""`footplate queue run`: files that are refused before a request is sent."""

import asyncio
from pathlib import Path

import pytest
import typer

from footplate.cli.actions import pipelines
from footplate.cli.actions.run.session_start import RunRequest
from footplate.cli.profile import server_profiles
from footplate.cli.profile.server_profiles import Server

SERVER = Server("http://127.0.0.1:9", "key", "`footplate dev`", is_local=True)


@pytest.mark.parametrize("step", ["merge: main", "push: {}"])
def test_a_delivery_needs_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str], step: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"steps:\n  - shell: ls\n  - {step}\n")
    with pytest.raises(typer.Exit) as exit_info:
        pipelines.run_pipeline(file, RunRequest(prompt=""), detach=True, as_json=False, profile=None)
    shown = " ".join(capsys.readouterr().err.split())
    assert (exit_info.value.exit_code, "the new session would have none. Use --project." in shown) == (2, True)


@pytest.mark.requirement("O5")
@pytest.mark.parametrize("branches", ["merge", "best"])
def test_files_in_a_shared_directory_are_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], branches: str
) -> None:
    monkeypatch.setattr(server_profiles, "select_server", lambda _: SERVER)
    file = tmp_path / "p.yaml"
    check = "\n    check: ls" if branches == "best" else ""
    file.write_text(f"steps:\n  - parallel: [{{shell: ls}}]\n    branches: {branches}{check}\n")
    with pytest.raises(typer.Exit) as exit_info:
        pipelines.run_pipeline(
            file, RunRequest(prompt="", directory=str(tmp_path)), detach=True, as_json=False, profile=None
        )
    assert exit_info.value.exit_code == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "cannot run in a directory that you named" in shown
    assert "Use --project or --scratch." in shown


@pytest.mark.parametrize(("session_id", "expected"), [(None, "footplate ls"), ("sesn_1", "footplate steps ls sesn_1")])
def test_an_early_interrupt_prints_how_to_find_the_session(
    session_id: str | None, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(asyncio.CancelledError), pipelines._explain_interrupt(session_id, as_json=False):
        raise asyncio.CancelledError
    assert expected in capsys.readouterr().err
