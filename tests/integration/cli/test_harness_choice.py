"""The harness of a session that `footplate run` starts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.integration.client.scripted_server import ScriptedServer, failure, json_response

from footplate.cli.actions.run import session_start
from footplate.cli.profile.server_profiles import Server as Known
from footplate.client import AsyncFootplate, InvalidRequest

AGENT = {"id": "agent_1", "name": "footplate-cli", "version": 1, "model": {"id": "claude-sonnet-5"}}
DATES = {"created_at": "2026-11-15T12:00:00Z", "updated_at": "2026-11-15T12:00:00Z"}
AGENTS = json_response({"data": [{**AGENT, **DATES}], "next_page": None})
ENVIRONMENTS = json_response({"data": [{"id": "env_1", "name": "footplate-cli", **DATES}], "next_page": None})
SESSION = json_response({"id": "sesn_1", "agent": AGENT, "environment_id": "env_1", "status": "idle", **DATES})
NO_CLAUDE = json_response(failure(400, field="agent.harness"), 400)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


async def _start_session(
    responses: Sequence[bytes], *, known: dict[str, Any] | None = None, **options: Any
) -> list[Any]:
    """Starts a session and returns the agents of the requests that the server received."""
    async with ScriptedServer([*responses]) as server, AsyncFootplate(server.url, "key", patience=5) as client:
        connection = Known(server.url, "key", "a test", **(known or {}))
        await session_start.start_turn(client, connection, session_start.RunRequest(prompt="Hello", **options))
    return [json.loads(each.body)["agent"] for each in server.requests if each.path == "/v1/sessions"]


@pytest.mark.parametrize(
    ("model", "harness"),
    [
        (None, "claude"),
        ("claude-opus-5", "claude"),
        ("anthropic:claude-opus-5", "claude"),
        ("anthropic:scripted", None),
        ("openai:gpt-5.1", None),
    ],
)
async def test_claude_models_run_in_claude_code(model: str | None, harness: str | None) -> None:
    (agent,) = await _start_session([AGENTS, ENVIRONMENTS, SESSION], model=model)
    assert agent.get("harness") == harness


async def test_native_is_used_if_the_server_has_no_claude() -> None:
    first, second = await _start_session([AGENTS, ENVIRONMENTS, NO_CLAUDE, SESSION])
    assert (first["harness"], second.get("harness")) == ("claude", None)


async def test_the_harness_can_be_chosen_by_option_or_profile() -> None:
    (agent,) = await _start_session([AGENTS, ENVIRONMENTS, SESSION], harness="native")
    assert agent["harness"] == "native"
    (agent,) = await _start_session([AGENTS, ENVIRONMENTS, SESSION], known={"harness": "native"})
    assert agent["harness"] == "native"
    with pytest.raises(InvalidRequest):
        await _start_session([AGENTS, ENVIRONMENTS, NO_CLAUDE] * 2, harness="claude")


async def test_a_named_agent_keeps_its_harness() -> None:
    assert await _start_session([ENVIRONMENTS, SESSION], agent="agent_1") == ["agent_1"]
