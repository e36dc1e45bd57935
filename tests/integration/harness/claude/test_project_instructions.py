"""Whole turns with the real CLI in a repository with instructions, hooks and MCP servers: what is loaded, what runs."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner

from footplate.domain.projects.project import Trust
from footplate.domain.projects.project_instructions import ProjectInstructions
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.testing import ScriptedModel, replies, text, tool

SCRIPTS = {
    "look": replies([tool("Bash", {"command": "echo looked >> looked"})], [text("Done.")]),
    "short": replies([text("Short.")]),
    "ask": replies([tool("mcp__helper__greet", {"name": "you"})], [text("Greeted.")]),
}
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "helper", "version": "1"}},
        "tools/list": {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "Hello you."}]},
    }
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path)
        yield runner
        await runner.close()


def make_hooks(commands: Mapping[str, str]) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in commands.items()}


def set_instructions(runner: SessionRunner, trust: Trust, files: Mapping[str, object]) -> Path:
    """Sets the project's instructions and writes their files to the tree, as in a repository."""
    content = {path: (one if isinstance(one, str) else json.dumps(one)).encode() for path, one in files.items()}
    runner.project_instructions = ProjectInstructions(trust=trust, commit="c" * 40, files=content)
    root = runner.folder / "host" / "work"
    for path, data in content.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def list_marks(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("ran-*"))


def dump_requests(runner: SessionRunner) -> str:
    return json.dumps([request.body for request in runner.model.requests()])


EVERY_HOOK = {
    event: f"touch ran-{event}" for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
}


async def test_everything_trusted_is_loaded(runner: SessionRunner) -> None:
    root = set_instructions(
        runner, Trust.ALL, {"CLAUDE.md": "Say please.", ".claude/settings.json": {"hooks": make_hooks(EVERY_HOOK)}}
    )
    outcome = await runner.run_turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert list_marks(root) == sorted(f"ran-{event}" for event in EVERY_HOOK)
    assert "Say please." in dump_requests(runner)
    first = next(event for event in runner.turn_events() if event.type == ev.MODEL_REQUEST_START)
    record: Any = first.body["repository"]
    assert [one["path"] for one in record["loaded"]] == ["CLAUDE.md", ".claude/settings.json"]
    assert [event.type for event in runner.turn_events()].count(ev.AGENT_TOOL_USE) == 1


@pytest.mark.parametrize("trust", [Trust.NOTHING, Trust.INSTRUCTIONS])
async def test_hooks_that_are_not_trusted_do_not_run(runner: SessionRunner, trust: Trust) -> None:
    root = set_instructions(
        runner, trust, {"CLAUDE.md": "Say please.", ".claude/settings.json": {"hooks": make_hooks(EVERY_HOOK)}}
    )
    outcome = await runner.run_turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert list_marks(root) == []
    assert ("Say please." in dump_requests(runner)) == (trust is Trust.INSTRUCTIONS)
    first = next(event for event in runner.turn_events() if event.type == ev.MODEL_REQUEST_START)
    assert ("repository" in first.body) == (trust is Trust.INSTRUCTIONS)


async def test_a_hook_can_stop_a_call_but_not_change_it(runner: SessionRunner) -> None:
    other = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "touch ran-other"}}}
    commands = {"PreToolUse": f"echo '{json.dumps(other)}'"}
    root = set_instructions(runner, Trust.ALL, {".claude/settings.json": {"hooks": make_hooks(commands)}})
    await runner.run_turn("Look. [[script:look]]")
    assert (root / "looked").exists()
    assert list_marks(root) == []

    set_instructions(
        runner,
        Trust.ALL,
        {".claude/settings.json": {"hooks": make_hooks({"PreToolUse": "echo Not here. >&2; exit 2"})}},
    )
    (root / "looked").unlink()
    outcome = await runner.run_turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert not (root / "looked").exists()
    (result,) = [event for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT]
    assert result.body["is_error"]
    assert "Not here." in json.dumps(result.body)


async def test_a_changed_hook_script_is_not_run(runner: SessionRunner) -> None:
    script = ".claude/hooks/check.sh"
    commands = dict.fromkeys(("PostToolUse", "Stop"), f'sh "$CLAUDE_PROJECT_DIR/{script}"')
    files = {".claude/settings.json": {"hooks": make_hooks(commands)}, script: "touch ran-script"}
    root = set_instructions(runner, Trust.ALL, files)
    (root / script).write_text("touch ran-changed")
    outcome = await runner.run_turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert list_marks(root) == []
    (root / script).write_text("touch ran-script")
    await runner.run_turn("Look. [[script:look]]")
    assert list_marks(root) == ["ran-script"]


async def test_an_mcp_server_of_the_repository_is_called(runner: SessionRunner) -> None:
    servers = {"mcpServers": {"helper": {"command": "python3", "args": ["server.py"]}}}
    root = set_instructions(runner, Trust.ALL, {".mcp.json": servers})
    (root / "server.py").write_text(SERVER)
    outcome = await runner.run_turn("Ask. [[script:ask]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert "Hello you." in json.dumps([event.body for event in runner.turn_events()])


async def test_a_warm_cli_is_not_used_after_the_trust_changed(runner: SessionRunner) -> None:
    runner.keeps_warm = True
    set_instructions(runner, Trust.INSTRUCTIONS, {"CLAUDE.md": "Say please."})
    await runner.run_turn("One. [[script:short]]")
    warm = runner.warm_process
    await runner.run_turn("Two. [[script:short]]")
    assert runner.warm_process is warm
    runner.project_instructions = ProjectInstructions()
    await runner.run_turn("Three. [[script:short]]")
    assert runner.warm_process is not warm
    assert "Say please." not in json.dumps(runner.model.requests()[-1].body)
