"""The command line as a shell sees it: output, exit codes, and no colour where none is wanted."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from footplate.stack.ports import free_port


def _footplate(*arguments: str, home: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "200", **extra}
    return subprocess.run(
        [sys.executable, "-m", "footplate", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_version(tmp_path: Path) -> None:
    result = _footplate("version", home=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"{version('footplate')}\n")


@pytest.mark.parametrize(
    "command", [(), ("dev",), ("api",), ("worker",), ("migrate",), ("doctor",), ("env",), ("api-keys", "create")]
)
def test_every_command_has_help(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = _footplate(*command, "--help", home=tmp_path, NO_COLOR="1")
    assert result.returncode == 0
    assert "Usage:" in result.stdout
    assert "\x1b[" not in result.stdout


def test_a_wrong_command_line_is_2(tmp_path: Path) -> None:
    assert _footplate("dev", "--no-such-option", home=tmp_path).returncode == 2


def test_doctor_names_what_does_not_answer_and_how_to_mend_it(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    result = _footplate(
        *("doctor", "--json"),
        home=tmp_path,
        FOOTPLATE_DATABASE_URL=f"postgresql://somebody:hidden@{nobody}/x",
        FOOTPLATE_REDIS_URL=f"redis://:hidden@{nobody}/0",
        FOOTPLATE_TEMPORAL_ADDRESS=nobody,
    )
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)}
    assert result.returncode == 1
    for name in ("PostgreSQL", "Redis", "Temporal", "Schema"):
        assert findings[name]["state"] == "failed"
        assert findings[name]["mend"]
    assert "FOOTPLATE_DATABASE_URL" in findings["PostgreSQL"]["mend"]
    assert findings["bash"]["state"] == "ok"
    assert findings["Model credentials"]["state"] == "warning"
    assert "hidden" not in result.stdout


def test_env_without_a_running_dev_fails_and_says_so(tmp_path: Path) -> None:
    result = _footplate("env", home=tmp_path)
    assert result.returncode == 1
    assert result.stdout == ""
    assert "footplate dev" in result.stderr


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        result = _footplate("dev", "--port", str(taken.getsockname()[1]), home=tmp_path)
    assert result.returncode == 1
    assert "--port" in result.stderr
    assert not (tmp_path / ".local" / "share" / "footplate" / "postgres").exists()
