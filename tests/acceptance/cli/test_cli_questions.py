"""Questions of an agent: a user who watches at a terminal answers, unless another client is first."""

from functools import partial

import pytest
from tests.acceptance.cli.cli_cell import Cell
from tests.acceptance.cli.test_cli_subagents import watching

from footplate.client import AsyncFootplate
from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing

PROMPT = "Answer [1-2 or your own text; Enter leaves it pending]"


async def test_a_watching_user_is_asked_until_there_is_a_reply(cell: Cell, client: AsyncFootplate) -> None:
    toolset = {"type": "agent_toolset_20260401", "ask_user": True}
    agent = (await client.agents.create(name="asks", model="anthropic:scripted", tools=[toolset])).id
    command = ("run", "--agent", agent, "[[script:question]]")
    async with watching(cell, *command) as terminal:
        assert await wait_until(partial(terminal.shows, PROMPT), 60)
        terminal.type("3\n")
        assert await wait_until(partial(terminal.shows, PROMPT, 2), 60)
        terminal.type("blue\n")
    assert "1. Red" in terminal.text
    assert "'3' is not an option" in terminal.text
    assert "Blue  answered by" in terminal.text
    async with watching(cell, *command) as other:
        assert await wait_until(partial(other.shows, PROMPT), 60)
        (question,) = [one async for one in client.questions.list()]
        await client.questions.send_reply(question.id, {"Which colour?": "Green"})
    assert "Green  answered by" in other.text
