"""The backend of a session and the shell mode of a run on the command line."""

import json
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Footplate
from tests.integration.cli.test_harness_choice import AGENTS, DATES, ENVIRONMENTS, SESSION
from tests.integration.client.scripted_server import ScriptedServer, json_response

from footplate.cli.actions.run import session_start
from footplate.cli.profile.server_profiles import Server as Known
from footplate.client import AsyncFootplate


@pytest.mark.requirement("K6")
@pytest.mark.requirement("R5")
async def test_a_run_chooses_its_backend_and_where_its_shell_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    turns = json_response({"data": [], "next_page": None})
    sent = json_response({"data": [{"id": "sevt_1", "type": "user.message", "content": []}]})
    responses = [AGENTS, ENVIRONMENTS, SESSION, turns, sent]
    async with ScriptedServer(responses) as server, AsyncFootplate(server.url, "key", patience=5) as client:
        known = Known(server.url, "key", "a test")
        new = session_start.RunRequest(prompt="Hello", backend="docker", shell_mode="host", harness="native")
        await session_start.start_turn(client, known, new)
        later = session_start.RunRequest(prompt="Hello", session=f"sesn_{'0' * 26}", shell_mode="container")
        await session_start.start_turn(client, known, later)
    created = json.loads(next(each.body for each in server.requests if each.path == "/v1/sessions"))
    assert (created["backend"], created["agent"]["shell_mode"]) == ("docker", "host")
    (message,) = json.loads(server.requests[-1].body)["events"]
    assert message["overrides"] == {"shell_mode": "container"}


@pytest.mark.requirement("K6")
async def test_commands_name_backends_and_shell_modes(footplate: Footplate) -> None:
    backends = [{"type": "backend", "name": "sandbox", "is_default": True, "workers": 2}]
    environment = {"id": "env_1", "name": "e", "config": {"type": "cloud", "backend": "docker"}, **DATES}
    listed = json_response({"data": backends, "next_page": None})
    async with ScriptedServer([listed, listed, json_response(environment)]) as server:
        variables = {"FOOTPLATE_BASE_URL": server.url, "FOOTPLATE_API_KEY": "key"}
        table = await footplate("environments", "backends", **variables)
        assert (table.code, table.out.split()) == (0, ["BACKEND", "WORKERS", "sandbox", "2", "default"])
        printed = await footplate("environments", "backends", "--json", **variables)
        assert json.loads(printed.out) == backends
        made = await footplate("environments", "create", "--name", "e", "--backend", "docker", **variables)
        assert made.out == "env_1\n"
    assert json.loads(server.requests[-1].body)["config"] == {"type": "cloud", "backend": "docker"}


async def test_contradicting_choices_are_usage_errors(footplate: Footplate) -> None:
    kept = await footplate("run", "--session", "sesn_1", "--backend", "docker", "hello")
    assert (kept.code, "use --shell-mode" in kept.err) == (2, True)
    unknown = await footplate("run", "--backend", "moon", "hello")
    assert unknown.code == 2
    external = await footplate("steps", "add", "--external", "review", "--shell-mode", "host")
    assert (external.code, "--shell-mode requires" in external.err) == (2, True)
