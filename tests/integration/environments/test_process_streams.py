"""Programs beside the shell with streams of their own, and ending all other processes, in every backend."""

from __future__ import annotations

import asyncio

import pytest

from footplate.environments.base_environment import BaseEnvironment

pytestmark = pytest.mark.timing


async def read_output(environment: BaseEnvironment, size: int, argv: list[str]) -> bytes:
    process = await environment.start(argv, env={})
    output = b""
    while len(output) < size and (piece := await process.read()):
        output += piece
    await process.kill()
    return output


async def test_input_and_output_of_a_program(environment: BaseEnvironment) -> None:
    process = await environment.start(["sh", "-c", "echo $GIVEN; cat; echo err >&2; exit 3"], env={"GIVEN": "this"})
    assert await process.read() == b"this\n"
    await process.write(b"there and back\n")
    assert await process.read() == b"there and back\n"
    await process.end_input()
    assert await process.read() == b""
    assert (await process.wait(), process.stderr_tail) == (3, "err")
    with pytest.raises(BrokenPipeError):
        await process.write(b"too late")


async def test_a_long_line_is_read_in_chunks(environment: BaseEnvironment) -> None:
    output = await read_output(environment, 5_000_000, ["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; sleep 60"])
    assert output == b"x" * 5_000_000


async def test_all_other_processes_are_ended(environment: BaseEnvironment) -> None:
    survivor = await environment.start(["cat"], env={})
    other = await environment.start(["sleep", "300"], env={})
    await environment.shell("(setsid sleep 301 </dev/null >/dev/null 2>&1 &) ; sleep 302 &", timeout=10)
    await environment.end_other_processes(keep=survivor)
    assert await asyncio.wait_for(other.wait(), 5) == 137
    remaining = await environment.run(["sh", "-c", "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done"])
    assert b"sleep 30" not in remaining.stdout
    await survivor.write(b"still here\n")
    assert await survivor.read() == b"still here\n"
    # The environment still works.
    assert (await environment.shell("echo again", timeout=10)).stdout == b"again\n"


async def test_a_program_ends_with_its_environment(environment: BaseEnvironment) -> None:
    process = await environment.start(["sleep", "300"], env={})
    await environment.aclose()
    assert await process.read() == b""
