"""The command line as a shell sees it: output, exit codes, and no colour if none is wanted."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Footplate
from typer.main import get_command
from typer.testing import CliRunner

from footplate.cli.app import app
from footplate.stack.free_ports import find_free_port


def test_the_version_is_printed() -> None:
    """Started as a shell starts the program."""
    result = subprocess.run(
        [sys.executable, "-m", "footplate", "version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stdout) == (0, f"{version('footplate')}\n")


COMMANDS = [
    *(
        (),
        ("dev",),
        ("api",),
        ("worker",),
        ("migrate",),
        ("doctor",),
        ("gc",),
        ("env",),
        ("version",),
    ),
    *(
        ("run",),
        ("attach",),
        ("ls",),
        ("show",),
        ("logs",),
        ("events",),
        ("fork",),
        ("share",),
        ("diff",),
        ("apply",),
        ("merge",),
        ("push",),
        ("export",),
        ("import",),
        ("pull",),
        ("interrupt",),
        ("play",),
        ("pause",),
        ("next",),
        ("approvals",),
        ("approve",),
        ("deny",),
        ("questions",),
        ("answer",),
        ("end",),
        ("archive",),
        ("rm",),
    ),
    *(("steps", name) for name in ("ls", "add", "show", "edit", "mv", "rm", "retry", "result")),
    ("queue", "run"),
    *(("batch", name) for name in ("run", "ls", "show", "attach", "results", "retry", "cancel")),
    *(("schedules", name) for name in ("ls", "create", "show", "update", "preview")),
    *(("schedules", name) for name in ("pause", "resume", "run", "runs", "rm")),
    *(("triggers", name) for name in ("ls", "create", "show", "update", "rotate", "send", "deliveries", "rm")),
    *(("terminals", name) for name in ("ls", "save")),
    *(("agents", name) for name in ("ls", "show", "create", "archive")),
    *(("environments", name) for name in ("ls", "show", "create", "rm", "backends")),
    *(("files", name) for name in ("ls", "pull", "upload", "get", "rm")),
    *(("projects", name) for name in ("ls", "show", "create", "archive")),
    *(("members", name) for name in ("ls", "add", "roles", "disable", "enable")),
    *(("teams", name) for name in ("ls", "create", "add-member", "remove-member")),
    ("models",),
    ("workers",),
    ("queues",),
    ("versions",),
    ("usage",),
    *(("limits", name) for name in ("set", "unset")),
    *(("api-keys", name) for name in ("create", "ls", "rotate", "revoke")),
    *(
        ("webhooks", name)
        for name in ("ls", "create", "show", "update", "rm", "rotate", "test", "deliveries", "replay")
    ),
    *((name,) for name in ("login", "logout", "whoami", "dashboard", "pin", "unpin")),
    *(("notifications", name) for name in ("ls", "set", "rm", "test")),
    *(("inbox", name) for name in ("ls", "assign", "snooze", "dismiss")),
    *(("comments", name) for name in ("ls", "add", "edit", "rm", "send")),
    *(("templates", name) for name in ("ls", "show", "create", "update", "rm")),
    *(("policy", name) for name in ("explain", "replay")),
    *(("objects", name) for name in ("backup", "restore")),
    *(("audit", name) for name in ("ls", "export", "verify")),
    *(("config", name) for name in ("set", "get", "use", "list", "rm")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"], prog_name="footplate")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: {' '.join(['footplate', *command])}")
    assert "\x1b[" not in result.stdout


def test_every_command_is_listed_here() -> None:
    named = {command[0] for command in COMMANDS if command}
    assert set(get_command(app).commands) == named  # pyrefly: ignore[missing-attribute]


async def test_help_fits_a_narrow_terminal(footplate: Footplate) -> None:
    text = (await footplate("run", "--help", COLUMNS="60")).out
    assert max(len(line) for line in text.splitlines()) <= 60


@pytest.mark.parametrize(
    "arguments",
    [
        ("dev", "--no-such-option"),
        ("run",),
        ("run", "  "),
        ("run", "--max-turns", "0", "x"),
        ("run", "--output", "xml", "x"),
        ("logs", "--follow", "--tail", "3"),
        ("rm", "sesn_1"),
        ("ls", "--status", "parked"),
        ("ls", "--activity", "idle"),
        ("fork", "--turn", "1", "--last-tool"),
        ("share", "sesn_1"),
        ("share", "sesn_1", "--visibility", "team"),
        ("run", "--visibility", "private", "--team", "web", "x"),
        ("run", "--session", "sesn_1", "--visibility", "private", "x"),
        ("api-keys", "create", "--name", "x", "--project", "site"),
        ("webhooks", "update", "whep_1", "--event", "session.created", "--all-events"),
        ("notifications", "set"),
        ("notifications", "set", "--quiet", "22-7"),
        ("notifications", "set", "--quiet", "22:00-07:00", "--no-quiet"),
        ("triggers", "create"),
        ("triggers", "create", "x", "--session", "sesn_1", "--agent", "agent_1"),
        ("triggers", "update", "trig_1"),
        ("triggers", "send", "trig_1", "[]"),
        ("export", "sesn_1"),
        ("export", "sesn_1", "--branch", "x", "--patch", "y"),
        ("config", "set", "colour", "red"),
        ("policy", "replay", "--since", "noon"),
        ("steps", "add", "sesn_1"),
        ("steps", "add", "sesn_1", "--shell", "ls", "--prompt", "x"),
        ("steps", "add", "sesn_1", "--shell", "ls", "--attempts", "2"),
        ("steps", "add", "sesn_1", "--shell", "ls", "--message", "x"),
        ("steps", "edit", "build"),
        ("steps", "mv", "build"),
        ("steps", "result", "build", "--status", "done"),
        ("queue", "run", "x.yaml", "--session", "sesn_1", "--model", "m"),
        ("limits", "set", "sessions", "-1"),
        ("usage", "--by", "tool", "--by", "hour"),
        ("limits", "set", "sessions", "1", "--each-member", "--member", "memb_1"),
    ],
    ids=" ".join,
)
async def test_a_usage_error_exits_with_2(footplate: Footplate, arguments: tuple[str, ...]) -> None:
    result = await footplate(*arguments)
    assert result.code == 2
    assert "Error" in result.err or "Usage" in result.err


@pytest.mark.parametrize("command", [("run", "x"), ("ls",), ("show",), ("agents", "ls")], ids=" ".join)
async def test_without_a_server_commands_exit_7_with_a_hint(footplate: Footplate, command: tuple[str, ...]) -> None:
    result = await footplate(*command)
    assert (result.code, result.out) == (7, "")
    assert "footplate dev" in result.err
    unreachable = {"FOOTPLATE_BASE_URL": f"http://127.0.0.1:{find_free_port()}", "FOOTPLATE_API_KEY": "key"}
    result = await footplate(*command, "--json", **unreachable)
    assert result.code == 7
    response = json.loads(result.out)
    assert (response["error"]["code"], response["exit_code"]) == ("unreachable", 7)
    assert "`footplate dev` starts a server" in response["error"]["help"]


async def test_dev_rejects_an_unknown_scenario_before_anything_starts(footplate: Footplate, tmp_path: Path) -> None:
    result = await footplate("dev", "--scripted", "drama")
    assert result.code == 1
    assert "Built-in scenarios: demo" in result.err
    assert not (tmp_path / ".local").exists()


async def test_doctor_reports_unreachable_services_and_how_to_fix_them(footplate: Footplate) -> None:
    unreachable = f"127.0.0.1:{find_free_port()}"
    result = await footplate(
        *("doctor", "--json"),
        FOOTPLATE_DATABASE_URL=f"postgresql://somebody:hidden@{unreachable}/x",
        FOOTPLATE_REDIS_URL=f"redis://:hidden@{unreachable}/0",
        FOOTPLATE_TEMPORAL_ADDRESS=unreachable,
    )
    findings = {finding["name"]: finding for finding in json.loads(result.out)}
    assert result.code == 1
    for name in ("PostgreSQL", "Redis", "Temporal", "Schema"):
        assert findings[name]["state"] == "failed"
        assert findings[name]["mend"]
    assert "FOOTPLATE_DATABASE_URL" in findings["PostgreSQL"]["mend"]
    assert findings["bash"]["state"] == "ok"
    assert findings["Model credentials"]["state"] == "warning"
    assert "hidden" not in result.out


async def test_env_without_a_running_dev_fails_with_a_hint(footplate: Footplate) -> None:
    result = await footplate("env")
    assert result.code == 1
    assert result.out == ""
    assert "footplate dev" in result.err


async def test_dev_rejects_a_port_in_use_before_anything_starts(footplate: Footplate, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        result = await footplate("dev", "--port", str(taken.getsockname()[1]))
    assert result.code == 1
    assert "--port" in result.err
    assert not (tmp_path / ".local" / "share" / "footplate" / "postgres").exists()
