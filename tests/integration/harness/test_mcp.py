"""MCP servers with the native harness: a real server's tools in a turn, refused addresses, and no call made twice."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from bench.support.mcp_server.server_process import McpProcess
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from footplate.domain.agents import mcp_servers
from footplate.domain.agents.agents_and_config import Subagent
from footplate.domain.agents.mcp_servers import McpServer
from footplate.domain.ports.harness import McpAccess
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.mcp.tool_client import McpServers
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.requests.model_resolver import AnyModel
from footplate.harness.recovery_text import UNKNOWN

from .doubles import Crash, World, call, make_model, text_of
from .web_server import PageServer, ok

pytestmark = pytest.mark.timing

LOOPBACK = McpAccess(allow=("127.0.0.1",), connect_seconds=5.0, call_seconds=10.0)


def with_server(world: World, url: str, **fields: Any) -> None:
    server = McpServer(name="notes", url=url, **fields)
    world.config = replace(world.config, tools=(), custom_tools=(), mcp_servers=(server,))


async def run(world: World, model: AnyModel, access: McpAccess = LOOPBACK) -> Any:
    return await NativeHarness(lambda *_: model, world.web, access).run(world.context())


def call_note(line: str, seconds: float = 0.0) -> Any:
    return call("mcp__notes__note", f'{{"line": "{line}", "seconds": {seconds}}}', "call_1")


async def list_offered_tools(world: World, access: McpAccess = LOOPBACK) -> list[str]:
    found: list[str] = []

    async def stream(_: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        found.extend(tool.name for tool in info.function_tools)
        yield "Hi"

    await run(world, FunctionModel(stream_function=stream), access)
    return found


async def test_a_tool_is_called_once_and_logged_with_its_server(world: World, notes: McpProcess) -> None:
    with_server(world, notes.url)
    model, _ = make_model(world, lambda number: [call_note("one")] if number == 0 else ["Noted."])
    assert (await run(world, model)).text == "Noted."
    (use,) = world.log.of_type(ev.AGENT_MCP_TOOL_USE)
    (result,) = world.log.of_type(ev.AGENT_MCP_TOOL_RESULT)
    assert (use.body["mcp_server_name"], use.body["name"]) == ("notes", "note")
    assert use.body["input"] == {"line": "one", "seconds": 0.0}
    assert (result.body["mcp_tool_use_id"], result.body["is_error"]) == (use.id, False)
    assert text_of(result) == "Noted: one"
    assert notes.read_notes() == ["one"]
    assert not world.log.of_type(ev.AGENT_TOOL_USE)


async def test_a_disabled_tool_is_neither_offered_nor_run(world: World, notes: McpProcess) -> None:
    with_server(world, notes.url, enabled=False, tools={"picture": True})
    assert await list_offered_tools(world) == ["mcp__notes__picture"]
    model, _ = make_model(world, lambda number: [call_note("no")] if number == 1 else ["No."])
    world.next_turn("turn_2", "Again")
    await run(world, model)
    assert not notes.read_notes()


async def test_all_kinds_of_results(world: World, notes: McpProcess) -> None:
    with_server(world, notes.url)
    names = ["picture", "fail", "odd_name", "large"]
    assert {f"mcp__notes__{name}" for name in names} < {*await list_offered_tools(world)}
    servers = McpServers(world.config, LOOPBACK)
    try:
        assert await servers.list_tools(asyncio.Event()) == []
        picture = await servers.call_tool("mcp__notes__picture", {})
        assert picture.content[0]["type"] == "image"  # pyrefly: ignore[bad-index, unsupported-operation]
        failed = await servers.call_tool("mcp__notes__fail", {})
        assert failed.is_error
        assert "it never works" in str(failed.content)
        assert servers.names.resolve("mcp__notes__odd_name") == ("notes", "odd.name")
        assert (await servers.call_tool("mcp__notes__odd_name", {})).content == [ev.text_block("odd")]
        large = await servers.call_tool("mcp__notes__large", {"characters": 100_000})
        assert 30_000 < len(str(large.content)) < 31_000
        assert "characters omitted" in str(large.content)
    finally:
        await servers.aclose()


async def test_a_huge_response_is_not_read(world: World, notes: McpProcess) -> None:
    with_server(world, notes.url)
    servers = McpServers(world.config, LOOPBACK)
    try:
        await servers.list_tools(asyncio.Event())
        huge = await servers.call_tool("mcp__notes__large", {"characters": 20_000_000})
        assert huge.is_error
        assert len(str(huge.content)) < 1000
        assert (await servers.call_tool("mcp__notes__note", {"line": "after"})).content == [
            ev.text_block("Noted: after")
        ]
    finally:
        await servers.aclose()


@pytest.mark.parametrize("moment", ["after_intent", "in_tool"])
async def test_a_call_in_flight_is_never_made_again(world: World, notes: McpProcess, moment: str) -> None:
    with_server(world, notes.url)
    model, _ = make_model(world, lambda number: [call_note("once", 0.3)] if number == 0 else ["Well."])
    world.log.crash_at, world.log.crash_after_commit = (3 if moment == "after_intent" else 4), moment == "after_intent"
    with pytest.raises(Crash):
        await run(world, model)
    world.log.crash_at = None
    assert (await run(world, model)).text == "Well."
    (result,) = world.log.of_type(ev.AGENT_MCP_TOOL_RESULT)
    assert (text_of(result), result.body["is_error"]) == (UNKNOWN, True)
    assert notes.read_notes() == (["once"] if moment == "in_tool" else [])


async def test_the_outcome_of_a_call_is_unknown_if_its_server_dies(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with McpProcess(tmp_path_factory.mktemp("mortal") / "notes") as notes:
        with_server(world, notes.url)
        model, _ = make_model(world, lambda number: [call_note("once", 30)] if number == 0 else ["Well."])
        running = asyncio.create_task(run(world, model))
        async with asyncio.timeout(10):
            while not notes.read_notes():  # noqa: ASYNC110 - another process's file
                await asyncio.sleep(0.02)
        notes.kill()
        assert (await running).text == "Well."
    (result,) = world.log.of_type(ev.AGENT_MCP_TOOL_RESULT)
    assert "outcome of this call is unknown" in text_of(result)
    assert result.body["is_error"]


async def test_an_interrupt_ends_a_call(world: World, notes: McpProcess) -> None:
    with_server(world, notes.url)
    model, _ = make_model(world, lambda number: [call_note("once", 200)] if number == 0 else ["Well."])
    running = asyncio.create_task(run(world, model))
    async with asyncio.timeout(10):
        while not notes.read_notes():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)
    world.interrupt.set()
    assert (await asyncio.wait_for(running, 30)).status is TurnStatus.INTERRUPTED
    assert "The user interrupted this call" in text_of(world.log.of_type(ev.AGENT_MCP_TOOL_RESULT)[0])


def list_errors(world: World) -> list[Event]:
    return world.log.of_type(ev.SESSION_ERROR)


async def test_an_internal_address_is_refused(world: World) -> None:
    async with PageServer({"/mcp": ok(b"secret")}) as pages:
        for host in ("127.0.0.1", "localhost"):
            world.log.events.clear()
            with_server(world, pages.url("/mcp").replace("127.0.0.1", host))
            assert await list_offered_tools(world, McpAccess()) == []
            (error,) = [event.body["error"] for event in list_errors(world)]
            assert error["type"] == "mcp_connection_failed_error"  # pyrefly: ignore[bad-index, unsupported-operation]
            assert "FOOTPLATE_MCP_ALLOW" in str(error)
            assert not pages.seen
            world.next_turn(f"turn_{host}", "Again")


@pytest.mark.parametrize(
    ("networking", "reached"),
    [
        ({"type": "unrestricted"}, True),
        ({"type": "limited", "allowed_hosts": [], "allow_mcp_servers": False}, False),
        ({"type": "limited", "allowed_hosts": [], "allow_mcp_servers": True}, True),
        ({"type": "limited", "allowed_hosts": ["example.com"], "allow_mcp_servers": False}, False),
        ({"type": "limited", "allowed_hosts": ["127.0.0.1:{port}"], "allow_mcp_servers": False}, True),
    ],
)
async def test_the_environment_decides_whether_servers_are_reachable(
    world: World, notes: McpProcess, networking: Any, *, reached: bool
) -> None:
    with_server(world, notes.url)
    port = notes.url.rpartition(":")[2].partition("/")[0]
    hosts = [host.format(port=port) for host in networking.get("allowed_hosts", [])]
    world.config = replace(world.config, environment={"networking": {**networking, "allowed_hosts": hosts}})
    found = await list_offered_tools(world)
    assert bool(found) is reached
    assert bool(list_errors(world)) is not reached


async def test_a_server_that_needs_credentials_or_is_no_mcp_server(world: World) -> None:
    async with PageServer(
        {"/mcp": ok(b"[]", "application/json", status="401 Unauthorized"), "/page": ok(b"<html>", "text/html")}
    ) as pages:
        with_server(world, pages.url("/mcp"))
        assert await list_offered_tools(world) == []
        with_server(world, pages.url("/page"))
        world.next_turn("turn_2", "Again")
        assert await list_offered_tools(world) == []
    kinds = [event.body["error"]["type"] for event in list_errors(world)]  # pyrefly: ignore[bad-index, unsupported-operation]
    assert kinds == ["mcp_authentication_failed_error", "mcp_connection_failed_error"]


def test_tool_names_are_mapped_to_their_servers() -> None:
    servers = [McpServer(name="a", url="u"), McpServer(name="a__b", url="u"), McpServer(name="my server", url="u")]
    names = mcp_servers.ToolNames(servers)
    assert names.resolve("mcp__a__b__c") == ("a__b", "c")
    assert names.resolve("mcp__a__c") == ("a", "c")
    assert names.resolve("mcp__my_server__do") == ("my server", "do")
    assert [names.resolve(name) for name in ("bash", "mcp__other__x")] == [None, None]
    names.add([("mcp__a__b__c", ("a", "b__c"))])
    assert names.resolve("mcp__a__b__c") == ("a", "b__c")


@pytest.mark.requirement("K10")
async def test_a_subagent_has_its_own_servers(world: World, notes: McpProcess) -> None:
    clerk = Subagent(
        name="clerk",
        description="",
        model="m",
        system="You note.",
        mcp_servers=(McpServer(name="notes", url=notes.url),),
    )
    world.config = replace(world.config, tools=(), custom_tools=(), subagents=(clerk,))
    offered: dict[str, list[str]] = {}

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        name = str(info.instructions)
        offered[name] = [tool.name for tool in info.function_tools]
        if len(messages) > 1:
            yield "Noted."
        elif name == clerk.system:
            yield call_note("one")
        else:
            yield call("Agent", '{"prompt": "Go.", "subagent_type": "clerk"}', "call_1")

    assert (await run(world, FunctionModel(stream_function=stream))).text == "Noted."
    assert offered["Be brief."] == ["Agent"]
    assert "mcp__notes__note" in offered[clerk.system]
    assert notes.read_notes() == ["one"]
    (use,) = world.log.of_type(ev.AGENT_MCP_TOOL_USE)
    (thread,) = world.log.of_type(threads.CREATED)
    assert use.body[threads.THREAD_ID] == thread.body[threads.THREAD_ID]
