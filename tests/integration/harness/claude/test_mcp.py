"""MCP servers with the real CLI: the worker makes each call once, and only calls that are in the log."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from bench.support.mcp_server.process import McpProcess
from tests.integration.harness.claude.desk import Desk
from tests.integration.harness.twins import texts

from footplate.domain import events as ev
from footplate.domain.json import JsonObject
from footplate.domain.mcp import McpServer
from footplate.domain.ports import McpAccess
from footplate.domain.turns import TurnStatus
from footplate.harness.claude.connection import Connection
from footplate.harness.claude.harness import ClaudeHarness
from footplate.harness.claude.recorder import Recorder
from footplate.harness.leftovers import UNKNOWN
from footplate.testing import ScriptedModel, replies, text, tool

pytestmark = pytest.mark.timing

ALLOWED = McpAccess(allow=("127.0.0.1",))
NOTE = "mcp__notes__note"
STARTS = Recorder.starts
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
async def runner(tmp_path: Path, notes: McpProcess) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = Desk(model, tmp_path, servers=(McpServer(name="notes", url=notes.url),))
        runner.harness = ClaudeHarness(ALLOWED)
        yield runner
        await runner.close()


async def until_noted(notes: McpProcess) -> None:
    async with asyncio.timeout(20):
        while not notes.noted():  # noqa: ASYNC110 - another process's file
            await asyncio.sleep(0.02)


async def test_a_tool_is_called_once_and_logged_with_its_server(runner: Desk, notes: McpProcess) -> None:
    assert (await runner.turn("Note. [[script:note]]")).text == "Noted."
    assert [event.type for event in runner.told()] == [
        ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END, ev.AGENT_MCP_TOOL_USE, ev.AGENT_MCP_TOOL_RESULT,
        ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    _, _, use, result, *_ = runner.told()
    assert (use.body["mcp_server_name"], use.body["name"], use.body["input"]) == ("notes", "note", {"line": "one"})
    assert (result.body["mcp_tool_use_id"], texts(result), result.body["is_error"]) == (use.id, "Noted: one", False)
    assert notes.noted() == ["one"]


async def test_results_of_all_kinds(runner: Desk) -> None:
    await runner.turn("All. [[script:all]]")
    results = [event.body for event in runner.told() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert [body["is_error"] for body in results] == [False, True, False, False, True]
    kinds = [[block["type"] for block in body["content"]] for body in results]  # type: ignore[index,union-attr,call-overload]
    assert kinds[0][0] == "image"  # followed by the CLI's own text about it
    assert "it never works" in str(results[1])
    assert "characters omitted" in str(results[3])
    names = [event.body["name"] for event in runner.told() if event.type == ev.AGENT_MCP_TOOL_USE]
    assert names == ["picture", "fail", "odd.name", "large", "gone"]


async def test_a_call_in_flight_is_never_made_again(runner: Desk, notes: McpProcess) -> None:
    runner.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.try_it("one"))
    await until_noted(notes)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert (await runner.try_it("two")).text == "After it."
    (result,) = [event for event in runner.told() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert (texts(result), result.body["is_error"]) == (UNKNOWN, True)
    assert notes.noted() == ["slow"]


async def test_an_interrupt_ends_a_call(runner: Desk, notes: McpProcess) -> None:
    runner.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.try_it())
    await until_noted(notes)
    runner.interrupt.set()
    assert (await asyncio.wait_for(running, 30)).status is TurnStatus.INTERRUPTED
    assert (await runner.turn("Note. [[script:note]]")).text == "Noted."


async def test_a_connected_cli_goes_on_with_the_servers(runner: Desk, notes: McpProcess) -> None:
    runner.keeps = True
    await runner.turn("Note. [[script:note]]")
    kept = runner.kept
    assert isinstance(kept, Connection)
    await runner.turn("Again. [[script:note]]")
    assert runner.kept is kept
    assert notes.noted() == ["one", "one"]


async def test_no_cli_is_connected_ahead_for_an_agent_with_servers(runner: Desk) -> None:
    await runner.prepare()
    assert runner.kept is None


async def test_nothing_inside_knows_the_way_to_a_server(runner: Desk, notes: McpProcess) -> None:
    await runner.turn("Peek. [[script:peek]]")
    (result,) = [event for event in runner.told() if event.type == ev.AGENT_TOOL_RESULT]
    assert notes.url not in texts(result)


async def test_a_server_that_may_not_be_reached_is_told_and_asked_again(runner: Desk, notes: McpProcess) -> None:
    runner.keeps, runner.harness = True, ClaudeHarness()
    await runner.turn("Note. [[script:note]]")
    assert [event.type for event in runner.told()][:2] == [ev.SESSION_ERROR, ev.MODEL_REQUEST_START]
    assert "FOOTPLATE_MCP_ALLOW" in str(runner.told()[0].body)
    assert runner.kept is None
    assert not notes.noted()
    runner.harness = ClaudeHarness(ALLOWED)
    await runner.turn("Again. [[script:note]]")
    assert notes.noted() == ["one"]


def _twice(recorder: Recorder, call_id: str, name: str, given: JsonObject) -> bool:
    assert STARTS(recorder, call_id, name, given)
    return STARTS(recorder, call_id, name, given)


@pytest.mark.parametrize(
    "asked",
    [
        _twice,
        lambda recorder, _, name, given: STARTS(recorder, "toolu_stranger", name, given),
        lambda recorder, _, name, given: STARTS(recorder, "", name, given),
        lambda recorder, call_id, _, given: STARTS(recorder, call_id, "mcp__notes__fail", given),
        lambda recorder, call_id, name, given: STARTS(recorder, call_id, name, {**given, "text": "another"}),
    ],
    ids=["again", "a stranger", "nobody", "another tool", "another input"],
)
async def test_who_was_not_let_through_gets_nothing_done(
    runner: Desk,
    notes: McpProcess,
    monkeypatch: pytest.MonkeyPatch,
    asked: Callable[[Recorder, str, str, JsonObject], bool],
) -> None:
    """The CLI requests a call by its id. A call that is not in the log, or was already made, is refused."""
    monkeypatch.setattr(Recorder, "starts", asked)
    await runner.turn("Note. [[script:note]]")
    (result,) = [event for event in runner.told() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert "This call was not permitted" in texts(result)
    assert not notes.noted()
