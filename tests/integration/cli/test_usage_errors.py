"""A wrong command line exits with code 2 and prints text, or JSON if JSON was requested."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.integration.cli.conftest import Footplate

SCHEMAS = Path(__file__).resolve().parents[3] / "docs" / "schemas"


@pytest.mark.parametrize("form", [["--json"], ["--output", "stream-json"], ["--output=json"]], ids=" ".join)
async def test_a_usage_error_is_printed_as_json(footplate: Footplate, form: list[str]) -> None:
    done = await footplate("run", *form, "--timeout", "soon", "hello")
    assert (done.code, done.err) == (2, "")
    output = json.loads(done.out)
    Draft202012Validator(json.loads((SCHEMAS / "run.json").read_text())).validate(output)
    assert (output["error"]["code"], output["exit_code"]) == ("usage", 2)


async def test_a_usage_error_is_printed_as_text(footplate: Footplate) -> None:
    done = await footplate("run", "--timeout", "soon", "hello")
    assert (done.code, done.out) == (2, "")
    assert "Invalid value for '--timeout'" in done.err
    assert "footplate run --help" in done.err


async def test_tools_and_directory_cannot_change_in_an_existing_session(footplate: Footplate, tmp_path: Path) -> None:
    for option in (["--allowed-tools", "bash"], ["--directory", str(tmp_path)]):
        done = await footplate("run", "--session", "sesn_1", *option, "hello")
        assert done.code == 2
        assert "projects, tools and harness" in done.err


async def test_a_trigger_for_an_existing_session_cannot_choose_its_tools(footplate: Footplate) -> None:
    done = await footplate("triggers", "create", "--session", "sesn_1", "--disallowed-tools", "bash", "hello")
    assert done.code == 2
    assert "options of new sessions" in done.err


async def test_a_batch_can_have_a_project_and_options_before_its_file(footplate: Footplate, tmp_path: Path) -> None:
    (tmp_path / "jobs.jsonl").write_text('{"shell": "true"}\n')
    for arguments in (["run", "--project", ".", "jobs.jsonl"], ["--project", ".", "jobs.jsonl"], ["jobs.jsonl", "-p."]):
        done = await footplate("batch", *arguments, FOOTPLATE_BASE_URL="http://127.0.0.1:9", FOOTPLATE_API_KEY="key")
        assert (done.code, done.out) == (7, ""), done.err
    assert (await footplate("batch", "--unknown", "jobs.jsonl")).code == 2


async def test_no_command_prints_the_help(footplate: Footplate) -> None:
    done = await footplate()
    assert done.code == 2
    assert "Usage: footplate" in done.err


async def test_the_version_option_equals_the_command(footplate: Footplate) -> None:
    assert (await footplate("--version")).out == (await footplate("version")).out


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m footplate --help | head -n 1"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
