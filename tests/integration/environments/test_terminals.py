"""A shell and commands on a terminal, in every backend that bounds what a person types."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from footplate.domain.errors import Permanent, Unavailable
from footplate.domain.ports.terminals import TerminalProcess, TerminalSize
from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.isolation.isolated_environment import EnclosedEnvironment

if TYPE_CHECKING:
    from footplate.environments.processes.output_buffer import OutputBuffer

pytestmark = pytest.mark.timing

SIZE = TerminalSize(90, 20)


async def read_until(terminal: TerminalProcess, text: bytes) -> bytes:
    output = b""
    async with asyncio.timeout(30):
        while text not in output and (piece := await terminal.read()):
            output += piece
    assert text in output, output
    return output


@pytest.mark.requirement("O3")
async def test_a_shell_has_a_terminal_with_job_control_and_ends_with_its_environment(
    environment: BaseEnvironment,
) -> None:
    if not isinstance(environment, EnclosedEnvironment):
        with pytest.raises(Permanent, match="needs a sandbox or a container"):
            await environment.open_terminal(None, SIZE)
        return
    terminal = await environment.open_terminal(None, SIZE)
    await terminal.write(b"sleep 300 & echo st''arted; echo $PAGER $HISTFILE.\r")
    await read_until(terminal, b"cat .")
    terminal.resize(TerminalSize(120, 40))
    await terminal.write(b"sleep 301\r")
    await asyncio.sleep(0.2)
    await terminal.write(b"\x03")  # ends the program, and not the shell
    await terminal.write(b"echo st''ill\r")
    await read_until(terminal, b"still")
    await environment.aclose()
    while await terminal.read():  # what the shell printed before
        pass
    with pytest.raises(Unavailable):
        await asyncio.wait_for(terminal.wait(), 5)


@pytest.mark.requirement("O3")
async def test_a_command_has_its_own_exit_code_and_output(environment: BaseEnvironment) -> None:
    if not isinstance(environment, EnclosedEnvironment):
        return
    terminal = await environment.open_terminal("echo out; echo err >&2; printf 'no newline'; exit 42", SIZE)
    while await terminal.read():
        pass
    result = terminal.collect_result(await terminal.wait())
    assert (result.exit_code, result.stdout) == (42, b"out\nerr\nno newline")
    terminal.close()
    await terminal.write(b"too late")
    long = await environment.open_terminal("head -c 3000000 /dev/zero | tr '\\0' x", SIZE)
    assert environment._terminals == [long]  # a warm environment does not collect those that were closed
    while await long.read():
        pass
    found = long.collect_result(await long.wait())
    assert (found.exit_code, found.full_outputs["stdout"].size) == (0, 3_000_000)
    cast("OutputBuffer", found.full_outputs["stdout"]).close()
    ended = await environment.open_terminal("sleep 300", SIZE)
    await ended.kill()
    assert await ended.wait() == 137
    while await ended.read():
        pass
