"""The fields of a command's result, as the real CLI reports them and as the log describes them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner

from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.sessions import events as ev
from footplate.harness.claude.transcripts import command_results
from footplate.harness.claude.transcripts.sdk_message_parser import ToolResult
from footplate.harness.recovery_text import INTERRUPTED
from footplate.testing import ScriptedModel, replies, text, tool

COMMANDS = {
    "both": "echo out; echo err >&2; sleep 0.3",
    "fails": "echo 'Exit code 0'; exit 3",
    "no_match": "grep x /dev/null",
    "long": "seq 1 60000",
}
SCRIPTS = {
    **{name: replies([tool("Bash", {"command": command})], [text("Done.")]) for name, command in COMMANDS.items()},
    "timeout": replies([tool("Bash", {"command": "echo begun; sleep 20", "timeout": 1000})], [text("Done.")]),
    "waits": replies([tool("Bash", {"command": "echo begun > begun; sleep 20"})], [text("Done.")]),
    "reads": replies([tool("Read", {"file_path": "/dev/null"})], [text("Done.")]),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path, keeps_warm=True)
        yield runner
        await runner.close()


def command_of(runner: SessionRunner) -> JsonObject:
    (result,) = [event for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT]
    command = result.body["command"]
    assert isinstance(command, dict)
    return command


async def run_command(runner: SessionRunner, script: str) -> JsonObject:
    await runner.run_turn(f"Run it. [[script:{script}]]")
    return command_of(runner)


@pytest.mark.timing
@pytest.mark.requirement("O6")
async def test_the_result_of_a_command_has_separate_fields(runner: SessionRunner) -> None:
    command = await run_command(runner, "both")
    assert 300 <= int(str(command.pop("duration_ms"))) < 20_000
    assert command == {
        "status": "completed",
        "exit_code": 0,
        "error": None,
        "stdout": {"text": "out\nerr", "bytes": 7},  # the CLI does not separate the streams
        "stderr": {"text": "", "bytes": 0},
    }
    failed = await run_command(runner, "fails")
    assert (failed["status"], failed["exit_code"], failed["error"]) == ("failed", 3, None)
    assert failed["stdout"] == {"text": "Exit code 0", "bytes": 11}
    no_match = await run_command(runner, "no_match")
    assert (no_match["status"], no_match["exit_code"]) == ("failed", 1)
    timed_out = await run_command(runner, "timeout")
    assert (timed_out["status"], timed_out["exit_code"]) == ("timed_out", None)
    assert timed_out["error"] == "Command timed out after 1s"
    assert timed_out["stdout"] == {"text": "begun", "bytes": 5}
    await runner.run_turn("Read. [[script:reads]]")
    assert "command" not in runner.turn_events()[-4].body


@pytest.mark.timing
@pytest.mark.requirement("O6")
async def test_long_output_is_in_the_object_store(runner: SessionRunner) -> None:
    printed = "".join(f"{number}\n" for number in range(1, 60_001)).encode()
    stdout = (await run_command(runner, "long"))["stdout"]
    assert isinstance(stdout, dict)
    assert (stdout["bytes"], stdout["object"]) == (len(printed), "output-1")
    assert len(str(stdout["text"])) < 5000
    assert runner.log.outputs == [printed]
    runner.log.refuses_output = True
    stdout = (await run_command(runner, "long"))["stdout"]
    assert isinstance(stdout, dict)
    assert stdout["object"] is None


@pytest.mark.timing
@pytest.mark.requirement("O6")
async def test_a_command_that_did_not_end_has_no_exit_code(runner: SessionRunner) -> None:
    runner.gate.outcomes = {"Bash": PermissionOutcome.DENY}
    denied = await run_command(runner, "both")
    assert (denied["status"], denied["exit_code"], denied["duration_ms"]) == ("denied", None, None)
    assert "Scripted decision." in str(denied["error"])
    runner.gate.outcomes = {}
    runner.begin_turn("Wait. [[script:waits]]")
    running = asyncio.create_task(runner.run_attempt())
    async with asyncio.timeout(20):
        while not (runner.folder / "host" / "work" / "begun").exists():  # noqa: ASYNC110 - a tool's own file
            await asyncio.sleep(0.02)
    runner.interrupt.set()
    await running
    assert command_of(runner) == {
        "status": "interrupted",
        "exit_code": None,
        "duration_ms": None,
        "error": INTERRUPTED,
    }


@pytest.mark.parametrize(
    ("returned", "status", "exit_code", "error", "printed"),
    [
        ("Exit code 2", "failed", 2, None, ""),
        ("Exit code 143\nhello", "failed", 143, None, "hello"),
        ("Exit code 143\nCommand timed out after 2m 0s", "timed_out", None, "Command timed out after 2m 0s", ""),
        ("spawn failed: Exit code 1", "failed", None, "spawn failed: Exit code 1", ""),
        ("Exit code 12345", "failed", None, "Exit code 12345", ""),
    ],
)
def test_a_failure_is_read_from_the_start_of_the_text(
    returned: str, status: str, exit_code: int | None, error: str | None, printed: str
) -> None:
    result = ToolResult("call_1", (ev.text_block(returned),), is_error=True)
    command, stored = command_results.describe_command(result, f"Error: {returned}", 5)
    assert stored is None
    assert [command[name] for name in ("status", "exit_code", "error", "duration_ms")] == [status, exit_code, error, 5]
    assert command["stdout"] == {"text": printed, "bytes": len(printed)}
