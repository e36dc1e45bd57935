"""How long a piece of a preview waits: hardly ever while there is nothing else to send, longer while there is."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from footplate.stream.entries import Command
from footplate.stream.publisher import Live
from footplate.stream.turn_live import TurnLive

pytestmark = pytest.mark.timing


class Noted:
    def __init__(self, *, busy: bool) -> None:
        self.busy = busy
        self.offered: list[Sequence[Command]] = []

    def offer(self, commands: Sequence[Command]) -> bool:
        self.offered.append(commands)
        return True


async def _pieces(*, busy: bool) -> int:
    """Entries that five pieces at the pace of a quick model became, without the start."""
    live = Noted(busy=busy)
    turn = TurnLive(cast("Live", live), "org", "sesn_1", flush_seconds=5.0)
    preview = turn.preview("agent.message")
    for _ in range(5):
        preview.write("word ")
        await asyncio.sleep(0.01)
    return len(live.offered) - 1


async def test_pieces_go_out_one_by_one_while_there_is_nothing_else() -> None:
    assert await _pieces(busy=False) == 5


async def test_pieces_are_put_together_while_there_is() -> None:
    assert await _pieces(busy=True) == 1
