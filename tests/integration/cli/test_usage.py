"""A command line that is wrong: exit code 2, words for people, JSON where JSON was asked for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).resolve().parents[3] / "docs" / "schemas"


def _footplate(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "footplate", *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("form", [["--json"], ["--output", "stream-json"], ["--output=json"]], ids=" ".join)
def test_as_json(tmp_path: Path, form: list[str]) -> None:
    done = _footplate(tmp_path, "run", *form, "--timeout", "soon", "hello")
    assert (done.returncode, done.stderr) == (2, "")
    answer = json.loads(done.stdout)
    Draft202012Validator(json.loads((SCHEMAS / "run.json").read_text())).validate(answer)
    assert (answer["error"]["code"], answer["exit_code"]) == ("usage", 2)


def test_for_people(tmp_path: Path) -> None:
    done = _footplate(tmp_path, "run", "--timeout", "soon", "hello")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--timeout'" in done.stderr
    assert "footplate run --help" in done.stderr


def test_tools_and_directory_belong_to_a_sessions_beginning(tmp_path: Path) -> None:
    for option in (["--allowed-tools", "bash"], ["--directory", str(tmp_path)]):
        done = _footplate(tmp_path, "run", "--session", "sesn_1", *option, "hello")
        assert done.returncode == 2
        assert "when it begins" in done.stderr


def test_no_command_is_help(tmp_path: Path) -> None:
    done = _footplate(tmp_path)
    assert done.returncode == 2
    assert "Usage: footplate" in done.stderr


def test_the_version(tmp_path: Path) -> None:
    assert _footplate(tmp_path, "--version").stdout == _footplate(tmp_path, "version").stdout


def test_a_reader_who_goes_away_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m footplate --help | head -n 1"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
