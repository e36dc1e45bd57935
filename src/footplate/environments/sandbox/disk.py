"""How much a directory holds on disk. It may be changed by an agent at the same time, with every trick there is."""

import os
from contextlib import suppress
from typing import Final

TOO_DEEP: Final = 1 << 62
"""What a tree is said to hold that nobody can look through."""
LEAST: Final = 4096
"""What a file counts for at least: an empty one takes one of the disk's inodes, and those run out too."""
_DEPTH: Final = 128


def used(directory: str) -> int:
    """Bytes of blocks, each file once, a small one as one block; links and other file systems are left out."""
    try:
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    seen: set[int] = set()
    return _used(top, os.fstat(top).st_dev, seen, 0)


def _used(directory: int, device: int, seen: set[int], depth: int) -> int:
    """Takes the descriptor over. By descriptors alone: a directory that is swapped for a link leads nowhere."""
    total = 0
    below = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_dev != device:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.name)
                    elif status.st_nlink > 1:
                        if status.st_ino in seen:
                            continue
                        seen.add(status.st_ino)
                    total += max(status.st_blocks * 512, LEAST)
        if below and depth == _DEPTH:
            return TOO_DEEP
        for name in below:
            with suppress(OSError):
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                total += _used(os.open(name, flags, dir_fd=directory), device, seen, depth + 1)
    finally:
        os.close(directory)
    return total
