"""Claude Code's transcript files on this machine are found, read, and written without loss of existing files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk._internal.sessions import _sanitize_path

from footplate.cli.actions import claude_transcript_files
from footplate.cli.actions.claude_transcript_files import TranscriptDownload
from footplate.client import ClientError

NAME = "5d5f6b1e-0000-4000-8000-000000000000"
PROMPT = {"type": "user", "message": {"role": "user", "content": "Mend the tests\nplease"}}
RESPONSE = {"type": "assistant", "message": {"role": "assistant", "content": []}}


def _write(path: Path, *lines: Any, end: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + end)
    return path


def test_transcripts_are_found_by_file_project_or_root(tmp_path: Path) -> None:
    one = _write(tmp_path / "-home-me" / f"{NAME}.jsonl", PROMPT)
    _write(tmp_path / "-home-me" / "agent-1.jsonl", PROMPT)
    other = _write(tmp_path / "-home-you" / f"{NAME}.jsonl", PROMPT)
    assert claude_transcript_files.find_transcripts([one]) == [one]
    assert claude_transcript_files.find_transcripts([one.parent]) == [one]
    assert claude_transcript_files.find_transcripts([tmp_path, one]) == [one, other]


def test_a_transcript_is_read_with_its_subagents(tmp_path: Path) -> None:
    path = _write(tmp_path / f"{NAME}.jsonl", {"type": "mode"}, PROMPT, RESPONSE, end=b'{"type": "assi')
    sub = _write(tmp_path / NAME / "subagents" / "agent-1.jsonl", RESPONSE)
    sub.with_suffix(".meta.json").write_text('{"agentType": "Explore"}')
    found = claude_transcript_files.read_transcript(path)
    assert (found.lines, found.skipped_lines, found.messages, found.title) == (4, 1, 2, "Mend the tests")
    sent = [json.loads(line) for line in found.import_lines()]
    assert [line["line"] for line in sent[:3]] == [{"type": "mode"}, PROMPT, RESPONSE]
    assert sent[3:] == [
        {"subpath": "subagents/agent-1", "line": RESPONSE},
        {"subpath": "subagents/agent-1", "line": {"agentType": "Explore", "type": "agent_metadata"}},
    ]


def test_a_project_has_the_name_that_claude_code_gives_it(tmp_path: Path) -> None:
    directory = tmp_path / "my project_ü"
    directory.mkdir()
    found = claude_transcript_files.project_directory(directory, {"CLAUDE_CONFIG_DIR": "/conf"})
    assert found == Path("/conf/projects") / _sanitize_path(os.path.realpath(directory))
    with pytest.raises(ClientError, match="too long"):
        claude_transcript_files.project_directory(Path("/" + "x" * 250), {})


def _import(project: Path, *lines: Any, force: bool = False) -> Path:
    with TranscriptDownload(project, NAME) as arriving:
        for line in lines:
            arriving.add_line(line, "")
        arriving.move_into_place(force=force)
    return arriving.path


def test_a_file_is_updated_and_never_lost(tmp_path: Path) -> None:
    path = _import(tmp_path / "p", PROMPT)
    assert path.stat().st_mode & 0o777 == 0o600
    assert _import(tmp_path / "p", PROMPT, RESPONSE) == path
    assert [json.loads(line) for line in path.read_text().splitlines()] == [PROMPT, RESPONSE]
    with pytest.raises(ClientError, match="lines that the session does not have"):
        _import(tmp_path / "p", PROMPT)
    assert len(path.read_text().splitlines()) == 2
    _import(tmp_path / "p", RESPONSE, force=True)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [RESPONSE]
    assert [each.name for each in (tmp_path / "p").iterdir()] == [path.name]


def test_subagents_are_written_next_to_their_session(tmp_path: Path) -> None:
    with TranscriptDownload(tmp_path, NAME) as arriving:
        arriving.add_line(PROMPT, "")
        arriving.add_line(RESPONSE, "subagents/agent-1")
        arriving.add_line({"type": "agent_metadata", "agentType": "Explore"}, "subagents/agent-1")
        arriving.move_into_place(force=False)
    below = tmp_path / NAME / "subagents"
    assert json.loads((below / "agent-1.meta.json").read_text()) == {"agentType": "Explore"}
    assert json.loads((below / "agent-1.jsonl").read_text()) == RESPONSE


@pytest.mark.parametrize("subpath", ["../../evil", "subagents/../../evil", "/etc/evil", "subagents/.ssh", "evil"])
def test_a_server_cannot_write_outside_of_the_project(tmp_path: Path, subpath: str) -> None:
    with (
        TranscriptDownload(tmp_path / "p", NAME) as arriving,
        pytest.raises(ClientError, match="invalid transcript path"),
    ):
        arriving.add_line(PROMPT, subpath)
    with pytest.raises(ClientError, match="invalid transcript ID"):
        TranscriptDownload(tmp_path, f"../{NAME}")
    assert not list(tmp_path.rglob("*evil*"))
