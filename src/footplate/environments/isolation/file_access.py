"""Reads, writes and lists files inside a sandbox or container, through its init process.

The init process sees the same files as the agent's commands.
"""

import asyncio
import errno
import os
from collections.abc import Sequence
from typing import Final, Literal

from footplate.domain.ports.harness import MAX_READ_BYTES, FileInfo
from footplate.environments.processes.command_runner import open_stdin
from footplate.environments.processes.output_capture import PipeReader
from footplate.environments.processes.spawner_client import Spawner

_MAX_LIST_BYTES: Final = 16 * 1024 * 1024
_TIMEOUT: Final = 120.0
_MAX_ERRNO: Final = max(errno.errorcode)


async def read_file(spawner: Spawner, cwd: str, path: str) -> bytes:
    return await _run_operation(spawner, "read", cwd, path, limit=MAX_READ_BYTES)


async def write_file(spawner: Spawner, cwd: str, path: str, content: bytes) -> None:
    await _run_operation(spawner, "write", cwd, path, stdin=content)


async def list_files(spawner: Spawner, cwd: str, path: str) -> list[FileInfo]:
    output = await _run_operation(spawner, "list", cwd, path, limit=_MAX_LIST_BYTES)
    return await asyncio.to_thread(_parse_listing, output)


async def resolve_paths(spawner: Spawner, cwd: str, paths: Sequence[str]) -> list[str | None]:
    """Returns None for a path that contains a NUL, because it cannot be resolved."""
    valid_paths = [path for path in paths if "\0" not in path]
    stdin = b"".join(os.fsencode(path) + b"\0" for path in valid_paths)
    output = await _run_operation(spawner, "real", cwd, ".", stdin=stdin, limit=_MAX_LIST_BYTES)
    found = [os.fsdecode(path) or None for path in output.split(b"\0")[:-1]]
    if len(found) != len(valid_paths):
        raise _error(errno.EIO, cwd)
    resolved = dict(zip(valid_paths, found, strict=True))
    return [resolved.get(path) for path in paths]


def _parse_listing(output: bytes) -> list[FileInfo]:
    found = []
    for line in output.split(b"\0")[:-1]:
        size, modified, name = line.split(b" ", 2)
        found.append(FileInfo(path=os.fsdecode(name), size=int(size), modified=float(modified)))
    return sorted(found, key=lambda file: file.path)


async def _run_operation(
    spawner: Spawner,
    name: Literal["read", "write", "list", "real"],
    cwd: str,
    path: str,
    *,
    stdin: bytes = b"",
    limit: int = 0,
) -> bytes:
    """Runs a file operation inside and returns its whole output. A process that returns more than the limit is not the
    genuine one, so the rest is ignored.
    """
    if "\0" in path:
        raise ValueError("A path cannot contain a NUL byte.")
    output = bytearray()
    end = asyncio.Event()

    def append_output(data: bytes) -> None:
        if len(output) <= limit:
            output.extend(data)

    reader = PipeReader(append_output, at_end=end.set)
    stdin_fd = open_stdin(stdin)
    try:
        message = {"call": name, "path": path, "limit": limit, "cwd": cwd}
        command = await spawner.request(message, {0: stdin_fd, 1: reader.writer})
        reader.close_writer()
        try:
            async with asyncio.timeout(_TIMEOUT):
                code = await command.wait()
                await end.wait()
        except TimeoutError:
            await command.kill()
            raise TimeoutError(errno.ETIMEDOUT, f"The file access took longer than {_TIMEOUT:g} s.", path) from None
        except BaseException:
            await command.kill()
            raise
    finally:
        os.close(stdin_fd)
        reader.close()
    if code > _MAX_ERRNO:
        raise OSError(errno.EIO, "The process that accessed the file was killed.", path)
    if code or len(output) > limit:
        raise _error(code or errno.EFBIG, path)
    return bytes(output)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
