"""The command line on a terminal: widths, colour, no control characters of the agent, and a killed server."""

import asyncio
import json
import os
import re
import signal
from functools import partial
from pathlib import Path

import pytest
from tests.acceptance.cli.cli_cell import Cell
from tests.acceptance.cli.terminal import Terminal

from footplate.client import AsyncFootplate
from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing

TOOLSET = {
    "type": "agent_toolset_20260401",
    "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}],
}
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7])m")


async def _create_careful_agent(client: AsyncFootplate) -> str:
    return (await client.agents.create(name="careful", model="anthropic:scripted", tools=[TOOLSET])).id


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


@pytest.mark.requirement("O3")
async def test_an_agent_is_watched_live_and_read_only(cell: Cell, client: AsyncFootplate) -> None:
    """Two people see the text of a step's agent while it is written. Neither keys nor Ctrl-C reach the agent."""
    session_id = json.loads((await cell.run("run", "--output", "json", "Say hello")).out)["session_id"]
    first, second = Terminal(100), Terminal(100)
    watching = [
        asyncio.create_task(terminal.run(cell, "logs", "--follow", session_id, NO_COLOR="1"))
        for terminal in (first, second)
    ]
    for terminal in (first, second):
        assert await wait_until(partial(terminal.shows, "Done."), 60)
    (step,) = await client.steps.add(session_id, [{"kind": "prompt", "content": "[[script:story]]"}])
    for terminal in (first, second):
        assert await wait_until(partial(terminal.shows, "Once upon"), 60)
    assert not await second.shows("The end.")
    assert (await client.steps.retrieve(session_id, step.id)).state == "running"
    second.type("Stop.\n")
    first.process.send_signal(signal.SIGINT)
    assert await watching[0] == 130
    assert await wait_until(partial(second.shows, "The end."), 60)
    second.process.send_signal(signal.SIGINT)
    assert await watching[1] == 130
    log = [event async for event in client.events.list(session_id)]
    assert [event.text for event in log if event.type == "user.message"] == ["Say hello", "[[script:story]]"]
    assert "user.interrupt" not in [event.type for event in log]
    assert (await client.steps.retrieve(session_id, step.id)).state == "completed"


@pytest.mark.parametrize(
    ("typed", "code", "ending"), [("y\n", 0, "completed"), ("n\n", 0, "completed"), ("\n", 3, "needs action")]
)
async def test_the_user_at_the_terminal_is_asked(
    cell: Cell, client: AsyncFootplate, typed: str, code: int, ending: str
) -> None:
    agent = await _create_careful_agent(client)
    terminal = Terminal(100)
    watched = asyncio.create_task(terminal.run(cell, "run", "--agent", agent, "Say hello"))
    assert await wait_until(partial(terminal.shows, "Allow it?"), 60)
    terminal.type(typed)
    assert await watched == code
    assert ending in terminal.text
    assert "needs approval" in terminal.text
    assert "command: echo hello" in terminal.text


async def test_approve_shows_the_whole_call_and_asks_for_confirmation(cell: Cell, client: AsyncFootplate) -> None:
    agent = await _create_careful_agent(client)
    started = await cell.run("run", "--agent", agent, "--output", "json", "Say hello")
    pending = json.loads(started.out)["pending"][0]
    approval = await client.approvals.retrieve(pending)
    unasked = await cell.run("approve", pending)
    assert (unasked.code, "use --yes" in unasked.err) == (2, True)
    assert (await client.approvals.retrieve(pending)).status == "pending"
    for typed, code, status in (("n\n", 3, "pending"), ("y\n", 0, "allowed")):
        terminal = Terminal(60)
        asked = asyncio.create_task(terminal.run(cell, "approve", pending, NO_COLOR="1"))
        assert await wait_until(partial(terminal.shows, "Allow it?"), 60)
        assert "  command: echo hello\r\n" in terminal.text
        assert (await client.approvals.retrieve(pending)).status == "pending"
        terminal.type(typed)
        assert await asked == code
        assert f"Session {approval.session_id} (Say hello)" in terminal.text
        assert (await client.approvals.retrieve(pending)).status == status


async def test_a_decision_from_another_client_closes_the_prompt_of_a_parked_turn(
    cell: Cell, client: AsyncFootplate
) -> None:
    """The late answer is a note, and the exit code is that of the turn."""
    agent = await _create_careful_agent(client)
    terminal = Terminal(100)
    watched = asyncio.create_task(terminal.run(cell, "run", "--agent", agent, "Say hello", NO_COLOR="1"))
    assert await wait_until(partial(terminal.shows, "Allow it?"), 60)
    *_, approval = [one async for one in client.approvals.list()]  # earlier tests may leave pending calls
    terminal.type("n")
    await client.approvals.allow(approval, updated_input={"command": "echo edited"})
    assert await watched == 0
    by = " by first key"
    assert f"  bash  echo edited  edited and allowed{by}" in terminal.lines
    assert any(re.fullmatch(rf"  bash  echo edited  ok 0\.\ds, edited{by}", line) for line in terminal.lines)
    assert "attempts" not in terminal.text
    logged = await cell.run("logs", approval.session_id, "--tail", "5")
    assert "  bash  echo edited  ok 0." in logged.out
    assert "echo hello" not in logged.out


async def test_a_call_is_edited_and_allowed_for_the_session_at_the_terminal(
    cell: Cell, client: AsyncFootplate, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/hello/edited/ "$1"\n')
    editor.chmod(0o755)
    agent = await client.agents.create(
        name="ruled",
        model="anthropic:scripted",
        tools=[{"type": "agent_toolset_20260401"}],
        permissions={"allow": ["Read"]},
    )
    terminal = Terminal(100)
    command = ("run", "--directory", str(tmp_path), "--agent", agent.id, "[[script:touch]]")
    watched = asyncio.create_task(terminal.run(cell, *command, NO_COLOR="1", EDITOR=str(editor)))
    for number, typed in enumerate(("e\n", "y\n", "s\n"), start=1):
        assert await wait_until(partial(terminal.shows, "Allow it? [y/n/s/e;", number), 60)
        terminal.type(typed)
    assert await wait_until(partial(terminal.shows, "Rule for this session [Bash(touch again.txt)]"), 60)
    terminal.type("\n")
    assert await watched == 0
    assert (tmp_path / "edited.txt").exists()
    assert not (tmp_path / "hello.txt").exists()
    assert sum(line.startswith("  bash  touch again.txt  ok") for line in terminal.lines) == 2


async def test_ctrl_c_at_the_prompt_states_how_to_continue(cell: Cell, client: AsyncFootplate) -> None:
    agent = await _create_careful_agent(client)
    terminal = Terminal(100)
    watched = asyncio.create_task(terminal.run(cell, "run", "--agent", agent, "Say hello", NO_COLOR="1"))
    assert await wait_until(partial(terminal.shows, "Allow it?"), 60)
    *_, approval = [one async for one in client.approvals.list()]  # earlier tests may leave pending calls
    os.kill(terminal.process.pid, signal.SIGINT)
    assert await watched == 130
    assert f"Detached. Decide later: footplate attach {approval.session_id}" in terminal.lines
    continued = await cell.run("run", "--session", approval.session_id, "Go on")
    assert "  bash  echo hello  not run" in continued.err
