"""Whole turns with the real CLI in a repository that brings something: what it is told, and what runs."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.claude.desk import Desk

from footplate.domain import events as ev
from footplate.domain.brought import Brought
from footplate.domain.projects import Trust
from footplate.domain.turns import TurnStatus
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
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        desk = Desk(model, tmp_path)
        yield desk
        await desk.close()


def hooks(commands: Mapping[str, str]) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in commands.items()}


def bring(desk: Desk, trust: Trust, files: Mapping[str, object]) -> Path:
    """The files are in the tree as well, as they are in a repository."""
    content = {path: (one if isinstance(one, str) else json.dumps(one)).encode() for path, one in files.items()}
    desk.brought = Brought(trust=trust, commit="c" * 40, files=content)
    root = desk.folder / "host" / "work"
    for path, data in content.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def marks(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("ran-*"))


def shown(desk: Desk) -> str:
    return json.dumps([request.body for request in desk.model.requests()])


EVERY_HOOK = {
    event: f"touch ran-{event}" for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
}


async def test_all_that_is_trusted_is_loaded(desk: Desk) -> None:
    root = bring(desk, Trust.ALL, {"CLAUDE.md": "Say please.", ".claude/settings.json": {"hooks": hooks(EVERY_HOOK)}})
    outcome = await desk.turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert marks(root) == sorted(f"ran-{event}" for event in EVERY_HOOK)
    assert "Say please." in shown(desk)
    first = next(event for event in desk.told() if event.type == ev.MODEL_REQUEST_START)
    record: Any = first.body["repository"]
    assert [one["path"] for one in record["loaded"]] == ["CLAUDE.md", ".claude/settings.json"]
    assert [event.type for event in desk.told()].count(ev.AGENT_TOOL_USE) == 1


@pytest.mark.parametrize("trust", [Trust.NOTHING, Trust.INSTRUCTIONS])
async def test_what_is_not_trusted_does_not_run(desk: Desk, trust: Trust) -> None:
    root = bring(desk, trust, {"CLAUDE.md": "Say please.", ".claude/settings.json": {"hooks": hooks(EVERY_HOOK)}})
    outcome = await desk.turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert marks(root) == []
    assert ("Say please." in shown(desk)) == (trust is Trust.INSTRUCTIONS)
    first = next(event for event in desk.told() if event.type == ev.MODEL_REQUEST_START)
    assert ("repository" in first.body) == (trust is Trust.INSTRUCTIONS)


async def test_a_hook_stops_a_call_and_changes_none(desk: Desk) -> None:
    other = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "touch ran-other"}}}
    commands = {"PreToolUse": f"echo '{json.dumps(other)}'"}
    root = bring(desk, Trust.ALL, {".claude/settings.json": {"hooks": hooks(commands)}})
    await desk.turn("Look. [[script:look]]")
    assert (root / "looked").exists()
    assert marks(root) == []

    bring(desk, Trust.ALL, {".claude/settings.json": {"hooks": hooks({"PreToolUse": "echo Not here. >&2; exit 2"})}})
    (root / "looked").unlink()
    outcome = await desk.turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert not (root / "looked").exists()
    (result,) = [event for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT]
    assert result.body["is_error"]
    assert "Not here." in json.dumps(result.body)


async def test_a_script_that_was_changed_is_not_run(desk: Desk) -> None:
    script = ".claude/hooks/check.sh"
    commands = dict.fromkeys(("PostToolUse", "Stop"), f'sh "$CLAUDE_PROJECT_DIR/{script}"')
    files = {".claude/settings.json": {"hooks": hooks(commands)}, script: "touch ran-script"}
    root = bring(desk, Trust.ALL, files)
    (root / script).write_text("touch ran-changed")
    outcome = await desk.turn("Look. [[script:look]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert marks(root) == []
    (root / script).write_text("touch ran-script")
    await desk.turn("Look. [[script:look]]")
    assert marks(root) == ["ran-script"]


async def test_a_server_of_the_repository_is_asked(desk: Desk) -> None:
    servers = {"mcpServers": {"helper": {"command": "python3", "args": ["server.py"]}}}
    root = bring(desk, Trust.ALL, {".mcp.json": servers})
    (root / "server.py").write_text(SERVER)
    outcome = await desk.turn("Ask. [[script:ask]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert "Hello you." in json.dumps([event.body for event in desk.told()])


async def test_a_kept_cli_is_not_used_when_the_trust_has_changed(desk: Desk) -> None:
    desk.keeps = True
    bring(desk, Trust.INSTRUCTIONS, {"CLAUDE.md": "Say please."})
    await desk.turn("One. [[script:short]]")
    kept = desk.kept
    await desk.turn("Two. [[script:short]]")
    assert desk.kept is kept
    desk.brought = Brought()
    await desk.turn("Three. [[script:short]]")
    assert desk.kept is not kept
    assert "Say please." not in json.dumps(desk.model.requests()[-1].body)
