"""Calls of subagents that need approval: a user who watches at a terminal decides while the turn continues."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.cli_cell import Cell
from tests.acceptance.cli.terminal import Terminal

from footplate.client import Approval, AsyncFootplate
from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing

BASH_CONFIG = {"name": "bash", "permission_policy": {"type": "always_ask"}}
TOOLSET = {"type": "agent_toolset_20260401", "configs": [BASH_CONFIG]}
QUESTION = "Allow it?"


async def create_lead_agent(client: AsyncFootplate, **more: Any) -> str:
    """Creates an agent with two subagents whose commands need approval."""
    made: dict[str, Any] = {"model": "anthropic:scripted", "tools": [TOOLSET]}
    members = [(await client.agents.create(name=name, **made)).id for name in ("scout", "cook")]
    asks = {"type": "coordinator", "agents": members}
    return (await client.agents.create(name="lead", harness="claude", multiagent=asks, **made, **more)).id


async def wait_for_approvals(client: AsyncFootplate, number: int = 1) -> list[Approval]:
    found: list[Approval] = []

    async def there() -> bool:
        found[:] = [one async for one in client.approvals.list()]
        return len(found) == number

    assert await wait_until(there, 60)
    return found


def count_effects(folder: Path) -> int:
    """Counts the commands that were executed: each adds a line."""
    file = folder / "looked.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


@asynccontextmanager
async def watching(cell: Cell, *arguments: str) -> AsyncIterator[Terminal]:
    """Runs a command on a terminal until it has ended successfully."""
    terminal = Terminal(100)
    running = asyncio.create_task(terminal.run(cell, *arguments, NO_COLOR="1"))
    try:
        yield terminal
        assert await running == 0
    finally:
        running.cancel()


@pytest.mark.parametrize(("typed", "status"), [("y\n", "allowed"), ("n\n", "denied")])
async def test_a_watching_user_decides_during_the_turn(
    cell: Cell, client: AsyncFootplate, tmp_path: Path, typed: str, status: str
) -> None:
    command = ("run", "--directory", str(tmp_path), "--agent", await create_lead_agent(client), "[[script:delegate]]")
    async with watching(cell, *command) as terminal:
        (ask,) = await wait_for_approvals(client)
        assert await wait_until(partial(terminal.shows, QUESTION), 60)
        assert (ask.agent_name, count_effects(tmp_path)) == ("scout", 0)
        terminal.type(typed)
    assert "scout: bash  echo looked >> looked.txt  needs approval" in terminal.text
    assert "Subagent scout asks: bash" in terminal.text
    assert "command: echo looked >> looked.txt" in terminal.text
    assert "It looked." in terminal.lines
    assert (await client.approvals.retrieve(ask.id)).status == status
    assert count_effects(tmp_path) == (1 if status == "allowed" else 0)
    (confirmation,) = [one async for one in client.events.list(ask.session_id, types=["user.tool_confirmation"])]
    assert confirmation.session_thread_id == ask.session_thread_id is not None


async def test_starting_a_subagent_and_its_calls_need_approval(
    cell: Cell, client: AsyncFootplate, tmp_path: Path
) -> None:
    agent = await create_lead_agent(client, permissions={"ask": ["Agent"]})
    async with watching(cell, "run", "--directory", str(tmp_path), "--agent", agent, "[[script:delegate]]") as terminal:
        assert await wait_until(partial(terminal.shows, QUESTION), 60)
        assert "Subagent" not in terminal.text
        terminal.type("y\n")
        assert await wait_until(partial(terminal.shows, QUESTION, 2), 60)
        assert "Subagent scout asks: bash" in terminal.text
        terminal.type("y\n")
    assert count_effects(tmp_path) == 1


async def test_an_attached_user_is_asked_too(cell: Cell, client: AsyncFootplate, tmp_path: Path) -> None:
    command = (
        "run",
        "--background",
        "--directory",
        str(tmp_path),
        "--agent",
        await create_lead_agent(client),
        "[[script:delegate]]",
    )
    session_id = (await cell.run(*command)).out.strip()
    await wait_for_approvals(client)
    async with watching(cell, "attach", session_id) as terminal:
        assert await wait_until(partial(terminal.shows, QUESTION), 60)
        terminal.type("y\n")
    assert count_effects(tmp_path) == 1
    async with watching(cell, "attach", session_id) as terminal:
        pass
    assert QUESTION not in terminal.text


async def test_a_decision_from_another_client_closes_the_prompt(
    cell: Cell, client: AsyncFootplate, tmp_path: Path
) -> None:
    """Input typed for it does not count for the next approval."""
    command = ("run", "--directory", str(tmp_path), "--agent", await create_lead_agent(client), "[[script:both]]")
    async with watching(cell, *command) as terminal:
        asks = {str(ask.agent_name): ask for ask in await wait_for_approvals(client, 2)}
        assert await wait_until(partial(terminal.shows, QUESTION), 60)
        first = "scout" if "scout asks" in terminal.text else "cook"
        second = ({*asks} - {first}).pop()
        terminal.type("y")
        await client.approvals.deny(asks[first], "not today")
        assert await wait_until(partial(terminal.shows, f"Subagent {second} asks"), 60)
        assert await wait_until(partial(terminal.shows, QUESTION, 2), 10)
        terminal.type("\n")
        assert await wait_until(partial(terminal.shows, f"footplate approve {asks[second].id}"), 60)
        assert count_effects(tmp_path) == 0
        await client.approvals.allow(asks[second])
    assert f"  {first}: bash  echo looked >> looked.txt  denied by first key" in terminal.lines
    assert "        not today" in terminal.lines
    assert "Both looked." in terminal.lines
    assert count_effects(tmp_path) == 1
