"""MCP servers with the real CLI: the worker makes each call once, and only calls that are in the log."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from bench.support.mcp_server.server_process import McpProcess
from tests.integration.harness.claude.session_runner import SessionRunner
from tests.integration.harness.doubles import text_of

from footplate.domain.agents.mcp_servers import McpServer
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import McpAccess
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.claude.harness import ClaudeHarness
from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.session.cli_connection import CliConnection
from footplate.harness.recovery_text import UNKNOWN
from footplate.testing import ScriptedModel, replies, text, tool

pytestmark = pytest.mark.timing

ALLOWED = McpAccess(allow=("127.0.0.1",))
NOTE = "mcp__notes__note"
STARTS = TurnRecorder.claim_start
SCRIPTS = {
    "note": replies([tool(NOTE, {"line": "one"})], [text("Noted.")]),
    "all": replies(
        [tool("mcp__notes__picture", {}), tool("mcp__notes__fail", {}), tool("mcp__notes__odd_name", {})],
        [tool("mcp__notes__large", {"characters": 100_000}), tool("mcp__notes__gone", {})],
        [text("All of them.")],
    ),
    "slow": replies([tool(NOTE, {"line": "slow", "seconds": 200})], [text("After it.")]),
    "peek": replies([tool("Bash", {"command": "env; cat /proc/net/tcp"})], [text("Seen.")]),
}


@pytest.fixture
async def runner(tmp_path: Path, notes: McpProcess) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path, servers=(McpServer(name="notes", url=notes.url),))
        runner.harness = ClaudeHarness(ALLOWED)
        yield runner
        await runner.close()


async def wait_until_noted(notes: McpProcess) -> None:
    async with asyncio.timeout(20):
        while not notes.read_notes():  # noqa: ASYNC110 - another process's file
            await asyncio.sleep(0.02)


async def test_a_tool_is_called_once_and_logged_with_its_server(runner: SessionRunner, notes: McpProcess) -> None:
    assert (await runner.run_turn("Note. [[script:note]]")).text == "Noted."
    assert [event.type for event in runner.turn_events()] == [
        ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END, ev.AGENT_MCP_TOOL_USE, ev.AGENT_MCP_TOOL_RESULT,
        ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    _, _, use, result, *_ = runner.turn_events()
    assert (use.body["mcp_server_name"], use.body["name"], use.body["input"]) == ("notes", "note", {"line": "one"})
    assert (result.body["mcp_tool_use_id"], text_of(result), result.body["is_error"]) == (use.id, "Noted: one", False)
    assert notes.read_notes() == ["one"]


async def test_all_kinds_of_results(runner: SessionRunner) -> None:
    await runner.run_turn("All. [[script:all]]")
    results = [event.body for event in runner.turn_events() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert [body["is_error"] for body in results] == [False, True, False, False, True]
    kinds = [[block["type"] for block in body["content"]] for body in results]  # pyrefly: ignore[bad-index, not-iterable, unsupported-operation]
    assert kinds[0][0] == "image"  # followed by the CLI's own text about it
    assert "it never works" in str(results[1])
    assert "characters omitted" in str(results[3])
    names = [event.body["name"] for event in runner.turn_events() if event.type == ev.AGENT_MCP_TOOL_USE]
    assert names == ["picture", "fail", "odd.name", "large", "gone"]


async def test_a_call_in_flight_is_never_made_again(runner: SessionRunner, notes: McpProcess) -> None:
    runner.begin_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.run_attempt("one"))
    await wait_until_noted(notes)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert (await runner.run_attempt("two")).text == "After it."
    (result,) = [event for event in runner.turn_events() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert (text_of(result), result.body["is_error"]) == (UNKNOWN, True)
    assert notes.read_notes() == ["slow"]


async def test_an_interrupt_ends_a_call(runner: SessionRunner, notes: McpProcess) -> None:
    runner.begin_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.run_attempt())
    await wait_until_noted(notes)
    runner.interrupt.set()
    assert (await asyncio.wait_for(running, 30)).status is TurnStatus.INTERRUPTED
    assert (await runner.run_turn("Note. [[script:note]]")).text == "Noted."


async def test_a_warm_cli_keeps_its_servers(runner: SessionRunner, notes: McpProcess) -> None:
    runner.keeps_warm = True
    await runner.run_turn("Note. [[script:note]]")
    warm = runner.warm_process
    assert isinstance(warm, CliConnection)
    await runner.run_turn("Again. [[script:note]]")
    assert runner.warm_process is warm
    assert notes.read_notes() == ["one", "one"]


async def test_no_cli_is_prewarmed_for_an_agent_with_servers(runner: SessionRunner) -> None:
    await runner.prewarm()
    assert runner.warm_process is None


async def test_processes_inside_do_not_see_the_servers_address(runner: SessionRunner, notes: McpProcess) -> None:
    await runner.run_turn("Peek. [[script:peek]]")
    (result,) = [event for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT]
    assert notes.url not in text_of(result)


async def test_a_refused_server_is_reported_and_tried_again(runner: SessionRunner, notes: McpProcess) -> None:
    runner.keeps_warm, runner.harness = True, ClaudeHarness()
    await runner.run_turn("Note. [[script:note]]")
    assert [event.type for event in runner.turn_events()][:2] == [ev.SESSION_ERROR, ev.MODEL_REQUEST_START]
    assert "FOOTPLATE_MCP_ALLOW" in str(runner.turn_events()[0].body)
    assert runner.warm_process is None
    assert not notes.read_notes()
    runner.harness = ClaudeHarness(ALLOWED)
    await runner.run_turn("Again. [[script:note]]")
    assert notes.read_notes() == ["one"]


def _start_twice(recorder: TurnRecorder, call_id: str, name: str, given: JsonObject) -> bool:
    assert STARTS(recorder, call_id, name, given)
    return STARTS(recorder, call_id, name, given)


@pytest.mark.parametrize(
    "asked",
    [
        _start_twice,
        lambda recorder, _, name, given: STARTS(recorder, "toolu_stranger", name, given),
        lambda recorder, _, name, given: STARTS(recorder, "", name, given),
        lambda recorder, call_id, _, given: STARTS(recorder, call_id, "mcp__notes__fail", given),
        lambda recorder, call_id, name, given: STARTS(recorder, call_id, name, {**given, "text": "another"}),
    ],
    ids=["again", "a stranger", "nobody", "another tool", "another input"],
)
async def test_a_call_that_was_not_approved_is_not_made(
    runner: SessionRunner,
    notes: McpProcess,
    monkeypatch: pytest.MonkeyPatch,
    asked: Callable[[TurnRecorder, str, str, JsonObject], bool],
) -> None:
    """The CLI requests a call by its id. A call that is not in the log, or was already made, is refused."""
    monkeypatch.setattr(TurnRecorder, "claim_start", asked)
    await runner.run_turn("Note. [[script:note]]")
    (result,) = [event for event in runner.turn_events() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert "This call was not permitted" in text_of(result)
    assert not notes.read_notes()
