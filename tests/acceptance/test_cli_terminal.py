"""The command line on a terminal: widths, colour, no control characters of the agent, and a killed server."""

import asyncio
import json
import re
from functools import partial

import pytest
from tests.acceptance.cli_cell import Cell
from tests.acceptance.terminal import Terminal

from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing

COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7])m")


@pytest.mark.parametrize("width", [60, 100, 160])
async def test_no_line_is_wider_than_the_terminal(cell: Cell, width: int) -> None:
    terminal = Terminal(width)
    assert await terminal.run(cell, "run", "[[script:wide]]") == 0
    assert max(len(line) for line in terminal.lines) <= width
    assert sum(line.count("word") for line in terminal.lines) == 60
    assert any(line.startswith("  bash  echo xxx") for line in terminal.lines)


async def test_colour_can_be_turned_off(cell: Cell) -> None:
    coloured, plain = Terminal(100), Terminal(100)
    await coloured.run(cell, "run", "[[script:wide]]")
    await plain.run(cell, "run", "[[script:wide]]", NO_COLOR="1")
    assert COLOUR.search(coloured.text)
    assert not COLOUR.search(plain.text)


async def test_an_agents_text_does_not_control_the_terminal(cell: Cell) -> None:
    terminal = Terminal(100)
    await terminal.run(cell, "run", "[[script:wide]]", NO_COLOR="1")
    assert "<U+001B>[31mred" in terminal.text
    assert "\x1b[31mred" not in terminal.text
    assert "\x07" not in terminal.text


@pytest.mark.parametrize("command", [["ls"], ["show"], ["agents", "ls"], ["config", "list"]], ids=" ".join)
async def test_tables_fit_the_terminal(cell: Cell, command: list[str]) -> None:
    terminal = Terminal(60)
    assert await terminal.run(cell, *command) == 0
    assert max(len(line) for line in terminal.lines) <= 60


async def test_a_dumb_terminal_receives_plain_lines(cell: Cell) -> None:
    terminal = Terminal(100)
    await terminal.run(cell, "run", "[[script:nap]]", TERM="dumb", NO_COLOR="1")
    assert "\x1b" not in terminal.text


@pytest.mark.requirement("O10")
async def test_the_command_line_continues_after_the_server_was_killed(cell: Cell) -> None:
    terminal = Terminal(100)
    running = asyncio.create_task(terminal.run(cell, "run", "[[script:nap]]"))
    assert await wait_until(partial(terminal.shows, "sleep 4"), 60)
    await cell.kill()
    await asyncio.sleep(1)
    await cell.start()
    assert await running == 0
    assert "connection lost" in terminal.text
    assert "Still here." in terminal.lines
    assert any("completed" in line and "2 attempts" in line for line in terminal.lines)


@pytest.mark.parametrize(
    ("typed", "code", "ending"), [("y\n", 0, "completed"), ("n\n", 0, "completed"), ("\n", 3, "needs action")]
)
async def test_the_user_at_the_terminal_is_asked(cell: Cell, typed: str, code: int, ending: str) -> None:
    bash_config = {"name": "bash", "permission_policy": {"type": "always_ask"}}
    toolset = {"type": "agent_toolset_20260401", "configs": [bash_config]}
    async with cell.client() as client:
        agent = await client.agents.create(name="careful", model="anthropic:scripted", tools=[toolset])
    terminal = Terminal(100)
    watched = asyncio.create_task(terminal.run(cell, "run", "--agent", agent.id, "Say hello"))
    assert await wait_until(partial(terminal.shows, "Allow it?"), 60)
    terminal.type(typed)
    assert await watched == code
    assert ending in terminal.text
    assert "needs approval" in terminal.text
    assert "command: echo hello" in terminal.text


async def test_approve_shows_the_whole_call_and_asks_for_confirmation(cell: Cell) -> None:
    bash_config = {"name": "bash", "permission_policy": {"type": "always_ask"}}
    toolset = {"type": "agent_toolset_20260401", "configs": [bash_config]}
    async with cell.client() as client:
        agent = await client.agents.create(name="careful", model="anthropic:scripted", tools=[toolset])
        started = await cell.run("run", "--agent", agent.id, "--output", "json", "Say hello")
        pending = json.loads(started.out)["pending"][0]
        for typed, code, status in (("n\n", 3, "pending"), ("y\n", 0, "allowed")):
            terminal = Terminal(60)
            asked = asyncio.create_task(terminal.run(cell, "approve", pending, NO_COLOR="1"))
            assert await wait_until(partial(terminal.shows, "Allow it?"), 60)
            assert "  command: echo hello\r\n" in terminal.text
            assert (await client.approvals.retrieve(pending)).status == "pending"
            terminal.type(typed)
            assert await asked == code
            assert (await client.approvals.retrieve(pending)).status == status
