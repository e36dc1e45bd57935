"""Imports many git packs into a git directory at once, by concatenating their objects into one pack.

git rejects a pack that contains the same delta base twice. This happens if a file returned to an earlier content, and
is therefore in two packs. The list of packs is then split in half, and each half is imported separately, down to single
packs. A single pack contains no duplicates.
"""

import asyncio
import hashlib
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from footplate.trees.git import Git, GitFailed

_HEADER: Final = struct.Struct(">4sII")
_TRAILER_BYTES: Final = 20
_CHUNK_BYTES: Final = 1 << 20
_MAX_PARALLEL: Final = 16

ReadChunks = Callable[[str], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class _PackBody:
    """The objects of one pack, without its header and trailer, as a range of the concatenated file."""

    start: int
    end: int
    objects: int


async def import_packs(git: Git, packs: Sequence[Sequence[str]], read: ReadChunks, scratch_dir: Path) -> int:
    """Imports the packs in order, each given as the keys of its parts. Returns the number of bytes. `scratch_dir` holds
    temporary files.
    """
    all_bodies = scratch_dir / "all"
    bodies: list[_PackBody] = []
    with all_bodies.open("wb") as file:
        for begin in range(0, len(packs), _MAX_PARALLEL):
            fetched = await _download_packs(packs[begin : begin + _MAX_PARALLEL], read, scratch_dir)
            bodies += [await asyncio.to_thread(_append_body, file, pack) for pack in fetched]
    await _import_bodies(git, all_bodies, bodies, scratch_dir)
    return bodies[-1].end if bodies else 0


async def _download_packs(packs: Sequence[Sequence[str]], read: ReadChunks, scratch_dir: Path) -> list[Path]:
    """Downloads several packs in parallel, because a remote store has a high latency per request."""
    tasks = [asyncio.create_task(_download_pack(keys, read, scratch_dir / f"{n}")) for n, keys in enumerate(packs)]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _download_pack(keys: Sequence[str], read: ReadChunks, target: Path) -> Path:
    with target.open("wb") as file:
        for key in keys:
            async for piece in read(key):
                file.write(piece)
    return target


async def _import_bodies(git: Git, all_bodies: Path, bodies: Sequence[_PackBody], scratch_dir: Path) -> None:
    if not bodies:
        return
    pack = scratch_dir / "pack"
    await asyncio.to_thread(_write_joined_pack, all_bodies, bodies, pack)
    try:
        await git.run_with_files("index-pack", "--stdin", "--fix-thin", source=pack, target=scratch_dir / "said")
    except GitFailed:
        if len(bodies) == 1:
            raise
        middle = len(bodies) // 2
        await _import_bodies(git, all_bodies, bodies[:middle], scratch_dir)
        await _import_bodies(git, all_bodies, bodies[middle:], scratch_dir)


def _append_body(file: BinaryIO, fetched: Path) -> _PackBody:
    start, size = file.tell(), fetched.stat().st_size
    with fetched.open("rb") as pack:
        _, _, objects = _HEADER.unpack(pack.read(_HEADER.size))
        _copy(pack, size - _HEADER.size - _TRAILER_BYTES, file.write)
    fetched.unlink()
    return _PackBody(start, file.tell(), objects)


def _write_joined_pack(all_bodies: Path, bodies: Sequence[_PackBody], pack: Path) -> None:
    """Writes one pack from consecutive bodies. References inside a pack are relative offsets, so they stay valid."""
    digest = hashlib.sha1(usedforsecurity=False)
    with all_bodies.open("rb") as source, pack.open("wb") as target:

        def write(data: bytes) -> None:
            digest.update(data)
            target.write(data)

        write(_HEADER.pack(b"PACK", 2, sum(body.objects for body in bodies)))
        source.seek(bodies[0].start)
        _copy(source, bodies[-1].end - bodies[0].start, write)
        target.write(digest.digest())


def _copy(source: BinaryIO, size: int, write: Callable[[bytes], object]) -> None:
    while size > 0 and (data := source.read(min(_CHUNK_BYTES, size))):
        write(data)
        size -= len(data)
