"""Programs beside the shell with streams of their own, and ending all other processes, in every backend."""

from __future__ import annotations

import asyncio

import pytest

from footplate.environments.guarded import GuardedEnvironment

pytestmark = pytest.mark.timing


async def read(environment: GuardedEnvironment, size: int, argv: list[str]) -> bytes:
    process = await environment.start(argv, env={})
    got = b""
    while len(got) < size and (piece := await process.read()):
        got += piece
    await process.kill()
    return got


async def test_both_streams_of_a_program(environment: GuardedEnvironment) -> None:
    process = await environment.start(["sh", "-c", "echo $GIVEN; cat; echo err >&2; exit 3"], env={"GIVEN": "this"})
    assert await process.read() == b"this\n"
    await process.write(b"there and back\n")
    assert await process.read() == b"there and back\n"
    await process.end_input()
    assert await process.read() == b""
    assert (await process.wait(), process.last_words) == (3, "err")
    with pytest.raises(BrokenPipeError):
        await process.write(b"too late")


async def test_a_long_line_in_pieces(environment: GuardedEnvironment) -> None:
    got = await read(environment, 5_000_000, ["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; sleep 60"])
    assert got == b"x" * 5_000_000


async def test_calm_ends_all_but_one(environment: GuardedEnvironment) -> None:
    kept = await environment.start(["cat"], env={})
    other = await environment.start(["sleep", "300"], env={})
    await environment.shell("(setsid sleep 301 </dev/null >/dev/null 2>&1 &) ; sleep 302 &", timeout=10)
    await environment.calm(keep=kept)
    assert await asyncio.wait_for(other.wait(), 5) == 137
    left = await environment.run(["sh", "-c", "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done"])
    assert b"sleep 30" not in left.stdout
    await kept.write(b"still here\n")
    assert await kept.read() == b"still here\n"
    # The environment still works.
    assert (await environment.shell("echo again", timeout=10)).stdout == b"again\n"


async def test_it_dies_with_its_environment(environment: GuardedEnvironment) -> None:
    process = await environment.start(["sleep", "300"], env={})
    await environment.aclose()
    assert await process.read() == b""
