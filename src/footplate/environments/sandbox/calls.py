"""Reads and writes files through a process inside the sandbox, which sees the same files as the agent's commands."""

import asyncio
import errno
import os
from collections.abc import Sequence
from typing import Final, Literal

from footplate.domain.ports import MOST_READ, FileInfo
from footplate.environments.commands import content_of
from footplate.environments.output import Reader
from footplate.environments.spawner import Spawner

_LIST_LIMIT: Final = 16 * 1024 * 1024
_TIME_LIMIT: Final = 120.0
_LAST_ERRNO: Final = max(errno.errorcode)


async def read(spawner: Spawner, cwd: str, path: str) -> bytes:
    return await _call(spawner, "read", cwd, path, limit=MOST_READ)


async def write(spawner: Spawner, cwd: str, path: str, content: bytes) -> None:
    await _call(spawner, "write", cwd, path, stdin=content)


async def list_files(spawner: Spawner, cwd: str, path: str) -> list[FileInfo]:
    answer = await _call(spawner, "list", cwd, path, limit=_LIST_LIMIT)
    return await asyncio.to_thread(_parsed, answer)


async def real(spawner: Spawner, cwd: str, paths: Sequence[str]) -> list[str | None]:
    """Returns None for a path that contains a NUL, because it cannot be resolved."""
    asked = [path for path in paths if "\0" not in path]
    given = b"".join(os.fsencode(path) + b"\0" for path in asked)
    answer = await _call(spawner, "real", cwd, ".", stdin=given, limit=_LIST_LIMIT)
    found = [os.fsdecode(path) or None for path in answer.split(b"\0")[:-1]]
    if len(found) != len(asked):
        raise _error(errno.EIO, cwd)
    known = dict(zip(asked, found, strict=True))
    return [known.get(path) for path in paths]


def _parsed(answer: bytes) -> list[FileInfo]:
    found = []
    for line in answer.split(b"\0")[:-1]:
        size, modified, name = line.split(b" ", 2)
        found.append(FileInfo(path=os.fsdecode(name), size=int(size), modified=float(modified)))
    return sorted(found, key=lambda file: file.path)


async def _call(
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
    answer = bytearray()
    end = asyncio.Event()

    def heard(data: bytes) -> None:
        if len(answer) <= limit:
            answer.extend(data)

    reader = Reader(heard, at_end=end.set)
    given = content_of(stdin)
    try:
        message = {"call": name, "path": path, "limit": limit, "cwd": cwd}
        command = await spawner.request(message, {0: given, 1: reader.writer})
        reader.release()
        try:
            async with asyncio.timeout(_TIME_LIMIT):
                code = await command.wait()
                await end.wait()
        except TimeoutError:
            await command.kill()
            raise TimeoutError(errno.ETIMEDOUT, f"The file access took longer than {_TIME_LIMIT:g} s.", path) from None
        except BaseException:
            await command.kill()
            raise
    finally:
        os.close(given)
        reader.close()
    if code > _LAST_ERRNO:
        raise OSError(errno.EIO, "The process that accessed the file was killed.", path)
    if code or len(answer) > limit:
        raise _error(code or errno.EFBIG, path)
    return bytes(answer)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
