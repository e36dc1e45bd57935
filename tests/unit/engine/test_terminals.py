"""How a terminal ends: everyone who watches learns it, also if the turn is interrupted meanwhile."""

import asyncio
from collections.abc import Sequence

import pytest

from footplate.domain.ports.harness import CommandResult
from footplate.domain.ports.terminals import TerminalInput, TerminalSize
from footplate.engine.turn.terminals import _Terminal

pytestmark = pytest.mark.timing


class EndedProcess:
    async def read(self) -> bytes:
        return b""

    async def write(self, data: bytes) -> None: ...

    def resize(self, size: TerminalSize) -> None: ...

    async def wait(self) -> int:
        return 3

    async def kill(self) -> None: ...

    def collect_result(self, exit_code: int | None, *, timed_out: bool = False) -> CommandResult:
        return CommandResult(exit_code=exit_code, stdout=b"", stderr=b"", duration=1, timed_out=timed_out)

    def close(self) -> None: ...


class SlowChannel:
    """A channel whose Redis responds late."""

    size = TerminalSize()

    def __init__(self) -> None:
        self.responds = asyncio.Event()
        self.publishes = asyncio.Event()
        self.closed: list[str] = []

    async def publish(self, data: bytes) -> None:
        self.publishes.set()
        await self.responds.wait()

    async def resize(self, size: TerminalSize) -> None: ...

    async def receive(self) -> Sequence[TerminalInput]:
        await asyncio.Event().wait()
        return []

    async def close(self, reason: str) -> None:
        self.closed.append(reason)


async def test_the_end_is_reported_once_although_the_turn_is_interrupted_meanwhile() -> None:
    async def store_files() -> None: ...

    channel = SlowChannel()
    terminal = _Terminal(EndedProcess(), channel, store_files)
    running = asyncio.create_task(terminal.run_to_end())
    await asyncio.wait_for(channel.publishes.wait(), 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    stopping = asyncio.create_task(terminal.stop("interrupted"))
    await asyncio.sleep(0)
    channel.responds.set()
    assert (await stopping).exit_code == 3
    assert channel.closed == ["exit code 3"]
