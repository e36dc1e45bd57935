"""The web tools inside a turn: offered when enabled, logged like other tools, ended by an interrupt."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from footplate.domain.ports.harness import WebAccess
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.native.web.web_tools import WebTools

from .doubles import World, call, make_model, text_of
from .web_server import PageServer, ok, silent

pytestmark = pytest.mark.timing


@pytest.fixture
async def pages() -> AsyncIterator[PageServer]:
    async with PageServer({"/": ok(b"hello from the page"), "/silent": silent}) as server:
        yield server


@pytest.mark.parametrize(
    "enabled", [(), ("bash",), ("web_fetch",), ("bash", "web_search"), ("web_fetch", "web_search")]
)
async def test_only_enabled_tools_are_offered(world: World, enabled: tuple[str, ...]) -> None:
    offered: list[str] = []

    async def stream(_: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        offered.extend(tool.name for tool in info.function_tools)
        yield "Hi"

    world.config = replace(world.config, tools=enabled, custom_tools=())
    await world.run(FunctionModel(stream_function=stream))
    assert sorted(offered) == sorted(enabled)


async def test_a_page_is_read_once_and_its_text_logged(world: World, pages: PageServer) -> None:
    world.web = WebTools(WebAccess(allow=("127.0.0.1",)))
    world.config = replace(world.config, tools=("web_fetch",))
    fetch = call("web_fetch", f'{{"url": "{pages.url()}"}}', "call_1")
    model, _ = make_model(world, lambda number: [fetch] if number == 0 else ["Read."])
    assert (await world.run(model)).text == "Read."
    (result,) = world.log.of_type("agent.tool_result")
    assert text_of(result).endswith("hello from the page")
    assert not result.body["is_error"]
    assert len(pages.seen) == 1


async def test_a_tool_that_is_not_enabled_does_not_run(world: World, pages: PageServer) -> None:
    world.web = WebTools(WebAccess(allow=("127.0.0.1",)))
    fetch = call("web_fetch", f'{{"url": "{pages.url()}"}}', "call_1")
    model, _ = make_model(world, lambda number: [fetch] if number == 0 else ["No."])
    await world.run(model)
    (result,) = world.log.of_type("agent.tool_result")
    assert text_of(result).startswith("The tool 'web_fetch' does not exist.")
    assert not pages.seen


async def test_an_interrupt_ends_a_running_fetch(world: World, pages: PageServer) -> None:
    world.web = WebTools(WebAccess(allow=("127.0.0.1",)))
    world.config = replace(world.config, tools=("web_fetch",))
    fetch = call("web_fetch", f'{{"url": "{pages.url("/silent")}"}}', "call_1")
    model, _ = make_model(world, lambda _: [fetch])
    running = asyncio.create_task(world.run(model))
    await asyncio.wait_for(pages.arrived.wait(), 20)
    begun = time.monotonic()
    world.interrupt.set()
    assert (await running).status is TurnStatus.INTERRUPTED
    await asyncio.wait_for(pages.disconnected.wait(), 20)
    assert time.monotonic() - begun < 20
    (result,) = world.log.of_type("agent.tool_result")
    assert "The user interrupted this call" in text_of(result)
