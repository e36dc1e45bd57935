"""Runs one program to its end and returns its result: with bounded output and a timeout, and killed on cancellation."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence

from footplate import failpoints
from footplate.domain.ports import CommandResult
from footplate.environments.output import Output
from footplate.environments.spawner import Spawned, Spawner


async def run(
    spawner: Spawner,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes,
    time_limit: float,
    grace: float,
    output: Output,
) -> CommandResult:
    began = time.monotonic()
    command = await _spawn(spawner, argv, cwd=cwd, env=env, stdin=stdin, output=output)
    try:
        await failpoints.hit("in_tool")
        await asyncio.wait([command.exited], timeout=time_limit)
    except BaseException:
        await command.kill()
        raise
    timed_out = not command.exited.done()
    if timed_out:
        await command.stop(grace=grace)
    exit_code = await command.wait()
    return result_of(output, None if timed_out else exit_code, time.monotonic() - began, timed_out=timed_out)


def result_of(output: Output, exit_code: int | None, duration: float, *, timed_out: bool) -> CommandResult:
    stdout, stderr = output.take()
    whole = {name: kept for name, kept in (("stdout", stdout), ("stderr", stderr)) if kept.spooled}
    return CommandResult(
        exit_code=exit_code,
        stdout=stdout.value(),
        stderr=stderr.value(),
        duration=duration,
        timed_out=timed_out,
        truncated=stdout.truncated or stderr.truncated,
        whole=whole,
    )


async def _spawn(
    spawner: Spawner, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bytes, output: Output
) -> Spawned:
    given = content_of(stdin)
    try:
        stdout, stderr = (reader.writer for reader in output.readers)
        return await spawner.spawn(argv, cwd=cwd, env=env, fds={0: given, 1: stdout, 2: stderr})
    finally:
        os.close(given)
        output.release()


def content_of(stdin: bytes) -> int:
    """Returns a descriptor that the command reads its standard input from. An in-memory file needs no task that writes
    to it.
    """
    if not stdin:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    given = os.memfd_create("stdin", os.MFD_CLOEXEC)
    left = memoryview(stdin)
    while left:
        left = left[os.write(given, left) :]
    os.lseek(given, 0, os.SEEK_SET)
    return given
