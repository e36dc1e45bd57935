"""The client's commands import no module that is missing in Python on Windows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

POSIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog", "uvloop", "readline", "crypt")
SERVER_ONLY = (
    *("aiodocker", "alembic", "anthropic", "asyncpg", "authlib", "cel_expr_python", "claude_agent_sdk", "dulwich"),
    *(
        "fastapi",
        "genai_prices",
        "html_to_markdown",
        "jsonschema",
        "limits",
        "mcp",
        "obstore",
        "openai",
        "opentelemetry",
    ),
    *(
        "opentelemetry",
        "orjson",
        "pathspec",
        "prometheus_client",
        "pydantic_ai",
        "redis",
        "sqlalchemy",
        "starlette",
        "structlog",
    ),
    *("temporalio", "uvicorn"),
)

PROGRAM = f"""
import importlib.abc, sys
import asyncio, subprocess  # the standard library's own, which has Windows' versions of these

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {POSIX_ONLY + SERVER_ONLY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

for name in {POSIX_ONLY!r}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
import footplate.client, footplate.cli.actions.sessions, footplate.cli.actions.agents_and_environments
import footplate.cli.commands.config, footplate.cli.completion
from footplate.cli.main import main
sys.argv = ["footplate", *sys.argv[1:]]
main()
"""


def _run_without_posix(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "FOOTPLATE_BASE_URL": "http://127.0.0.1:9",
            "FOOTPLATE_API_KEY": "key",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.requirement("C7")
def test_client_commands_reach_the_network(tmp_path: Path) -> None:
    for command in (["run", "hello"], ["ls"], ["agents", "ls"], ["logs", "sesn_1"]):
        done = _run_without_posix(*command, home=tmp_path)
        assert done.returncode == 7, done.stderr
        assert "127.0.0.1:9 does not respond" in done.stderr


def test_commands_without_a_server_work(tmp_path: Path) -> None:
    assert _run_without_posix("config", "list", home=tmp_path).returncode == 0
    assert _run_without_posix("--help", home=tmp_path).returncode == 0


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """The server's commands need the blocked modules; otherwise the tests above would prove nothing."""
    for command, extra in (("worker", "server"), ("api", "server"), ("doctor", "server"), ("dev", "dev")):
        done = _run_without_posix(command, home=tmp_path)
        assert done.returncode == 1, done.stderr
        assert "which is not installed" in done.stderr
        assert f"pip install 'footplate[{extra}]'" in done.stderr
