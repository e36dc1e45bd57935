"""Completion of ids in each shell, and protection of the shell from harmful text of a server."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

SESSIONS = [
    {"id": "sesn_one", "status": "idle", "title": 'It\'s `$(reboot)` "now"\n; rm -rf ~ \\'},
    {"id": "sesn_two", "status": "running", "title": None},
    {"id": "$(reboot)", "status": "idle", "title": "not an id"},
]


class _Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = {
            "/v1/sessions": SESSIONS,
            "/v1/agents": [{"id": "agent_one", "name": "Helper"}],
            "/v1/members": [{"id": "memb_one", "name": "ann"}],
            "/v1/teams": [{"id": "team_one", "name": "web"}],
        }
        allowed = self.headers["x-api-key"] == "key"
        body = json.dumps({"data": known.get(self.path.partition("?")[0], [])} if allowed else {}).encode()
        self.send_response(200 if allowed else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object, **__: object) -> None: ...


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def _complete(shell: str, line: str, home: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    arguments = line.split(" ")
    request = {"COMP_WORDS": line, "COMP_CWORD": str(len(arguments) - 1), "_TYPER_COMPLETE_ARGS": line}
    return subprocess.run(
        [sys.executable, "-m", "footplate"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "_FOOTPLATE_COMPLETE": f"complete_{shell}",
            **request,
            **extra,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def known(api: str) -> dict[str, str]:
    return {"FOOTPLATE_BASE_URL": api, "FOOTPLATE_API_KEY": "key"}


@pytest.mark.parametrize(
    "line",
    [
        "footplate attach ",
        "footplate logs -f ",
        "footplate rm sesn_x ",
        "footplate run --session ",
        "footplate run -s ",
    ],
)
def test_session_ids_are_completed(line: str, tmp_path: Path, known: dict[str, str]) -> None:
    assert _complete("bash", line, tmp_path, **known).stdout == "sesn_one\nsesn_two\n"


def test_only_matching_values_are_completed(tmp_path: Path, known: dict[str, str]) -> None:
    assert _complete("bash", "footplate show sesn_t", tmp_path, **known).stdout == "sesn_two\n"
    assert _complete("bash", "footplate agents show ", tmp_path, **known).stdout == "agent_one\n"
    assert _complete("bash", "footplate share --team ", tmp_path, **known).stdout == "team_one\n"
    assert _complete("bash", "footplate teams add-member team_one ", tmp_path, **known).stdout == "memb_one\n"
    assert _complete("bash", "footplate config get ba", tmp_path).stdout == "base_url\n"
    assert _complete("bash", "footplate ls --profile ", tmp_path).stdout == "local\n"


def test_nothing_harmful_reaches_a_shell(tmp_path: Path, known: dict[str, str]) -> None:
    zsh = _complete("zsh", "footplate attach ", tmp_path, **known).stdout
    assert zsh == ('_arguments \'*: :(("sesn_one":"idle It s reboot now rm -rf"\n"sesn_two":"running"))\'\n')
    fish = _complete("fish", "footplate attach ", tmp_path, _TYPER_COMPLETE_FISH_ACTION="get-args", **known)
    assert fish.stdout == "sesn_one\tidle It s reboot now rm -rf\nsesn_two\trunning\n"
    power = _complete("powershell", "footplate attach", tmp_path, **known).stdout
    assert power.splitlines()[1] == "sesn_two:::running"


def test_fish_checks_first_whether_there_are_completions(tmp_path: Path, known: dict[str, str]) -> None:
    request = {"_TYPER_COMPLETE_FISH_ACTION": "is-args", **known}
    assert _complete("fish", "footplate attach sesn", tmp_path, **request).returncode == 0
    assert _complete("fish", "footplate attach nobody", tmp_path, **request).returncode == 1


def test_without_a_server_nothing_is_printed(tmp_path: Path) -> None:
    assert _complete("bash", "footplate attach ", tmp_path).stdout.strip() == ""
    unreachable = {"FOOTPLATE_BASE_URL": "http://127.0.0.1:9", "FOOTPLATE_API_KEY": "key"}
    done = _complete("bash", "footplate attach ", tmp_path, **unreachable)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_commands_and_options_are_completed_too(tmp_path: Path) -> None:
    assert "--background" in _complete("bash", "footplate run --", tmp_path).stdout
    assert "attach" in _complete("bash", "footplate at", tmp_path).stdout


def test_completion_loads_no_slow_module(tmp_path: Path, known: dict[str, str]) -> None:
    program = (
        "import sys; from footplate.cli.main import main; main();"
        "print(sorted({'typer', 'rich', 'pydantic', 'httpx2', 'asyncio', 'structlog'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "_FOOTPLATE_COMPLETE": "complete_bash",
            "COMP_WORDS": "footplate attach ",
            "COMP_CWORD": "2",
            **known,
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == ["sesn_one", "sesn_two", "[]"]
