"""Limits the disk space that a hostile repository can use, during a fetch and during a checkout.

A fetch writes one pack file, which may not grow beyond the remaining size of the mirror. A commit of a few hundred
bytes can contain any number of files. The files of a commit are therefore counted before any file is written.
"""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.trees.git import Git

DEFAULT_MAX_BYTES: Final = 10 << 30
MAX_FILES: Final = 2_000_000
MAX_LISTING_BYTES: Final = 64 << 20
"""Bytes of the list of branches and tags that a repository offers."""
_HELP: Final = "The operator of this server can raise the limit with FOOTPLATE_GIT_BYTES."


class RepositoryTooLarge(Permanent):
    code = "repository_too_large"

    def __init__(self, reason: str, help_text: str = _HELP) -> None:
        super().__init__(f"The project's repository is too large: {reason}.", help_text=help_text)


async def read_listing(git: Git, *argv: str, seconds: float) -> bytes:
    """Returns the output of `git ls-remote`. Raises `RepositoryTooLarge` if it is too long."""
    found = bytearray()
    async with git.stream_output(*argv, seconds=seconds) as pieces:
        async for piece in pieces:
            found += piece
            if len(found) > MAX_LISTING_BYTES:
                raise RepositoryTooLarge(
                    f"the list of its branches and tags is larger than {MAX_LISTING_BYTES} bytes",
                    "Remove some branches or tags. This limit is fixed.",
                )
    return bytes(found)


async def check_files(git: Git, commit: str, max_bytes: int) -> None:
    """Raises `RepositoryTooLarge` if the commit has too many files or they are too large."""
    size = files = 0
    rest = b""
    async with git.stream_output("ls-tree", "-r", "-l", "-z", commit) as pieces:
        async for piece in pieces:
            *entries, rest = (rest + piece).split(b"\0")
            files += len(entries)
            size += sum(_size(entry) for entry in entries)
            if size > max_bytes:
                raise RepositoryTooLarge(f"the files of commit {commit} are larger than {max_bytes} bytes in total")
            if files > MAX_FILES:
                raise RepositoryTooLarge(
                    f"commit {commit} has more than {MAX_FILES} files",
                    "Use a repository with fewer files. This limit is fixed.",
                )


def _size(entry: bytes) -> int:
    """Returns the size in a line `mode type id size<TAB>name`. A submodule has no size."""
    size = entry.partition(b"\t")[0].split()[-1]
    return int(size) if size.isdigit() else 0


async def remaining_fetch_bytes(mirror: Path, max_bytes: int) -> int:
    """Returns how many bytes a fetch may still add to a mirror."""
    remaining = max_bytes - await asyncio.to_thread(_bytes_below, mirror / "objects")
    if remaining <= 0:
        raise RepositoryTooLarge(f"its mirror has reached the limit of {max_bytes} bytes")
    return remaining


def remove_partial_packs(mirror: Path) -> int:
    """Removes the files of a failed fetch and returns the size of the largest. The caller holds the mirror's lock."""
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
