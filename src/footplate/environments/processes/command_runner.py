"""Runs one command until it exits and returns its result, with a time limit and limited output.

If the caller is cancelled, the command is killed.
"""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence

from footplate import failpoints
from footplate.domain.ports.harness import CommandResult
from footplate.environments.processes.output_capture import CapturedOutput
from footplate.environments.processes.spawner_client import SpawnedCommand, Spawner


async def run_command(
    spawner: Spawner,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes,
    time_limit: float,
    grace: float,
    output: CapturedOutput,
) -> CommandResult:
    started_at = time.monotonic()
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
    return build_result(output, None if timed_out else exit_code, time.monotonic() - started_at, timed_out=timed_out)


def build_result(output: CapturedOutput, exit_code: int | None, duration: float, *, timed_out: bool) -> CommandResult:
    stdout, stderr = output.collect()
    full_output = {name: buffer for name, buffer in (("stdout", stdout), ("stderr", stderr)) if buffer.spooled_size}
    return CommandResult(
        exit_code=exit_code,
        stdout=stdout.excerpt(),
        stderr=stderr.excerpt(),
        duration=duration,
        timed_out=timed_out,
        truncated=stdout.truncated or stderr.truncated,
        full_outputs=full_output,
    )


async def _spawn(
    spawner: Spawner, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bytes, output: CapturedOutput
) -> SpawnedCommand:
    stdin_fd = open_stdin(stdin)
    try:
        stdout, stderr = (reader.writer for reader in output.readers)
        return await spawner.spawn(argv, cwd=cwd, env=env, fds={0: stdin_fd, 1: stdout, 2: stderr})
    finally:
        os.close(stdin_fd)
        output.close_writers()


def open_stdin(stdin: bytes) -> int:
    """Returns a descriptor that the command reads its standard input from. An in-memory file needs no task that writes
    to it.
    """
    if not stdin:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    stdin_fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    remaining = memoryview(stdin)
    while remaining:
        remaining = remaining[os.write(stdin_fd, remaining) :]
    os.lseek(stdin_fd, 0, os.SEEK_SET)
    return stdin_fd
