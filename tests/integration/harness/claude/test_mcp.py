"""MCP servers with the real CLI: the worker makes each call, once, and only one that is in the log."""

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
async def desk(tmp_path: Path, notes: McpProcess) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        desk = Desk(model, tmp_path, servers=(McpServer(name="notes", url=notes.url),))
        desk.harness = ClaudeHarness(ALLOWED)
        yield desk
        await desk.close()


async def until_noted(notes: McpProcess) -> None:
    async with asyncio.timeout(20):
        while not notes.noted():  # noqa: ASYNC110 - another process's file
            await asyncio.sleep(0.02)


async def test_a_tool_is_called_once_and_logged_with_its_server(desk: Desk, notes: McpProcess) -> None:
    assert (await desk.turn("Note. [[script:note]]")).text == "Noted."
    assert [event.type for event in desk.told()] == [
        ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END, ev.AGENT_MCP_TOOL_USE, ev.AGENT_MCP_TOOL_RESULT,
        ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    _, _, use, result, *_ = desk.told()
    assert (use.body["mcp_server_name"], use.body["name"], use.body["input"]) == ("notes", "note", {"line": "one"})
    assert (result.body["mcp_tool_use_id"], texts(result), result.body["is_error"]) == (use.id, "Noted: one", False)
    assert notes.noted() == ["one"]


async def test_results_of_all_kinds(desk: Desk) -> None:
    await desk.turn("All. [[script:all]]")
    results = [event.body for event in desk.told() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert [body["is_error"] for body in results] == [False, True, False, False, True]
    kinds = [[block["type"] for block in body["content"]] for body in results]  # type: ignore[index,union-attr,call-overload]
    assert kinds[0][0] == "image"  # and the CLI's own words about it
    assert "it never works" in str(results[1])
    assert "characters omitted" in str(results[3])
    names = [event.body["name"] for event in desk.told() if event.type == ev.AGENT_MCP_TOOL_USE]
    assert names == ["picture", "fail", "odd.name", "large", "gone"]


async def test_a_call_in_flight_is_never_made_again(desk: Desk, notes: McpProcess) -> None:
    desk.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(desk.try_it("one"))
    await until_noted(notes)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert (await desk.try_it("two")).text == "After it."
    (result,) = [event for event in desk.told() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert (texts(result), result.body["is_error"]) == (UNKNOWN, True)
    assert notes.noted() == ["slow"]


async def test_an_interrupt_ends_a_call(desk: Desk, notes: McpProcess) -> None:
    desk.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(desk.try_it())
    await until_noted(notes)
    desk.interrupt.set()
    assert (await asyncio.wait_for(running, 30)).status is TurnStatus.INTERRUPTED
    assert (await desk.turn("Note. [[script:note]]")).text == "Noted."


async def test_a_connected_cli_goes_on_with_the_servers(desk: Desk, notes: McpProcess) -> None:
    desk.keeps = True
    await desk.turn("Note. [[script:note]]")
    kept = desk.kept
    assert isinstance(kept, Connection)
    await desk.turn("Again. [[script:note]]")
    assert desk.kept is kept
    assert notes.noted() == ["one", "one"]


async def test_no_cli_is_connected_ahead_for_an_agent_with_servers(desk: Desk) -> None:
    await desk.prepare()
    assert desk.kept is None


async def test_nothing_inside_knows_the_way_to_a_server(desk: Desk, notes: McpProcess) -> None:
    await desk.turn("Peek. [[script:peek]]")
    (result,) = [event for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT]
    assert notes.url not in texts(result)


async def test_a_server_that_may_not_be_reached_is_told_and_asked_again(desk: Desk, notes: McpProcess) -> None:
    desk.keeps, desk.harness = True, ClaudeHarness()
    await desk.turn("Note. [[script:note]]")
    assert [event.type for event in desk.told()][:2] == [ev.SESSION_ERROR, ev.MODEL_REQUEST_START]
    assert "FOOTPLATE_MCP_ALLOW" in str(desk.told()[0].body)
    assert desk.kept is None
    assert not notes.noted()
    desk.harness = ClaudeHarness(ALLOWED)
    await desk.turn("Again. [[script:note]]")
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
    desk: Desk,
    notes: McpProcess,
    monkeypatch: pytest.MonkeyPatch,
    asked: Callable[[Recorder, str, str, JsonObject], bool],
) -> None:
    """The CLI asks for a call by the model's id of it: one that is not in the log, or was made before, is refused."""
    monkeypatch.setattr(Recorder, "starts", asked)
    await desk.turn("Note. [[script:note]]")
    (result,) = [event for event in desk.told() if event.type == ev.AGENT_MCP_TOOL_RESULT]
    assert "This call was not permitted" in texts(result)
    assert not notes.noted()
