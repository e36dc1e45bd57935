"""Takes many packs into a git directory at once: their objects one after the other, as one pack.

A file that returns to what it once was is in two packs, and git refuses a pack in which an object that others are made
of stands twice. Then each half is tried by itself, and so on: one pack alone never has anything twice, and what its
objects are made of may be in the git directory already.
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

Read = Callable[[str], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class _Body:
    """What is between a pack's head and its tail, in the file that has all of them."""

    start: int
    end: int
    objects: int


async def take_in(git: Git, packs: Sequence[Sequence[str]], read: Read, place: Path) -> int:
    """The first pack first, each as the keys of its parts; how many bytes that was. `place` is for our own files."""
    whole = place / "all"
    with whole.open("wb") as file:
        bodies = [await _append(file, keys, read) for keys in packs]
    await _take_in(git, whole, bodies, place)
    return bodies[-1].end if bodies else 0


async def _take_in(git: Git, whole: Path, bodies: Sequence[_Body], place: Path) -> None:
    if not bodies:
        return
    pack = place / "pack"
    await asyncio.to_thread(_join, whole, bodies, pack)
    try:
        await git.convert("index-pack", "--stdin", "--fix-thin", source=pack, target=place / "said")
    except GitFailed:
        if len(bodies) == 1:
            raise
        middle = len(bodies) // 2
        await _take_in(git, whole, bodies[:middle], place)
        await _take_in(git, whole, bodies[middle:], place)


async def _append(file: BinaryIO, keys: Sequence[str], read: Read) -> _Body:
    start = file.tell()
    held = b""
    count: int | None = None
    for key in keys:
        async for piece in read(key):
            held += piece
            if count is None and len(held) >= _HEAD.size:
                _, _, count = _HEAD.unpack(held[: _HEAD.size])
                held = held[_HEAD.size :]
            if count is not None and len(held) > _TAIL:
                file.write(held[:-_TAIL])
                held = held[-_TAIL:]
    return _Body(start, file.tell(), count or 0)


def _join(whole: Path, bodies: Sequence[_Body], pack: Path) -> None:
    """What refers to another object of its own pack says how far away it is, and that stays the same."""
    digest = hashlib.sha1(usedforsecurity=False)
    with whole.open("rb") as source, pack.open("wb") as target:
        head = _HEAD.pack(b"PACK", 2, sum(body.objects for body in bodies))
        digest.update(head)
        target.write(head)
        source.seek(bodies[0].start)
        left = bodies[-1].end - bodies[0].start
        while left and (data := source.read(min(_PIECE, left))):
            digest.update(data)
            target.write(data)
            left -= len(data)
        target.write(digest.digest())
