"""Server-side tools with the native harness: events, the gate, at most one call, and the context that they receive."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from bench.support.mcp_server.server_process import McpProcess

from footplate.domain.agents.mcp_servers import McpServer
from footplate.domain.organisations.principals import Author
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.ports.harness import McpAccess, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.requests.model_resolver import AnyModel
from footplate.harness.recovery_text import UNKNOWN
from footplate.harness.tool_calls import server_toolsets
from footplate.tools import ENTRY_POINT_GROUP, ToolContext, Toolset

from .doubles import World, call, make_model, text_of

pytestmark = pytest.mark.timing

toolset = Toolset()
calls: list[ToolContext] = []
CONTEXT = {"ticket": "F-6", "directory": "/srv/work", "base_commits": {}}


@toolset.tool
async def note(line: str, seen: ToolContext) -> str:
    """Write a line down."""
    calls.append(seen)
    if line == "long":
        await asyncio.sleep(60)
    return line * 40_000 if line == "x" else f"Noted: {line}"


@toolset.tool
def erase() -> str:
    """Erase all lines."""
    raise AssertionError("must not be called")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = EntryPoint("demo", f"{__name__}:toolset", ENTRY_POINT_GROUP)
    monkeypatch.setattr(server_toolsets, "entry_points", lambda name, **_: [point] if name == "demo" else [])
    calls.clear()
    yield
    server_toolsets._load_toolset.cache_clear()


def with_toolset(world: World, name: str = "demo", **fields: Any) -> None:
    server = McpServer(name=name, url="", is_server_toolset=True, **fields)
    world.config = replace(world.config, tools=(), custom_tools=(), mcp_servers=(server,))


async def run(world: World, model: AnyModel, access: McpAccess | None = None, **fields: Any) -> TurnOutcome:
    turn: TurnContext = replace(world.context(), **fields)
    return await NativeHarness(lambda *_: model, world.web, access).run(turn)


def call_once(world: World, tool: str, arguments: str) -> AnyModel:
    model, _ = make_model(world, lambda number: [call(tool, arguments, "call_1")] if number == 0 else ["Done."])
    return model


def only_result(world: World) -> tuple[str, bool]:
    (result,) = world.log.of_type(ev.AGENT_MCP_TOOL_RESULT)
    return text_of(result), bool(result.body["is_error"])


@pytest.mark.requirement("R1")
@pytest.mark.requirement("F6")
async def test_a_tool_is_called_with_the_context_of_its_call(world: World) -> None:
    with_toolset(world, settings={"shelf": 3})
    model = call_once(world, "mcp__demo__note", '{"line": "one"}')
    outcome = await run(world, model, context=CONTEXT, author=Author("memb_1", "Ann", "person"))
    assert outcome.text == "Done."
    (use,) = world.log.of_type(ev.AGENT_MCP_TOOL_USE)
    assert (use.body["mcp_server_name"], use.body["name"], use.body["input"]) == ("demo", "note", {"line": "one"})
    assert only_result(world) == ("Noted: one", False)
    (seen,) = calls
    assert (seen.organisation, seen.session_id, seen.turn_id, seen.call_id) == ("org_1", "sesn_1", "turn_1", use.id)
    assert seen.principal == Author("memb_1", "Ann", "person")
    assert (seen.context, seen.settings) == ({"ticket": "F-6"}, {"shelf": 3})
    assert seen.working_directory == world.environment.root


async def test_a_long_result_is_truncated(world: World) -> None:
    with_toolset(world)
    await run(world, call_once(world, "mcp__demo__note", '{"line": "x"}'))
    text, is_error = only_result(world)
    assert not is_error
    assert 30_000 < len(text) < 30_200


async def test_a_denied_call_is_not_made(world: World) -> None:
    with_toolset(world)
    world.gate.outcomes = {"mcp__demo__erase": PermissionOutcome.DENY}
    await run(world, call_once(world, "mcp__demo__erase", "{}"))
    assert only_result(world)[1]


async def test_a_tool_that_is_not_enabled_is_not_called(world: World) -> None:
    with_toolset(world, tools={"erase": False})
    await run(world, call_once(world, "mcp__demo__erase", "{}"))
    text, is_error = only_result(world)
    assert is_error
    assert text == "The tool 'mcp__demo__erase' does not exist. Available MCP tools: mcp__demo__note."


async def test_an_interrupt_ends_a_call(world: World) -> None:
    with_toolset(world)
    running = asyncio.create_task(run(world, call_once(world, "mcp__demo__note", '{"line": "long"}')))
    while not calls:  # noqa: ASYNC110 - set by another thread
        await asyncio.sleep(0.01)
    world.interrupt.set()
    assert (await asyncio.wait_for(running, 10)).status is TurnStatus.INTERRUPTED
    assert calls[0].cancelled.is_set()


@pytest.mark.requirement("R1")
async def test_a_call_in_flight_is_never_made_again(world: World) -> None:
    with_toolset(world)
    model = call_once(world, "mcp__demo__note", '{"line": "long"}')
    running = asyncio.create_task(run(world, model))
    while not calls:  # noqa: ASYNC110 - set by another thread
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (await run(world, model)).text == "Done."
    assert only_result(world) == (UNKNOWN, True)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("other", {}, "the package that offers it is not installed on this worker. Install the package"),
        (
            "demo",
            {"tools": {"erse": False}},
            "the agent configures 'erse', which is not one of its tools: erase, note.",
        ),
    ],
)
async def test_a_toolset_that_cannot_be_used_is_reported_and_not_called(
    world: World, name: str, fields: dict[str, Any], message: str
) -> None:
    with_toolset(world, name, **fields)
    await run(world, call_once(world, f"mcp__{name}__note", '{"line": "one"}'))
    (error,) = world.log.of_type(ev.SESSION_ERROR)
    assert f"The toolset '{name}' cannot be used: {message}" in str(error.body["error"])
    text, is_error = only_result(world)
    assert is_error
    assert text.startswith(f"The call was not made, because the toolset '{name}' cannot be used: {message}")
    assert not calls


@pytest.mark.requirement("F6")
async def test_an_mcp_server_receives_the_context(world: World, notes: McpProcess) -> None:
    access = McpAccess(allow=("127.0.0.1",))
    world.config = replace(world.config, tools=(), mcp_servers=(McpServer(name="notes", url=notes.url),))
    await run(world, call_once(world, "mcp__notes__read_meta", "{}"), access, context=CONTEXT)
    assert only_result(world) == ('{"footplate/context": {"ticket": "F-6"}}', False)
    world.next_turn("turn_2", "Again")
    model, _ = make_model(
        world, lambda number: [call("mcp__notes__read_meta", "{}", "c2")] if number == 2 else ["Done."]
    )
    await run(world, model, access)
    assert text_of(world.log.of_type(ev.AGENT_MCP_TOOL_RESULT)[-1]) == "{}"


@pytest.mark.requirement("F6")
async def test_the_client_receives_the_context_with_the_call_of_a_custom_tool(world: World) -> None:
    await run(world, call_once(world, "ask", '{"q": 1}'), context=CONTEXT)
    (use,) = world.log.of_type(ev.AGENT_CUSTOM_TOOL_USE)
    assert use.body["context"] == {"ticket": "F-6"}
