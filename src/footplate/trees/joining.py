"""Imports many packs into a git directory at once, by concatenating their objects into one pack.

A file that returns to an earlier content is in two packs, and git refuses a pack that has a delta base twice. Then each
half is tried separately, and so on. A single pack has no duplicates, and its delta bases may already be in the git
directory.
"""

import asyncio
import hashlib
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from footplate.trees.git import Git, GitFailed

_HEAD: Final = struct.Struct(">4sII")
_TAIL: Final = 20
_PIECE: Final = 1 << 20
_AT_ONCE: Final = 16

Read = Callable[[str], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class _Body:
    """The objects of one pack, without its header and trailer, as a range of the concatenated file."""

    start: int
    end: int
    objects: int


async def take_in(git: Git, packs: Sequence[Sequence[str]], read: Read, place: Path) -> int:
    """Imports the packs in order, each given as the keys of its parts. Returns the number of bytes. `place` holds
    temporary files.
    """
    whole = place / "all"
    bodies: list[_Body] = []
    with whole.open("wb") as file:
        for begin in range(0, len(packs), _AT_ONCE):
            fetched = await _fetch(packs[begin : begin + _AT_ONCE], read, place)
            bodies += [await asyncio.to_thread(_append, file, pack) for pack in fetched]
    await _take_in(git, whole, bodies, place)
    return bodies[-1].end if bodies else 0


async def _fetch(packs: Sequence[Sequence[str]], read: Read, place: Path) -> list[Path]:
    """Downloads several packs in parallel, because a remote store has a high latency per request."""
    tasks = [asyncio.create_task(_written(keys, read, place / f"{n}")) for n, keys in enumerate(packs)]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _written(keys: Sequence[str], read: Read, target: Path) -> Path:
    with target.open("wb") as file:
        for key in keys:
            async for piece in read(key):
                file.write(piece)
    return target


async def _take_in(git: Git, whole: Path, bodies: Sequence[_Body], place: Path) -> None:
    if not bodies:
        return
    pack = place / "pack"
    await asyncio.to_thread(_join, whole, bodies, pack)
    try:
        await git.run_with_files("index-pack", "--stdin", "--fix-thin", source=pack, target=place / "said")
    except GitFailed:
        if len(bodies) == 1:
            raise
        middle = len(bodies) // 2
        await _take_in(git, whole, bodies[:middle], place)
        await _take_in(git, whole, bodies[middle:], place)


def _append(file: BinaryIO, fetched: Path) -> _Body:
    start, size = file.tell(), fetched.stat().st_size
    with fetched.open("rb") as pack:
        _, _, objects = _HEAD.unpack(pack.read(_HEAD.size))
        _copy(pack, size - _HEAD.size - _TAIL, file.write)
    fetched.unlink()
    return _Body(start, file.tell(), objects)


def _join(whole: Path, bodies: Sequence[_Body], pack: Path) -> None:
    """Writes one pack from consecutive bodies. References inside a pack are relative offsets, so they stay valid."""
    digest = hashlib.sha1(usedforsecurity=False)
    with whole.open("rb") as source, pack.open("wb") as target:

        def write(data: bytes) -> None:
            digest.update(data)
            target.write(data)

        write(_HEAD.pack(b"PACK", 2, sum(body.objects for body in bodies)))
        source.seek(bodies[0].start)
        _copy(source, bodies[-1].end - bodies[0].start, write)
        target.write(digest.digest())


def _copy(source: BinaryIO, size: int, write: Callable[[bytes], object]) -> None:
    while size > 0 and (data := source.read(min(_PIECE, size))):
        write(data)
        size -= len(data)
