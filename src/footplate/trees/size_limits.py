"""Limits what a hostile repository can take of the host's disk: when it is fetched and when it is checked out.

A fetch writes one pack file, which may not grow beyond what is left for the mirror. A commit of a few hundred bytes can
stand for any number of files, so the files of a commit are counted, entry by entry, before anything is written.
"""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.trees.git import Git

BYTES: Final = 10 << 30
MOST_FILES: Final = 2_000_000
MOST_LISTED: Final = 64 << 20
"""Bytes of the list of branches and tags that a repository offers."""
_HELP: Final = "The operator of this server can allow more with FOOTPLATE_GIT_BYTES."


class RepositoryTooLarge(Permanent):
    code = "repository_too_large"

    def __init__(self, what: str, help_text: str = _HELP) -> None:
        super().__init__(f"The project's repository is too large: {what}.", help_text=help_text)


async def read_listing(git: Git, *argv: str, seconds: float) -> bytes:
    """What `git ls-remote` prints, if that is not too much."""
    found = bytearray()
    async with git.stream(*argv, seconds=seconds) as pieces:
        async for piece in pieces:
            found += piece
            if len(found) > MOST_LISTED:
                raise RepositoryTooLarge(
                    f"the names of its branches and tags take more than {MOST_LISTED} bytes",
                    "Remove some of them: this limit is fixed.",
                )
    return bytes(found)


async def check_files(git: Git, commit: str, most: int) -> None:
    """Raise unless the files of a commit are few and small enough to be written."""
    size = files = 0
    rest = b""
    async with git.stream("ls-tree", "-r", "-l", "-z", commit) as pieces:
        async for piece in pieces:
            *entries, rest = (rest + piece).split(b"\0")
            files += len(entries)
            size += sum(_size(entry) for entry in entries)
            if size > most:
                raise RepositoryTooLarge(f"the files of commit {commit} take more than {most} bytes")
            if files > MOST_FILES:
                raise RepositoryTooLarge(
                    f"commit {commit} has more than {MOST_FILES} files",
                    "Use a repository with fewer files: this limit is fixed.",
                )


def _size(entry: bytes) -> int:
    """Of `mode type id size<TAB>name`; a submodule has none."""
    size = entry.partition(b"\t")[0].split()[-1]
    return int(size) if size.isdigit() else 0


async def remaining_fetch_bytes(mirror: Path, most: int) -> int:
    """Bytes that a fetch may still add to a mirror."""
    left = most - await asyncio.to_thread(_bytes_below, mirror / "objects")
    if left <= 0:
        raise RepositoryTooLarge(f"what was fetched of it so far takes {most} bytes")
    return left


def remove_partial_packs(mirror: Path) -> int:
    """What a fetch that failed left behind is removed; the size of the largest. The caller holds the mirror's lock."""
    largest = 0
    for path in (mirror / "objects" / "pack").glob("tmp_*"):
        with contextlib.suppress(OSError):
            largest = max(largest, path.stat().st_size)
            path.unlink()
    return largest


def _bytes_below(directory: Path) -> int:
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(folder, name).lstat().st_size
    return size
